"""Trainings side by side give what they give alone, and stop together, saved."""

import json
import os
import shutil
import signal
import sys
import time
from io import StringIO
from pathlib import Path

import pytest

import forked
from trained import sha256, shown
from transduce.core.errors import InputError, TransduceError
from transduce.distillation.pipeline import train_recipe
from transduce.recipe.recipe import Recipe, load_recipe
from transduce.training.display import Display
from transduce.training.parallel_runs import train_all
from transduce.training.run import run_training

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are stopped with POSIX signals")
THREADS = "training.threads=1"
TALK = "teachers.search={beam=2, min_length=1}"  # hardly trained models may find that nothing is the likeliest to say


@pytest.fixture
def forked_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings begin at once, in processes that have imported torch; others start it as a user's do."""
    monkeypatch.setattr("transduce.runtime.child_process.start", forked.Child)


def told(display: Display) -> str:
    assert isinstance(display.console.file, StringIO)
    return display.console.file.getvalue()


def plans(recipe: Path, folder: Path, *overrides: str) -> dict[Path, Recipe]:
    return {
        folder / str(seed): load_recipe(recipe, [f"training.seed={seed}", f"name=seed-{seed}", THREADS, *overrides])
        for seed in (3, 4, 5)
    }


@pytest.mark.usefixtures("forked_children")
def test_each_gives_what_it_gives_alone(tiny_recipe: Path, tmp_path: Path) -> None:
    display, together = shown(), plans(tiny_recipe, tmp_path / "together", "training.log_every=4")
    train_all(together, 2, display)
    alone = plans(tiny_recipe, tmp_path / "alone", "training.log_every=4")
    for folder, plan in alone.items():
        run_training(plan, folder, shown())
    assert [sha256(folder) for folder in together] == [sha256(folder) for folder in alone]
    assert all(f"{plan.name}: update" in told(display) for plan in together.values())
    assert "All 300 pairs kept" in (tmp_path / "together" / "3.txt").read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("forked_children")
def test_teachers_side_by_side_teach_the_same(tiny_recipe: Path, tmp_path: Path) -> None:
    settings = ["teachers.seeds=[3, 4]", "teachers.training={updates=12, threads=1}", TALK, THREADS]
    reports = [
        train_recipe(load_recipe(tiny_recipe, [*settings, f"teachers.together={number}"]), tmp_path / name, shown())
        for number, name in [(1, "one"), (2, "two")]
    ]
    one, two = ([each["sha256"] for each in report["teachers"]] for report in reports)
    assert one == two
    targets = [(tmp_path / name / "taught" / "target.gz").read_bytes() for name in ("one", "two")]
    assert targets[0] == targets[1]


@pytest.mark.slow
def test_interrupted_it_goes_on_where_it_was(tiny_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    teachers = ["teachers.seeds=[3, 4]", "teachers.together=2", "teachers.training.updates=300", TALK]
    command = ("train", tiny_recipe, *teachers, "training.updates=6", "--run", run)
    assert forked.transduce(tmp_path, *command).code == 0
    expected = sha256(run)
    shutil.rmtree(run)
    process = forked.start(tmp_path, *command)
    logs = [run / "teachers" / seed / "log.jsonl" for seed in ("3", "4")]
    while not all(log.exists() and log.stat().st_size for log in logs):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGINT)
    assert forked.ended(process, tmp_path).code == 130
    told = [(run / "teachers" / f"{seed}.txt").read_text() for seed in ("3", "4")]
    assert all("Stopped by SIGTERM" in each for each in told)
    assert not (run / "taught").exists()
    assert forked.transduce(tmp_path, *command).code == 0
    assert sha256(run) == expected


@pytest.mark.slow
@pytest.mark.usefixtures("forked_children")
def test_one_that_fails_stops_the_others_saved(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
    many = plans(tiny_recipe, tmp_path, "training.updates=100000", "training.checkpoint_every=100000")
    diverging = tmp_path / "diverging"
    logs = [str(folder / "log.jsonl") for folder in many]  # when they have begun
    late = ["model.kind=patient:Patient", f"model.awaited={json.dumps(logs)}"]
    settings = ["training.learning_rate=1e30", "training.clip=0", *late, THREADS]
    many[diverging] = load_recipe(tiny_recipe, ["name=diverging", *settings])
    with pytest.raises(TransduceError, match="diverging: The loss of update"):
        train_all(many, 4, shown())
    for folder in [folder for folder in many if folder != diverging]:
        assert list((folder / "checkpoints").glob("*.safetensors"))
        assert "Stopped by SIGTERM" in (folder.parent / f"{folder.name}.txt").read_text()


@pytest.mark.usefixtures("forked_children")
def test_a_wrong_input_is_told_as_one(tiny_recipe: Path, tmp_path: Path) -> None:
    wrong = plans(tiny_recipe, tmp_path, "training.start=nowhere.safetensors")
    with pytest.raises(InputError, match=r"nowhere\.safetensors"):
        train_all(wrong, 3, shown())


@pytest.mark.slow
def test_those_whose_parent_is_killed_leave_saved(tiny_recipe: Path, tmp_path: Path) -> None:
    many = plans(tiny_recipe, tmp_path, "training.updates=100000", "training.checkpoint_every=100000")
    child = os.fork()
    if child == 0:
        train_all(many, 3, shown())
        os._exit(0)
    while not all((folder / "log.jsonl").exists() for folder in many):
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    ends = [folder.parent / f"{folder.name}.txt" for folder in many]
    deadline = time.monotonic() + 600
    while not all("Stopped by SIGTERM" in end.read_text() for end in ends):  # they are nobody's children now
        assert time.monotonic() < deadline, [end.read_text() for end in ends]
        time.sleep(0.05)
    assert all(list((folder / "checkpoints").glob("*.safetensors")) for folder in many)
