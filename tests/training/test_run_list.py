"""`transduce runs`: what it tells of runs that are finished, stopped, training now, damaged, or made to do harm."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from transduce.cli.app import app
from transduce.core.errors import InputError
from transduce.runtime.lock import is_held, run_lock
from transduce.training import run_list
from transduce.training.run_list import RunFacts, RunScore, facts_of, runs_in

RECIPE = """
name = "welsh"
[task]
kind = "translation"
source = "en"
target = "cy"
[[data.train]]
source = "/data/train.en"
target = "train.cy"
[[data.train]]
tsv = "more.tsv"
[training]
updates = 400
"""


def made(run: Path, recipe: str = RECIPE, report: Any = None, **events: dict[str, Any]) -> Path:
    """A run directory of files alone."""
    run.mkdir(parents=True)
    (run / "recipe.toml").write_text(recipe)
    (run / "log.jsonl").write_text("".join(json.dumps({"event": name, **each}) + "\n" for name, each in events.items()))
    os.utime(run / "log.jsonl", (1e9, 1e9))
    os.utime(run / "recipe.toml", (5e8, 5e8))
    if report is not None:
        (run / "report.json").write_text(report if isinstance(report, str) else json.dumps(report))
        (run / "model.safetensors").touch()
    return run


def shown(*arguments: str | Path) -> str:
    done = CliRunner().invoke(app, ["runs", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.output


def test_a_real_run_is_listed(tiny_run: Path) -> None:
    report = json.loads((tiny_run / "report.json").read_text())
    [found] = runs_in([tiny_run])
    test, scores = next((name, each["scores"]) for name, each in report["tests"].items())
    first = next(iter(scores.values()))
    assert found.score == RunScore(test, first["name"], first["value"])
    assert (found.state, found.date, found.task) == ("finished", report["finished"], "translation")
    assert (found.update, found.updates) == (report["training"]["updates"], 24)
    assert found.data and not found.problem
    assert json.loads(shown("--json", tiny_run)) == {"runs": [found.to_dict()]}
    assert f"{tiny_run} " in shown(tiny_run) and f"{first['name']} {first['value']:.2f} ({test})" in shown(tiny_run)


def test_a_stopped_run_tells_how_far_it_came(tmp_path: Path) -> None:
    validation = {"update": 80, "loss": 2.5, "perplexity": 12.2, "bleu": 21.25, "seconds": 60}
    run = made(tmp_path / "runs" / "welsh", train={"update": 100, "seconds": 90.0}, validation=validation)
    expected = RunFacts(
        *(str(run), "stopped", "2001-09-09T01:46:40+00:00", "translation en-cy", "train.en, train.cy, and 1 more"),
        *(RunScore("", "bleu", 21.25), 100, 400, 1.5, None),
    )
    assert facts_of(run) == expected
    line = shown(tmp_path).splitlines()[1]
    assert line.split() == [
        *(str(run), "2001-09-09", "01:46", "translation", "en-cy", "train.en,", "train.cy,", "and", "1", "more"),
        *("bleu", "21.25", "(validation)", "stopped:", "update", "100", "of", "400,", "25", "%"),
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is locked there")
def test_a_training_that_runs_is_told_apart_from_one_that_was_killed(tmp_path: Path) -> None:
    recipe = RECIPE + "minutes = 3.0\n"
    run = made(tmp_path / "r", recipe, train={"update": 100, "seconds": 120.0}, validation={"update": 50, "loss": 2.0})
    (run / ".lock").write_text("process 1 on host, since long")  # a process that was killed leaves it
    assert facts_of(run).state == "stopped"
    with run_lock(run):
        assert is_held(run)
        assert facts_of(run).state == "training"
        assert "loss 2.00 (validation)  training now: update 100 of 400, 2 of 3 minutes, 67 %" in shown(run)
    assert not is_held(run)


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is locked there")
def test_a_training_begins_though_somebody_lists_the_run(tmp_path: Path) -> None:
    import fcntl
    import threading

    with (tmp_path / ".lock").open("w") as looked_at:
        fcntl.flock(looked_at, fcntl.LOCK_SH)
        threading.Timer(0.05, fcntl.flock, [looked_at, fcntl.LOCK_UN]).start()
        with run_lock(tmp_path):
            pass


@pytest.mark.skipif(sys.platform == "win32", reason="nothing is locked there")
@pytest.mark.parametrize("make", [Path.hardlink_to, Path.symlink_to, lambda lock, _: os.mkfifo(lock)])
def test_a_lock_that_is_somebodys_file_or_none_is_refused(make: Callable[[Path, Path], None], tmp_path: Path) -> None:
    mine, run = tmp_path / "mine", tmp_path / "run"
    mine.write_text("my notes")
    run.mkdir()
    make(run / ".lock", mine)
    with pytest.raises(InputError, match=r"\.lock: expected the lock file of this run"), run_lock(run):
        pass
    assert mine.read_text() == "my notes"
    assert (run / ".lock").lstat()


def test_runs_are_found_in_folders_but_not_in_runs(tmp_path: Path) -> None:
    deep = made(tmp_path / "compare" / "cells" / "lstm-seed1")
    made(deep / "teachers" / "one")
    (tmp_path / "recipes").mkdir()
    (tmp_path / "recipes" / "recipe.toml").write_text(RECIPE)  # a recipe by itself is no run
    newer = made(tmp_path / "newer")
    os.utime(newer / "log.jsonl", (2e9, 2e9))
    assert [each.folder for each in runs_in([tmp_path, newer])] == [str(deep), str(newer)]
    with pytest.raises(InputError, match="there is no such folder"):
        runs_in([tmp_path / "gone"])


def test_without_runs_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "There are no runs in runs." in shown()
    assert json.loads(shown("--json")) == {"runs": []}
    made(tmp_path / "runs" / "one")
    assert str(Path("runs") / "one") in shown()


@pytest.mark.parametrize(
    ("recipe", "report", "problem"),
    [
        ("[task", None, "recipe.toml: "),
        ("a = 1 # " + "x" * (1 << 16), None, "recipe.toml: has 65,544 bytes; 65,536 at most are read"),
        (RECIPE, "[1]", "report.json: expected a table"),
        (RECIPE, "[" * 100_000, "report.json: "),
        (RECIPE, "1" * 5000, "report.json: "),
        (RECIPE, " " * ((1 << 22) + 1), "report.json: has 4,194,305 bytes"),
    ],
)
def test_damaged_files_are_told_in_the_runs_line(tmp_path: Path, recipe: str, report: str | None, problem: str) -> None:
    found = facts_of(made(tmp_path / "r", recipe, report))
    assert (found.state, found.problem.startswith(problem)) == ("damaged", True), found.problem
    assert len(found.problem) < 300
    assert f"damaged: {problem}" in shown(tmp_path)


WRONG = [None, 1, -1, 10**400, 1e999, "x" * 10_000, "\x1b[2J", [], [{}], {}, {"": {}}, True, {"scores": {"a": 1}}]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda each: str(each)[:12])
def test_values_of_other_kinds_break_nothing(tmp_path: Path, wrong: Any) -> None:
    report = {"finished": wrong, "training": {"updates": wrong, "seconds": wrong}, "tests": {"t\x1b[2J": wrong}}
    scored = {"tests": {"t": {"scores": {"m": {"name": wrong, "value": 1.0}, "n": wrong}}}, "training": wrong}
    toml = "name = 1\ntask = 2\ntraining = [3]\ndata = { train = [1, {tsv = 2}, {tsv = 'a\\u001b'}], root = 4 }"
    for place, (text, made_of) in enumerate([(toml, report), (toml, scored), ("data = 1", None)]):
        event = {"update": wrong, "seconds": wrong, "loss": wrong, "minutes": wrong}
        run = made(tmp_path / str(place), text, made_of, train=event, validation=event)
        json.dumps(facts_of(run).to_dict(), allow_nan=False).encode()
    told = shown(tmp_path)
    assert "\x1b" not in told
    assert max(map(len, told.splitlines())) <= 1_000


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such files")
def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    run = made(tmp_path / "r")
    for name, target in (("report.json", None), ("log.jsonl", "/dev/zero"), (".lock", None)):
        (run / name).unlink(missing_ok=True)
        os.mkfifo(run / name) if target is None else (run / name).symlink_to(target)
    found = facts_of(run)
    assert found.problem == "report.json: not a regular file; log.jsonl: not a regular file"
    (run / "recipe.toml").unlink()
    os.mkfifo(run / "recipe.toml")
    assert "recipe.toml: not a regular file" in facts_of(run).problem
    (tmp_path / "around").symlink_to(tmp_path)
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert {Path(each.folder).name for each in runs_in([tmp_path])} == {"r"}


def test_of_a_long_log_the_end_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = made(tmp_path / "r", train={"update": 1})
    with (run / "log.jsonl").open("a") as log:
        for update in range(2, 500):
            log.write(json.dumps({"event": "train", "update": update}) + "\n")
        log.write('{"event": "train", "upd')  # killed while it wrote
    monkeypatch.setattr(run_list, "TAIL_BYTES", 100)
    assert facts_of(run).update == 499


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_list, "MANY", 3)
    for name in "abc":
        (tmp_path / name).mkdir()
    assert runs_in([tmp_path]) == []
    (tmp_path / "c" / "d").mkdir()
    with pytest.raises(InputError, match="more than 3 files"):
        runs_in([tmp_path])


def test_torch_is_not_loaded(tmp_path: Path) -> None:
    made(tmp_path / "r", report={"tests": {}})
    script = "import sys; from transduce.cli.app import main\ntry:\n main()\nfinally: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script, "runs", tmp_path], capture_output=True, text=True, check=True)
    assert not {"torch", "numpy", "matplotlib"} & set(done.stdout.split())
    shutil.rmtree(tmp_path)
