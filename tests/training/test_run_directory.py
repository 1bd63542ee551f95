"""A run directory through its life: finished and left alone, taken further, moved, reached through links, locked."""

import json
import os
import shutil
import signal
import sys
import time
import tomllib
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import forked
import transduce
from forked import Fate
from trained import sha256
from transduce.cli.app import main
from transduce.core.atomic import write_text
from transduce.core.errors import InputError
from transduce.core.model_file import load_model_file
from transduce.data.pairs.pair_data import PairData
from transduce.distillation.pipeline import train_recipe
from transduce.recipe.recipe import load_recipe, parse_recipe
from transduce.runtime.event_log import read_log
from transduce.runtime.lock import run_lock
from transduce.training.display import Display
from transduce.training.run import finish_training, run_training
from transduce.training.run_directory import changed_keys, claim
from transduce.training.timed_schedule import learning_rate

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are killed with POSIX signals")

TEACHERS = ["teachers.seeds=[3]", "teachers.training={updates=4}", "teachers.search={beam=1, min_length=2}"]


def train(recipe: Path, run: Path, *overrides: str) -> str:
    """What a training in this process shows."""
    shown = StringIO()
    train_recipe(load_recipe(recipe, overrides), run, Display(Console(file=shown, width=200)))
    return shown.getvalue()


def refused(recipe: Path, run: Path, *overrides: str) -> str:
    with pytest.raises(InputError) as caught:
        train(recipe, run, *overrides)
    return str(caught.value)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def report(run: Path) -> dict[str, Any]:
    return json.loads((run / "report.json").read_text())  # type: ignore[no-any-return]


