"""`transduce predict` with phrases, prefixes, several models and a lattice, as a shell sees it."""

import json
import sys
from pathlib import Path

import pytest

import transduce
from forked import Run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")


def test_phrases_for_all_lines(run: Run, tiny_run: Path) -> None:
    done = run("predict", tiny_run, "--must", "seven two", "--must-not", "one", "--json", given=b"1 2\n4 1 1\n")
    assert done.code == 0, done.err
    for line in done.out.splitlines():
        found = json.loads(line)
        assert f" {found['text']} ".count(" seven two ") >= 1 or found["unmet"] == ["seven two"]
        assert "one" not in found["text"].split()
        assert len(found["token_log_probabilities"]) == len(found["tokens"]) + found.get("ended", True)


def test_a_text_named_like_a_model_is_told_from_one(run: Run, tiny_run: Path, tmp_path: Path) -> None:
    text = tmp_path / "source.txt"
    text.write_text("1 2\n4 1 1\n")
    done = run("predict", tiny_run, text)
    assert done.code == 2
    assert f"{text}: not a model. To read its lines: --source {text}" in done.err
    two = run("predict", tiny_run, tiny_run / "model.safetensors", given=b"1 2\n")
    assert two.code == 0, two.err


def test_phrases_line_by_line(run: Run, tiny_run: Path, tmp_path: Path) -> None:
    path = tmp_path / "wants.jsonl"
    path.write_text('{"must": [["nine nine", "eight eight"]]}\n{"prefix": "three"}\n{}\n')
    done = run("predict", tiny_run, "--constraints", path, "--must-not", "four", given=b"1 2\n4 1 1\n4\n")
    assert done.code == 0, done.err
    first, second, third = done.out.splitlines()
    assert "nine nine" in first or "eight eight" in first
    assert second.startswith("three")
    model = transduce.load(tiny_run)
    assert third == model.predict(["4"], must_not=["four"])[0].text
    assert first == model.predict(["1 2"], must=[("nine nine", "eight eight")], must_not=["four"])[0].text


def test_what_is_unmet_is_told(run: Run, tiny_run: Path) -> None:
    done = run("predict", tiny_run, "--must", "one two three four five six seven", "--max-new", 0, given=b"1 2\n")
    assert done.code == 0
    assert (
        'line 1: "one two three four five six seven" must appear but does not: the output reached its length limit.'
        in done.err
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--must", "eleventy"], '"eleventy" must appear, but cannot be written with the tokens of this model'),
        (["--must", "one", "--must-not", "one"], '"one" must appear, but contains "one", which must not'),
        (["--must", "one", "--method", "greedy"], 'method "greedy" does not look for phrases'),
        (["--groups", "2", "--beam", "5"], "beam = 5 slots cannot be shared evenly among groups = 2"),
        (["--lattice", "--method", "greedy"], 'method "greedy" has none'),
    ],
)
def test_what_cannot_be_meant_exits_2(run: Run, tiny_run: Path, arguments: list[str], said: str) -> None:
    done = run("predict", tiny_run, *arguments, given=b"1 2\n")
    assert done.code == 2
    assert done.out == ""
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_wrong_constraints_file_exits_2(run: Run, tiny_run: Path, tmp_path: Path) -> None:
    (tmp_path / "wants.jsonl").write_text('{"must": []}\n{"mist": []}\n')
    done = run("predict", tiny_run, "--constraints", tmp_path / "wants.jsonl", given=b"1\n2\n")
    assert done.code == 2
    assert 'wants.jsonl, line 2: unknown key "mist". Did you mean "must"?' in done.err


def test_several_models_are_an_ensemble(run: Run, tiny_run: Path, tiny_corpus: Path) -> None:
    one = run("predict", tiny_run, given=b"1 2\n3\n")
    same = run("predict", tiny_run, tiny_run, "--ensemble", "log_probability", given=b"1 2\n3\n")
    assert same.code == 0, same.err
    assert same.out == one.out
    files = ("--source", tiny_corpus / "test.digits", "--target", tiny_corpus / "test.words", "--json")
    scored = [
        [json.loads(line) for line in run("score", *models, *files).out.splitlines()]
        for models in ([tiny_run], [tiny_run, tiny_run])
    ]
    assert scored[0][-1]["total"]["loss"] == pytest.approx(scored[1][-1]["total"]["loss"], rel=1e-5)
    assert scored[0][0]["pieces"][-1] == "</s>"
    wanted = ("--source", tiny_corpus / "test.digits", "--reference", tiny_corpus / "test.words", "--metric", "chrf")
    both = json.loads(run("evaluate", f"{tiny_run}+{tiny_run}", *wanted, "--json").out)
    assert both["likelihood"]["loss"] == pytest.approx(scored[0][-1]["total"]["loss"], rel=1e-5)
    assert sum(scored[0][0]["token_log_probabilities"]) == pytest.approx(scored[0][0]["log_probability"])


def test_all_knobs_at_once(run: Run, tiny_run: Path) -> None:
    knobs = ("--length-rule", "gnmt", "--alpha", 0.6, "--coverage", 0.2, "--no-repeat-ngram", 2, "--min-length", 2)
    done = run("predict", tiny_run, *knobs, "--beam", 4, "--lattice", "--json", given=b"1 2\n")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert len(found["tokens"]) >= 2
    assert found["lattice"]["steps"][0][0]["parent"] == -1
    grouped = run(
        "predict", tiny_run, "--beam", 4, "--groups", 2, "--diversity", 5, "--nbest", 4, "--json", given=b"1 2\n"
    )
    assert len({each["text"].partition(" ")[0] for each in json.loads(grouped.out)["nbest"]}) > 1
