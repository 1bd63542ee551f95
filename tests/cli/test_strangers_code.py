"""No command imports code that a stranger's run directory or model file names, unless it is told to trust it."""

import gc
import json
import shutil
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from transduce.cli.app import GROUPS, app, main
from transduce.core import trust
from transduce.core.model_file import load_model_file, save_model_file

CODE = "import pathlib\npathlib.Path('RAN').touch()\nraise ImportError('it ran')\n"
PAIRS = ["--source", "DATA/test.digits", "--target", "DATA/test.words"]
GOOD, RUN, BAD = "GOOD", "RUN", "BAD"  # a run of one's own; with a strange recipe; with a strange model file, too
HOW = {  # by verb, the command lines that are tried
    "train": [
        [RUN],
        ["RUN/recipe.toml"],
        ["--dry-run", RUN],
        ["--finish", RUN],
        ["--finish", "RUN/recipe.toml"],
        ["GOOD/recipe.toml", "--run", RUN],
        ["OWN", "--run", "TMP/new", "training.start=BAD"],
        ["BASED", "--dry-run"],
        [*PAIRS, "--run", RUN],
    ],
    "new": [["TMP/new.toml", *PAIRS, "training.start=BAD"]],
    "predict": [[BAD, "--text", "1 2"], [RUN, "--text", "1 2"], [BAD, "--text", "1 2", "--engine", "kernels"]],
    "generate": [[BAD], [RUN]],
    "evaluate": [[BAD, "--source", "DATA/test.digits", "--reference", "DATA/test.words"]],
    "score": [[BAD, *PAIRS]],
    "compare": [["COMPARISON", "--run", "TMP/compared"]],
    "explore": [[BAD, "--no-browser"], [RUN, "--file", "TMP/page.html", "--text", "1 2"]],
    "serve": [[BAD], [BAD, "--engine", "kernels"]],
    "export": [[BAD, "--to", "ctranslate2"], [RUN, "--to", "ctranslate2", "--output", "TMP/exported"]],
    "convert": [[BAD, "TMP/converted.safetensors"], ["BAD/model.safetensors", "TMP/converted.safetensors"]],
    "distill": [
        [RUN, "--output", "TMP/taught"],
        [BAD, "--output", "TMP/taught"],
        [GOOD, "--recipe", "RUN/recipe.toml", "--output", "TMP/taught"],
        [GOOD, "--source", "DATA/test.digits", "--student", "RUN/recipe.toml", "--output", "TMP/taught"],
    ],
    "translate-back": [[BAD, "--text", "DATA/test.words", "--output", "TMP/back"]],
    "shortlist": [
        [RUN, "--output", "TMP/s.safetensors"],
        [BAD, "--output", "TMP/s.safetensors"],
        [GOOD, "--recipe", "RUN/recipe.toml", "--output", "TMP/s.safetensors"],
    ],
    "datastore": [["build", BAD, *PAIRS, "--output", "TMP/d"], ["info", BAD]],
    "doctor": [[RUN], ["RUN/recipe.toml"]],
    "info": [[BAD], [RUN]],
    "demo": [["--run", RUN], ["--run", BAD]],
}
NAMES = [name for names in GROUPS.values() for name in names]


def lines_of(verb: str) -> list[list[str]]:
    """A verb that nobody has listed is tried with a run and a model file as its first argument."""
    return [[verb, *line] for line in HOW.get(verb, [[RUN], ["BAD/model.safetensors"]])]


LINES = [line for verb in NAMES for line in lines_of(verb)]


@pytest.fixture
def strange(
    tiny_run: Path, tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    """What the command lines name, with a file in the working folder that leaves a mark where it is imported."""
    folder = tmp_path / "folder"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(trust, "_allowed", set())
    monkeypatch.setattr(sys, "path", [*sys.path, str(folder)])
    (folder / "strange_code.py").write_text(CODE.replace("RAN", str(folder / "ran")))
    for name in (RUN, BAD):
        shutil.copytree(tiny_run, folder / name)
        recipe = (folder / name / "recipe.toml").read_text(encoding="utf-8")
        assert 'kind = "transformer"' in recipe
        strange = recipe.replace('kind = "transformer"', 'kind = "strange_code:Model"')
        (folder / name / "recipe.toml").write_text(strange, encoding="utf-8")
        plan = {"asked": {}, "table": {"model": {"kind": "strange_code:Model"}}, "decisions": [], "promised": {}}
        (folder / name / "plan.json").write_text(json.dumps({"name": "plan", **plan}))
    file = load_model_file(tiny_run)
    config = {**file.config, "model": {**file.config["model"], "kind": "strange_code:Model"}}
    save_model_file(folder / BAD / "model.safetensors", replace(file, config=config))
    own = (tiny_run / "recipe.toml").read_text(encoding="utf-8")
    (folder / "own.toml").write_text(own, encoding="utf-8")
    (folder / "based.toml").write_text(f'base = "{folder}/RUN/recipe.toml"\n')
    (folder / "comparison.toml").write_text(f'base = "{folder}/RUN/recipe.toml"\n[variants.a]\n')
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    threshold = gc.get_threshold()
    yield {
        "DATA": str(tiny_corpus),
        "GOOD": str(tiny_run),
        "RUN": str(folder / RUN),
        "BAD": str(folder / BAD),
        "TMP": str(tmp_path),
        "OWN": str(folder / "own.toml"),
        "BASED": str(folder / "based.toml"),
        "COMPARISON": str(folder / "comparison.toml"),
    }
    gc.unfreeze()
    gc.set_threshold(*threshold)
    for number, handler in handlers.items():
        signal.signal(number, handler)


def test_every_verb_is_walked() -> None:
    from typer.main import get_command

    assert sorted(NAMES) == sorted(get_command(app).commands)  # type: ignore[attr-defined]
    assert set(HOW) <= set(NAMES)


@pytest.mark.parametrize("line", LINES, ids=[" ".join(line)[:60] for line in LINES])
def test_strange_code_is_not_imported(
    line: list[str], strange: dict[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = list(line)
    for name, value in strange.items():
        words = [word.replace(name, value) if name in word.partition("/")[0] else word for word in words]
    monkeypatch.setattr(sys, "argv", ["transduce", *words])
    with pytest.raises(SystemExit):
        main()
    assert not Path("ran").exists(), capsys.readouterr()
    assert "strange_code" not in sys.modules
    assert "Traceback" not in capsys.readouterr().err


def test_with_leave_it_is(strange: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """So that the walk would notice."""
    monkeypatch.setattr(sys, "argv", ["transduce", "train", "--dry-run", strange["RUN"], "--trust-code"])
    with pytest.raises(SystemExit):
        main()
    assert Path("ran").exists()