def command(*arguments: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """`transduce ARGUMENTS` in this process."""
    monkeypatch.setattr(sys, "argv", ["transduce", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code


@pytest.fixture
def finished(tiny_run: Path, tmp_path: Path) -> Path:
    """A copy of the finished run, which may be written into."""
    return Path(shutil.copytree(tiny_run, tmp_path / "finished"))


@pytest.fixture
def interrupted(interrupted_run: Path, tmp_path: Path) -> Path:
    """A run that was stopped after update 10 of 24; its best validation is that of update 6."""
    return Path(shutil.copytree(interrupted_run, tmp_path / "run"))


# ---- finished --------------------------------------------------------------------------------------------------------


def test_a_finished_run_keeps_every_byte_and_says_what_could_be_done(
    tiny_recipe: Path, finished: Path, tmp_path: Path
) -> None:
    assert forked.transduce(tmp_path, "shortlist", finished, "--candidates", 3).code == 0
    before = content(finished)
    shown = train(tiny_recipe, finished)
    assert content(finished) == before
    assert load_model_file(finished).lexicon is not None
    for said in (
        "finished, and left as it is",
        "all 24 updates done",
        "training.updates=48",
    ):
        assert said in shown
    assert "Going on" not in shown
    told = forked.transduce(tmp_path, "train", tiny_recipe, "--run", finished).out
    assert told.count("perplexity") == 1  # the table of its scores, and no second telling
    assert told.count("BLEU") == 2  # its own, and the baseline's


def test_a_model_that_is_cut_short_is_written_again(tiny_recipe: Path, finished: Path) -> None:
    model = finished / "model.safetensors"
    whole = model.read_bytes()
    model.write_bytes(whole[:1000])
    assert "finished, and left as it is" not in train(tiny_recipe, finished)
    assert model.read_bytes() == whole


def test_a_folder_that_is_no_run_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    for arguments in (["corpus"], ["corpus", "--finish"]):
        done = forked.transduce(tmp_path, "train", tmp_path / arguments[0], *arguments[1:])
        assert done.code == 2
        assert "expected a recipe or a run directory; this folder is neither: it holds no recipe.toml" in done.err


def test_a_finished_run_needs_neither_checkpoints_nor_data(tiny_recipe: Path, finished: Path, tmp_path: Path) -> None:
    shutil.rmtree(finished / "checkpoints")
    assert "left as it is" in train(tiny_recipe, finished, f"data.root={tmp_path}")
    assert "its checkpoints are gone" in refused(tiny_recipe, finished, "training.updates=30")


def test_a_finished_run_of_another_recipe_or_of_other_data_is_refused(
    tiny_recipe: Path, tiny_corpus: Path, finished: Path, tmp_path: Path
) -> None:
    before = content(finished)
    assert "these keys differ: training.seed." in refused(tiny_recipe, finished, "training.seed=2")
    moved = shutil.copytree(tiny_corpus, tmp_path / "moved")
    (moved / "valid.words").write_text("nine\n" * 30, encoding="utf-8")
    assert "changed since: validation.sha256" in refused(tiny_recipe, finished, f"data.root={moved}")
    assert content(finished) == before


def test_a_key_that_came_after_a_run_does_not_make_it_another_one(tiny_recipe: Path, finished: Path) -> None:
    noted = finished / "recipe.toml"
    text = noted.read_text(encoding="utf-8")
    before = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("parallel = "))
    assert before != text
    write_text(noted, before)
    recipe = load_recipe(tiny_recipe)
    assert changed_keys(finished, recipe) == []
    sharded = recipe.model_copy(update={"training": recipe.training.model_copy(update={"parallel": "fsdp"})})
    assert changed_keys(finished, sharded) == ["training.parallel"]


def test_a_finished_run_is_not_tested_by_another_search(tiny_recipe: Path, finished: Path) -> None:
    before = content(finished)
    assert "search.beam: a finished run is not tested again" in train(tiny_recipe, finished, "search.beam=2")
    assert content(finished) == before


# ---- further than planned --------------------------------------------------------------------------------------------


def test_more_updates_go_on_by_the_schedule_of_all_of_them(tiny_recipe: Path, finished: Path, tmp_path: Path) -> None:
    assert forked.transduce(tmp_path, "shortlist", finished, "--candidates", 3).code == 0
    first = report(finished)
    shown = train(tiny_recipe, finished, "training.updates=48", "training.log_every=1")
    assert "Going on after update 24." in shown
    assert "training.updates is 48 now, and was 24. The cosine schedule is that of the new limits from here" in shown
    config = load_recipe(tiny_recipe, ["training.updates=48"]).training
    events = [each for each in read_log(finished / "log.jsonl") if each["event"] == "train" and each["update"] > 24]
    assert [each["update"] for each in events] == list(range(25, 49))
    assert [each["learning_rate"] for each in events] == [learning_rate(config, each["update"]) for each in events]
    assert report(finished)["training"]["updates"] == 48
    assert report(finished)["progress"]["raised"] == [[24, 24]]
    assert json.loads((finished / "report-00000024.json").read_text()) == first
    file = load_model_file(finished)
    assert file.provenance["raised"] == [[24, 24]]
    assert file.lexicon is not None  # it is of the data, not of the weights
    assert "left as it is" in train(tiny_recipe, finished, "training.updates=48")


def test_what_goes_on_further_is_repeated_exactly(
    tiny_recipe: Path, finished: Path, interrupted: Path, tmp_path: Path
) -> None:
    more = "training.updates=30"
    again = Path(shutil.copytree(finished, tmp_path / "again"))
    train(tiny_recipe, finished, more)
    fate = Fate(signal=signal.SIGTERM, at=26)
    assert forked.transduce(tmp_path, "train", tiny_recipe, more, "--run", again, fate=fate).code == 130
    assert not (again / "report.json").exists()  # so that nobody takes it for finished
    assert "was 24" not in train(tiny_recipe, again, more)
    assert sha256(again) == sha256(finished)
    assert "after update 10" in train(tiny_recipe, interrupted, more)  # and from one that was stopped
    assert load_model_file(interrupted).provenance["raised"] == [[10, 24]]


def test_limits_may_be_raised_and_not_lowered(tiny_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    idle = ("training.learning_rate=1e-12", "training.best=bleu", "training.validate_every=3")
    train(tiny_recipe, run, *idle, "training.patience=2")
    assert report(run)["training"]["updates"] == 9
    train(tiny_recipe, run, *idle, "training.patience=3")
    assert report(run)["training"]["updates"] == 12
    said = refused(tiny_recipe, run, *idle, "training.patience=2", "training.updates=23")
    assert "training.patience, training.updates" in said
    assert "may be raised, but not lowered" in said
    train(tiny_recipe, run, *idle)  # without any
    assert report(run)["training"]["updates"] == 24


# ---- stopped, and finished early -------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", ["the run", "its recipe", "the recipe and --run"])
def test_a_training_that_was_stopped_is_finished_early_and_goes_on(
    tiny_recipe: Path,
    tiny_run: Path,
    interrupted: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    named: str,
) -> None:
    with pytest.raises(InputError, match=f"this run is not finished.*transduce train --finish {interrupted}"):
        transduce.load(interrupted)
    before = {path: kept for path, kept in content(interrupted).items() if "checkpoints" in path or "log" in path}
    arguments: dict[str, list[object]] = {
        "the run": [interrupted],
        "its recipe": [interrupted / "recipe.toml"],
        "the recipe and --run": [tiny_recipe, "--run", interrupted],
    }
    command("train", "--finish", *arguments[named], monkeypatch=monkeypatch)
    shown = capsys.readouterr().out
    assert "finished early, after update 10 of 24" in shown
    assert "the best validation so far, after update 6" in shown
    pipeline = transduce.load(interrupted)
    assert pipeline.metrics["update"] == 6
    assert len(pipeline.predict(["1 2"])) == 1
    assert "scores" in report(interrupted)["tests"]["held_out"]
    assert {path: kept for path, kept in content(interrupted).items() if path in before} == before
    assert "Going on after update 10." in train(tiny_recipe, interrupted)
    assert sha256(interrupted) == sha256(tiny_run)
    assert (interrupted / "report-00000010.json").exists()


def test_what_cannot_be_finished_says_why(tiny_recipe: Path, finished: Path, tmp_path: Path) -> None:
    display = Display(Console(file=StringIO()))
    with pytest.raises(InputError, match="there is no checkpoint yet"):
        finish_training(load_recipe(tiny_recipe), tmp_path / "nowhere", display)
    assert not (tmp_path / "nowhere").exists()
    before = content(finished)
    finish_training(load_recipe(tiny_recipe), finished, display)  # it is
    assert content(finished) == before
    with pytest.raises(InputError, match=r"these keys differ: model\.dropout"):
        finish_training(load_recipe(tiny_recipe, ["model.dropout=0.3"]), finished, display)


# ---- moved, linked ---------------------------------------------------------------------------------------------------


def test_a_run_is_the_same_however_its_data_is_reached(
    tiny_recipe: Path,
    tiny_run: Path,
    tiny_corpus: Path,
    interrupted: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "link").symlink_to(tiny_corpus)
    monkeypatch.chdir(tmp_path)
    one = f"data.train=[{{source='{tiny_corpus}/train.digits', target='../{tiny_corpus.name}/train.words'}}]"
    for ways in (["data.root=link"], [f"data.root={os.path.relpath(tiny_corpus)}"], [one]):
        run = Path(shutil.copytree(interrupted, tmp_path / "copy"))
        assert "Going on after update 10." in train(tiny_recipe, run, *ways)
        assert sha256(run) == sha256(tiny_run)
        assert str(tiny_corpus).encode() not in (run / "model.safetensors").read_bytes()
        assert str(tiny_corpus) not in (run / "report.json").read_text()
        shutil.rmtree(run)


def test_a_tokenizer_or_start_that_changed_is_noticed(tiny_recipe: Path, tiny_run: Path, tmp_path: Path) -> None:
    start = Path(shutil.copytree(tiny_run, tmp_path / "start"))
    (tmp_path / "link").symlink_to(start)
    fate = Fate(signal=signal.SIGTERM, at=10)
    started = forked.transduce(
        tmp_path, "train", tiny_recipe, f"training.start={start}", "--run", tmp_path / "run", fate=fate
    )
    assert started.code == 130, started.shown
    other = Path(shutil.copytree(tmp_path / "run", tmp_path / "other"))
    assert "Going on after update 10." in train(tiny_recipe, tmp_path / "run", f"training.start={tmp_path / 'link'}")
    train(tiny_recipe, start, "training.updates=25")
    assert "changed since: start" in refused(tiny_recipe, other, f"training.start={start}")


def test_teachers_and_student_are_the_same_wherever_they_lie(
    tiny_recipe: Path, tiny_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = tmp_path / "a" / "b" / "c"
    far.mkdir(parents=True)
    shutil.copytree(tiny_corpus, far / "corpus")
    (tmp_path / "link").symlink_to(far / "corpus")
    monkeypatch.chdir(tmp_path)
    runs = {"plain": f"data.root={tiny_corpus}", "linked": "data.root=link", "x/y/deeper": f"data.root={far}/corpus"}
    for run, root in runs.items():
        train(tiny_recipe, Path(run), *TEACHERS, root, "training.updates=6")
    assert len({sha256(Path(run)) for run in runs}) == 1
    assert len({sha256(Path(run) / "teachers" / "3") for run in runs}) == 1
    held = (tmp_path / "plain" / "model.safetensors").read_bytes()
    assert not [name for name in (str(tmp_path), str(tiny_corpus), "taught/", "../") if name.encode() in held]
    before = content(tmp_path / "linked")
    for root in runs.values():
        assert "left as it is" in train(tiny_recipe, tmp_path / "linked", *TEACHERS, root, "training.updates=6")
    assert content(tmp_path / "linked") == before
    (tmp_path / "linked").rename(tmp_path / "moved")
    longer = train(tiny_recipe, Path("moved"), *TEACHERS, "data.root=link", "training.updates=8")
    assert "Going on after update 6." in longer
    other = ["teachers.search={beam=1, min_length=3}", "data.root=link", "training.updates=8"]
    assert "different: search" in refused(tiny_recipe, Path("moved"), *TEACHERS[:2], *other)


# ---- alone -----------------------------------------------------------------------------------------------------------


def test_a_second_training_is_refused_and_told_who_is_there(tiny_recipe: Path, interrupted: Path) -> None:
    before = content(interrupted)
    with run_lock(interrupted):
        ended = forked.transduce(interrupted.parent, "train", tiny_recipe, "--run", interrupted)
        finish = forked.transduce(interrupted.parent, "train", "--finish", interrupted)
    for done in (ended, finish):
        assert done.code == 2, done.shown
        assert f"another training is running there (process {os.getpid()} on " in done.err
    assert content(interrupted) == before
    with run_lock(interrupted):
        pass  # free again
    assert content(interrupted) == before


def test_a_lock_that_a_killed_training_left_is_no_lock(tiny_recipe: Path, tiny_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = forked.start(tmp_path, "train", tiny_recipe, "--run", run)
    while not read_log(run / "log.jsonl"):
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    forked.ended(process, tmp_path)
    assert (run / ".lock").exists()
    train(tiny_recipe, run)
    assert not (run / ".lock").exists()
    assert sha256(run) == sha256(tiny_run)


def test_a_training_may_wait_for_one_that_saves(tiny_recipe: Path, tiny_run: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    fate = Fate(signal=signal.SIGTERM, at=20)
    process = forked.start(tmp_path, "train", tiny_recipe, "--run", run, fate=fate)
    while not read_log(run / "log.jsonl"):
        time.sleep(0.002)
    run_training(load_recipe(tiny_recipe), run, Display(Console(file=StringIO())), patience=60)
    forked.ended(process, tmp_path)
    assert sha256(run) == sha256(tiny_run)


@pytest.mark.parametrize("below", ["file", "file/below", "x" * 300])
def test_an_impossible_directory_is_refused(tiny_recipe: Path, tmp_path: Path, below: str) -> None:
    (tmp_path / "file").write_text("mine")
    assert "Choose another one with --run" in refused(tiny_recipe, tmp_path / below)
    assert (tmp_path / "file").read_text() == "mine"


def test_what_lies_in_a_run_is_found_where_the_run_lies(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the translations of teachers do; what lies elsewhere stays where it is."""
    monkeypatch.chdir(tmp_path)
    run, pairs = Path("runs/one"), {"source": str(tmp_path / "runs/one/t/source"), "target": "/elsewhere/target"}
    table = load_recipe(tiny_recipe).to_table()
    table["data"] |= {"root": "runs/one/data", "train": [pairs, {"file": "a.tsv"}]}
    claim(run, parse_recipe(table, "tiny"))
    noted = tomllib.loads((run / "recipe.toml").read_text())["data"]
    assert noted["root"] == "{run}/data"
    assert [each.get("source") for each in noted["train"]] == ["{run}/t/source", None]
    claim(run, load_recipe(run / "recipe.toml"))
    moved = run.rename(tmp_path / "moved")
    data = load_recipe(moved / "recipe.toml").data
    assert isinstance(data, PairData)
    first, second = data.train
    assert (data.root, first.source) == (str(moved / "data"), str(moved / "t/source"))
    assert (first.target, second.file) == ("/elsewhere/target", "a.tsv")
    assert not changed_keys(moved, load_recipe(moved / "recipe.toml"))
