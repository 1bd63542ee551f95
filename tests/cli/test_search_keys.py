"""Any verb that searches takes any key of search, in the same way."""

import json
import sys
from pathlib import Path

import pytest

import transduce
from forked import Run
from transduce.cli.search_keys import models_and_search
from transduce.core.errors import InputError
from transduce.search.settings import Search

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")
LINES = b"1 2\n4 1 1\n9 0\n"


def verbs(tmp_path: Path) -> dict[str, list[str | Path]]:
    """What each verb that searches needs besides a model."""
    (tmp_path / "lines.txt").write_bytes(LINES)
    lines = tmp_path / "lines.txt"
    return {
        "predict": ["--source", lines],
        "evaluate": ["--source", lines, "--reference", lines],
        "serve": ["--port", "0"],
        "explore": ["--file", tmp_path / "page.html", "--text", "1 2"],
        "distill": ["--output", tmp_path / "taught", "--source", lines],
    }


VERBS = ["predict", "evaluate", "serve", "explore", "distill"]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("search.bean=3", 'unknown key search.bean. Did you mean "beam"?'),
        ("search.max_new=3", 'unknown key search.max_new. Did you mean "max_length_offset"?'),
        ("search.num_beams=3", 'unknown key search.num_beams. Did you mean "beam"?'),
        ("search.beam=many", "search.beam: expected a whole number; got 'many'."),
        ("search.beam", '"search.beam": expected key=value'),
    ],
)
def test_a_wrong_key_is_told_by_every_verb(
    verb: str, key: str, said: str, run: Run, tiny_run: Path, tmp_path: Path
) -> None:
    done = run(verb, tiny_run, key, *verbs(tmp_path)[verb])
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("verb", VERBS)
def test_keys_alone_are_no_model(verb: str, run: Run, tmp_path: Path) -> None:
    done = run(verb, "search.beam=3", *verbs(tmp_path)[verb])
    assert done.code == 2
    assert "Traceback" not in done.err


def test_predict(run: Run, tiny_run: Path) -> None:
    keys = ["search.beam=4", "search.nbest=4", "search.length_rule=gnmt", "search.max_length_factor=0.5"]
    done = run("predict", tiny_run, *keys, "--json", given=LINES)
    asked = {"beam": 4, "nbest": 4, "length_rule": "gnmt", "max_length_factor": 0.5}
    expected = transduce.load(tiny_run).predict(LINES.decode().splitlines(), **asked)
    assert done.code == 0, done.err
    assert [json.loads(line) for line in done.out.splitlines()] == json.loads(
        json.dumps([each.to_dict() for each in expected])
    )
    options = run("predict", tiny_run, "--beam", 4, "--nbest", 4, *keys[2:], "--json", given=LINES)
    assert options.out == done.out


def test_evaluate(run: Run, tiny_run: Path, tmp_path: Path) -> None:
    done = run("evaluate", "search.coverage=0.3", tiny_run, "search.beam=2", "--json", *verbs(tmp_path)["evaluate"])
    assert done.code == 0, done.err
    found = json.loads(done.out)["search"]
    assert (found["beam"], found["coverage"], found["method"]) == (2, 0.3, "beam")


def test_distill(run: Run, tiny_run: Path, tmp_path: Path) -> None:
    done = run("distill", tiny_run, "search.method=greedy", *verbs(tmp_path)["distill"])
    assert done.code == 0, done.err
    assert json.loads((tmp_path / "taught" / "distillation.json").read_text())["search"]["method"] == "greedy"


def test_explore(run: Run, tiny_run: Path, tmp_path: Path) -> None:
    pages = []
    for keys in ([], ["search.max_length_factor=0", "search.max_length_offset=1"]):
        done = run("explore", tiny_run, *keys, *verbs(tmp_path)["explore"])
        assert done.code == 0, done.err
        pages.append((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert pages[0] != pages[1]


def test_every_key_is_taken() -> None:
    keys = [f"search.{name}={json.dumps(field.default)}" for name, field in Search.model_fields.items()]
    models, found = models_and_search(["a", *keys, "b"], {"beam": None})
    assert models == ["a", "b"]
    assert list(found) == list(Search.model_fields)


def test_a_key_is_given_once() -> None:
    with pytest.raises(InputError, match=r"search\.beam was given twice, .* as search\.beam=\.\.\.; give it once"):
        models_and_search(["a", "search.beam=3"], {"beam": 4, "alpha": None})
    with pytest.raises(InputError, match="a model file; got only search keys"):
        models_and_search(["search.beam=3"], {})
    assert models_and_search(["search.beam=3"], {}, needed=False) == ([], {"beam": 3})
