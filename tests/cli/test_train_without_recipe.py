"""`transduce train --source ..` and `transduce new`: decided, told, trained, resumed; what is wrong is refused."""

import json
import sys
import tomllib
from pathlib import Path

import pytest

import transduce
from forked import Run
from transduce.data.files import fingerprint

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
SMALL = ("training.updates=30", "training.threads=1", "training.precision=fp32")


@pytest.fixture
def files(tiny_corpus: Path) -> tuple[str, str, str, str]:
    return "--source", str(tiny_corpus / "train.digits"), "--target", str(tiny_corpus / "train.words")


def test_two_files_become_a_model(run: Run, files: tuple[str, ...], tmp_path: Path) -> None:
    done = run("train", *files, *SMALL, "--run", tmp_path / "r")
    assert done.code == 0, done.err
    for told in (
        "300 pairs",
        "Held out of 300 pairs",
        "tokenizer.source.kind",
        "This will take about",
        "were promised",
        "sha256",
    ):
        assert told in done.out, told
    assert done.out.count("Held out of 300 pairs") == done.out.count("pairs kept.") == 1
    assert transduce.load(tmp_path / "r").predict("1 2").text is not None
    report = json.loads((tmp_path / "r" / "report.json").read_text(encoding="utf-8"))
    assert {"exact_match", "wer"} <= report["tests"]["held_out"]["scores"].keys()
    assert report["plan"].keys() == {"promised_seconds", "took_seconds"}
    assert report["plan"]["took_seconds"] >= report["training"]["seconds"]

    model = fingerprint(tmp_path / "r" / "model.safetensors")
    again = run("train", *files, *SMALL, "--run", tmp_path / "r")  # the same command: finished, and left as it is
    assert (again.code, "left as it is" in again.out) == (0, True), again.err
    other = run("train", *files, *SMALL, "--time", "1h", "--run", tmp_path / "r")
    assert (other.code, "asked for with other options: --time." in other.err) == (2, True), other.err
    keys = run("train", *files, *SMALL, "model.dropout=0.3", "--run", tmp_path / "r")
    assert (keys.code, "asked for with other options: model.dropout." in keys.err) == (2, True), keys.err
    dry = run("train", *files, *SMALL, "--time", "1h", "--run", tmp_path / "r", "--dry-run")
    assert dry.code == 0, dry.err
    assert fingerprint(tmp_path / "r" / "model.safetensors") == model


def test_wrong_data_is_told_before_anything_is_measured(run: Run, files: tuple[str, ...], tmp_path: Path) -> None:
    lines = Path(files[3]).read_text(encoding="utf-8").splitlines()
    target = tmp_path / "train.words"
    target.write_text("".join(f"{line}\n" for line in lines[:100] + [""] * 200), encoding="utf-8")
    given, told = (*files[:3], target, *SMALL), "200 pairs with one side empty"
    refused = run("train", *given, "--run", tmp_path / "r")
    assert refused.code == 2
    assert told in " ".join(refused.err.split())
    assert "This will take about" not in refused.out
    for command in (["train", "--dry-run", "--run", tmp_path / "r"], ["new", tmp_path / "r.toml"]):
        shown = run(*command, *given)
        assert shown.code == 0, shown.err
        assert " ".join((shown.out + shown.err).split()).count(told) == 1
    assert not (tmp_path / "r").exists()


def test_held_out_texts_that_are_longer_than_those_of_training_are_told(
    run: Run, files: tuple[str, ...], tmp_path: Path
) -> None:
    held_out = {"source": "1 2\n3\n", "target": "one two\n" + "three " * 400 + "\n"}
    for side, text in held_out.items():
        (tmp_path / side).write_text(text, encoding="utf-8")
    validation = f"data.validation={{source='{tmp_path / 'source'}', target='{tmp_path / 'target'}'}}"
    done = run("train", *files, *SMALL, validation, "--dry-run", "--run", tmp_path / "r")
    assert done.code == 0, done.err
    told = " ".join((done.out + done.err).split())
    assert "the validation: 1 of 2 pairs has more than 256 tokens, up to 400." in told
    assert not (tmp_path / "r").exists()


def test_what_the_examination_finds_is_told_once_before_training(run: Run, tmp_path: Path) -> None:
    lines = [f"{number:b} is {number}" for number in range(60)]
    (tmp_path / "a").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (tmp_path / "b").write_text("".join(f"{line[::-1]}\u2028.\n" for line in lines), encoding="utf-8")
    updates = ("training.updates=2", "training.threads=1")
    done = run("train", "--source", tmp_path / "a", "--target", tmp_path / "b", *updates, "--run", tmp_path / "r")
    assert done.code == 0, done.err
    told = "60 lines of the target with a line separator"
    assert done.out.count(told) == 1
    assert done.out.index(told) < done.out.index("update 2 of 2")


def test_phones_are_scored_by_their_own_error_rate(run: Run, tmp_path: Path) -> None:
    words = [f"{number:b}".replace("0", "a").replace("1", "b") for number in range(60, 180)]
    rows = "".join(f"{word}\t{' '.join(word.replace('a', 'A').replace('b', 'B'))}\n" for word in words)
    (tmp_path / "g2p.tsv").write_text(rows, encoding="utf-8")
    done = run("train", tmp_path / "g2p.tsv", *SMALL, "--run", tmp_path / "r")
    assert done.code == 0, done.err
    report = json.loads((tmp_path / "r" / "report.json").read_text(encoding="utf-8"))
    assert [*report["tests"]["held_out"]["scores"]][:2] == ["exact_match", "per"]
    assert "PER" in done.out


def test_a_model_to_start_from_decides_the_sizes(
    run: Run, files: tuple[str, ...], tiny_run: Path, tmp_path: Path
) -> None:
    start = ("--source", files[1], "--target", files[3], f"training.start={tiny_run}")
    done = run("train", *start, *SMALL, "--run", tmp_path / "r")
    assert done.code == 0, done.err
    assert "as in the model" in done.out
    sizes = [transduce.load(path).recipe.to_table()["model"]["d_model"] for path in (tiny_run, tmp_path / "r")]
    assert sizes[0] == sizes[1]
    refused = run("train", *start, *SMALL, "model.d_model=24", "--run", tmp_path / "s")
    assert refused.code == 2
    assert refused.err.count("\n") == 1
    assert "Expected in [model] what it has: d_model = 16 (here 24)" in refused.err
    assert not (tmp_path / "s").exists()


def test_a_new_recipe_trains_the_same_model(run: Run, files: tuple[str, ...], tmp_path: Path) -> None:
    done = run("new", tmp_path / "same.toml", *files, *SMALL)
    assert done.code == 0, done.err
    text = (tmp_path / "same.toml").read_text(encoding="utf-8")
    assert "# Your data.\n" in text
    assert "# Chosen by you.\nupdates = 30\n" in text
    assert tomllib.loads(text)["data"]["hold_out"] == {"validation": 15, "test": 15}
    assert run("train", tmp_path / "same.toml", "--run", tmp_path / "a" / "same").code == 0
    assert run("train", *files, *SMALL, "--run", tmp_path / "b" / "same").code == 0
    models = [fingerprint(tmp_path / each / "same" / "model.safetensors") for each in ("a", "b")]
    assert models[0] == models[1]
    refused = run("new", tmp_path / "same.toml", *files)
    assert (refused.code, "there is such a file already" in refused.err) == (2, True)


def test_a_data_file_where_a_recipe_is_meant(run: Run, tiny_corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "walk.tsv").write_text(
        "".join(f"{'ab' * (1 + number % 7)}{number:b}\tV;PST\t{number:b}x\n" for number in range(60)), encoding="utf-8"
    )
    columns = ("--source-column", "0", "--source-column", "1", "--target-column", "2")
    done = run("train", tmp_path / "walk.tsv", *SMALL, *columns, "--run", tmp_path / "r", "--dry-run")
    assert done.code == 0, done.err
    assert "This will take about" in done.out
    assert not (tmp_path / "r").exists()


def test_all_that_is_wrong_is_told_at_once(run: Run, tiny_corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "short").write_text("one\ntwo\n", encoding="utf-8")
    (tmp_path / "a.json").write_text("[]\n", encoding="utf-8")
    (tmp_path / "a.jsonl").write_text('{"en": "x", "sw": "y", "fr": "z"}\n', encoding="utf-8")
    source = tiny_corpus / "train.digits"
    cases = {
        ("--source", tmp_path / "gone", "--target", tmp_path / "lost"): ["gone: no such file", "lost: no such file"],
        ("--source", source): ["the target is missing", "--target"],
        ("--source", source, "--target", tmp_path / "short"): ["has 300 lines", "has 2"],
        ("--source", tmp_path / "empty", "--target", tmp_path / "empty"): ["named as source and target"],
        ("--source", source, "--target", tmp_path / "empty"): ["empty: the file is empty"],
        ("--source", source, "--target", tmp_path): ["this is a folder"],
        ("--source", tmp_path): ["expected two files whose names end in their languages"],
        ("--source", tmp_path / "a.jsonl"): ['expected an object {"source": .., "target": ..}'],
        ("--source", source, "--target", source.with_suffix(".words"), "--time", "soon"): [
            "expected a time such as 2h"
        ],
        ("--source", source, "--target", source.with_suffix(".words"), "training.update=3"): [
            "Did you mean",
            "updates",
        ],
        ("my.toml", "--source", source): ["either a recipe or --source"],
        ("my.toml", "--time", "2h"): ["are for training without a recipe"],
        (): ["expected a recipe, a run directory, or data"],
        (source, source.with_suffix(".words")): [f"--source {source} --target {source.with_suffix('.words')}"],
        ("--source", source, source.with_suffix(".words")): [f"--target {source.with_suffix('.words')}"],
        (source,): ["transduce train --source FILE --target FILE"],
        ("--source", tmp_path / "a.json"): ["a.json: the file is empty"],
    }
    for arguments, wanted in cases.items():
        done = run("train", *arguments, *(("--run", tmp_path / "r") if arguments else ()))
        assert done.code == 2, (arguments, done.err)
        for told in wanted:
            assert told in done.err, (arguments, done.err)
        assert not (tmp_path / "r").exists()


def test_a_file_that_is_not_there_is_no_recipe(run: Run, tmp_path: Path) -> None:
    said = [run("train", *option, tmp_path / "gone.tsv") for option in ((), ("--source",))]
    assert [each.code for each in said] == [2, 2]
    assert said[0].err == said[1].err
    assert "gone.tsv: no such file" in said[0].err


def test_what_results_go_to_is_called_run(run: Run, files: tuple[str, ...]) -> None:
    done = run("train", *files, "--output", "x")
    assert done.code == 2
    assert "--run" in done.err
