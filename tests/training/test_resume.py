"""A training that was stopped, killed or damaged ends in the same bytes as one that never was."""

import json
import shutil
import signal
import sys
from pathlib import Path

import pytest

from forked import UNHARMED, Ended, Fate, transduce
from trained import sha256
from transduce.runtime.event_log import read_log

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are killed with POSIX signals")

BF16 = "training.precision=bf16"


def train(recipe: Path, run: Path, *overrides: str, fate: Fate = UNHARMED) -> Ended:
    """`transduce train RECIPE OVERRIDES --run RUN`, to its end."""
    return transduce(run.parent, "train", recipe, *overrides, "--run", run, fate=fate)


def updates(run: Path) -> list[tuple[str, int]]:
    return [(event["event"], event["update"]) for event in read_log(run / "log.jsonl")]


def logged(run: Path) -> list[dict[str, object]]:
    """All that the log says but how long it took."""
    times = ("seconds", "tokens_per_second")
    return [{key: value for key, value in event.items() if key not in times} for event in read_log(run / "log.jsonl")]


def checkpoints(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "checkpoints").glob("update-*.safetensors"))


@pytest.fixture
def interrupted(interrupted_run: Path, tmp_path: Path) -> Path:
    """A run that was stopped after update 10, with the checkpoints of updates 8 and 10."""
    run = Path(shutil.copytree(interrupted_run, tmp_path / "run"))
    assert checkpoints(run) == ["update-00000008.safetensors", "update-00000010.safetensors"]
    return run


def resumed(recipe: Path, run: Path) -> str:
    found = train(recipe, run)
    assert found.code == 0, found.shown
    return found.shown


# The tensor files of this training, in order: update 4, best 6, update 8, best 12, update 12, update 16, ...
@pytest.mark.parametrize(
    "deaths",
    [(2, 2, 5, 1), pytest.param((5, 7), marks=pytest.mark.slow)],
    ids=["in a best", "between best and checkpoint"],
)
def test_killed_in_the_middle_of_writing(tiny_recipe: Path, tiny_run: Path, tmp_path: Path, deaths: list[int]) -> None:
    run = tmp_path / "run"
    for number in deaths:
        assert train(tiny_recipe, run, fate=Fate(dies_in_write=number)).code == -signal.SIGKILL
        assert not (run / "model.safetensors").exists()
    resumed(tiny_recipe, run)
    assert sha256(run) == sha256(tiny_run)
    assert logged(run) == logged(tiny_run)  # every third update, with checkpoints between
    assert not list(run.rglob("*.tmp"))


def test_killed_in_bf16(tiny_recipe: Path, tmp_path: Path) -> None:
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert train(tiny_recipe, whole, BF16).code == 0
    assert train(tiny_recipe, run, BF16, fate=Fate(dies_once_there=run / "log.jsonl")).code == -signal.SIGKILL
    assert read_log(run / "log.jsonl")
    assert not (run / "model.safetensors").exists()
    assert train(tiny_recipe, run, BF16).code == 0
    assert sha256(run) == sha256(whole)


def test_embeddings_are_counted_once(tiny_recipe: Path, tiny_run: Path, tmp_path: Path) -> None:
    counted, whole, run = "training.embeddings=cooccurrence", tmp_path / "whole", tmp_path / "run"
    assert train(tiny_recipe, whole, counted).code == 0
    assert sha256(whole) != sha256(tiny_run)
    assert train(tiny_recipe, run, counted, fate=Fate(signal=signal.SIGTERM, at=10)).code == 130
    assert "counting word vectors" not in train(tiny_recipe, run, counted).shown
    assert sha256(run) == sha256(whole)


def test_what_stands_for_the_vocabulary_is_drawn_again(tiny_recipe: Path, tiny_run: Path, tmp_path: Path) -> None:
    sampled, whole, run = "training.sampled_words=5", tmp_path / "whole", tmp_path / "run"
    assert train(tiny_recipe, whole, sampled).code == 0
    assert sha256(whole) != sha256(tiny_run)
    assert train(tiny_recipe, run, sampled, fate=Fate(signal=signal.SIGTERM, at=10)).code == 130
    assert train(tiny_recipe, run, sampled).code == 0
    assert sha256(run) == sha256(whole)


def test_running_statistics_are_resumed_as_weights_are(tiny_recipe: Path, tmp_path: Path) -> None:
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert train(tiny_recipe, whole, "model.norm_kind=batch").code == 0
    assert train(tiny_recipe, run, "model.norm_kind=batch", fate=Fate(signal=signal.SIGTERM, at=10)).code == 130
    assert train(tiny_recipe, run, "model.norm_kind=batch").code == 0
    assert sha256(run) == sha256(whole)
    assert b"norm.variance_D" in (run / "model.safetensors").read_bytes()


@pytest.mark.parametrize("number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_signal_saves_and_exits_130(
    tiny_recipe: Path, tiny_run: Path, tmp_path: Path, number: signal.Signals
) -> None:
    run = tmp_path / "run"
    found = train(tiny_recipe, run, fate=Fate(signal=number, at=7))
    assert found.code == 130
    assert f"Stopped by {number.name} after update 7; saved." in found.shown
    assert checkpoints(run)[-1] == "update-00000007.safetensors"
    assert "Going on after update 7." in resumed(tiny_recipe, run)
    assert sha256(run) == sha256(tiny_run)


def test_a_signal_in_the_last_update_does_not_stop_what_is_finished(
    tiny_recipe: Path, tiny_run: Path, tmp_path: Path
) -> None:
    found = train(tiny_recipe, tmp_path / "run", fate=Fate(signal=signal.SIGTERM, at=24))
    assert found.code == 0
    assert sha256(tmp_path / "run") == sha256(tiny_run)


@pytest.mark.parametrize("damage", ["a bit", "the end", "everything"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_it_used(
    tiny_recipe: Path, tiny_run: Path, interrupted: Path, damage: str
) -> None:
    newest = interrupted / "checkpoints" / "update-00000010.safetensors"
    content = bytearray(newest.read_bytes())
    content[len(content) // 2] ^= 4
    newest.write_bytes({"a bit": bytes(content), "the end": content[:-7], "everything": b""}[damage])
    shown = resumed(tiny_recipe, interrupted)
    assert str(newest) in shown
    assert "Going back to the checkpoint before it." in shown
    assert "Going on after update 8." in shown
    assert sha256(interrupted) == sha256(tiny_run)


def test_lost_best_weights_cost_their_checkpoints_but_not_the_result(
    tiny_recipe: Path, tiny_run: Path, interrupted: Path
) -> None:
    (interrupted / "checkpoints" / "best-00000006.safetensors").unlink()
    shown = resumed(tiny_recipe, interrupted)
    assert "best-00000006.safetensors" in shown
    assert sha256(interrupted) == sha256(tiny_run)


@pytest.mark.slow
def test_a_damaged_older_checkpoint_disturbs_nobody(tiny_recipe: Path, tmp_path: Path) -> None:
    keep = "training.keep=3"
    whole, run = tmp_path / "whole", tmp_path / "run"
    assert train(tiny_recipe, whole, keep).code == 0
    assert train(tiny_recipe, run, keep, fate=Fate(signal=signal.SIGTERM, at=10)).code == 130
    (run / "checkpoints" / "update-00000008.safetensors").write_bytes(b"no header")
    found = train(tiny_recipe, run, keep)
    assert found.code == 0, found.shown
    assert sha256(run) == sha256(whole)


def test_a_full_disk_is_told_and_the_last_checkpoint_stays(
    tiny_recipe: Path, tiny_run: Path, interrupted: Path
) -> None:
    newest = interrupted / "checkpoints" / "update-00000010.safetensors"
    before = newest.read_bytes()
    found = train(tiny_recipe, interrupted, fate=Fate(largest_file=len(before) // 2))
    assert found.code == 1
    assert "could not be written: File too large" in found.shown
    assert "Traceback" not in found.shown
    assert newest.read_bytes() == before
    resumed(tiny_recipe, interrupted)
    assert sha256(interrupted) == sha256(tiny_run)


def test_seed_and_text_decide_the_bytes_not_their_folder_nor_the_cache(
    tiny_recipe: Path, tiny_corpus: Path, tiny_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = shutil.copytree(tiny_corpus, tmp_path / "moved")
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path / "empty"))
    assert train(tiny_recipe, tmp_path / "same", f"data.root={moved}").code == 0
    assert train(tiny_recipe, tmp_path / "other", "training.seed=2").code == 0
    assert sha256(tmp_path / "same") == sha256(tiny_run)
    assert sha256(tmp_path / "other") != sha256(tiny_run)


def test_a_run_of_another_recipe_is_refused_with_the_keys(tiny_recipe: Path, interrupted: Path) -> None:
    before = (interrupted / "recipe.toml").read_bytes()
    found = train(tiny_recipe, interrupted, "training.seed=2", "model.dropout=0.3", "search.beam=4")
    assert found.code == 2
    assert "these keys differ: model.dropout, training.seed." in found.shown
    assert (interrupted / "recipe.toml").read_bytes() == before


def test_a_run_whose_text_has_changed_is_refused_with_the_files(
    tiny_recipe: Path, tiny_corpus: Path, interrupted: Path, tmp_path: Path
) -> None:
    moved = shutil.copytree(tiny_corpus, tmp_path / "moved")
    (moved / "valid.words").write_text("nine\n" * 30, encoding="utf-8")
    before = {name: (interrupted / name).read_bytes() for name in ("recipe.toml", "data.json")}
    found = train(tiny_recipe, interrupted, f"data.root={moved}", "training.updates=90")
    assert found.code == 2
    assert "changed since: validation.sha256" in found.shown
    assert before == {name: (interrupted / name).read_bytes() for name in before}


def test_a_finished_run_stays_as_it_is(tiny_recipe: Path, tiny_run: Path, tmp_path: Path) -> None:
    run = shutil.copytree(tiny_run, tmp_path / "run")
    resumed(tiny_recipe, run)
    assert sha256(run) == sha256(tiny_run)
    assert (run / "log.jsonl").read_bytes() == (tiny_run / "log.jsonl").read_bytes()
    (run / "model.safetensors").unlink()
    resumed(tiny_recipe, run)
    assert sha256(run) == sha256(tiny_run)


def test_patience_is_the_default_where_updates_would_be_many_epochs(tiny_recipe: Path, tmp_path: Path) -> None:
    """Of a recipe that says no end: it is told, and stays ended."""
    unended = tmp_path / "unended.toml"
    unended.write_text(tiny_recipe.read_text(encoding="utf-8").replace("updates = 24\n", ""), encoding="utf-8")
    idle = ("training.learning_rate=1e-12", "training.best=bleu", "training.validate_every=3")
    run = tmp_path / "run"
    shown = train(unended, run, *idle).shown
    assert "epochs of this data, so training stops after 5 validations without improvement" in shown
    assert "Training ended: no better validation in 5." in shown
    assert updates(run)[-1] == ("validation", 18)  # BLEU 0 at update 3, no better five times
    first = sha256(run)
    assert "Training ended: no better validation in 5." in train(unended, run, *idle).shown
    assert sha256(run) == first


def test_patience_ends_training_and_stays_ended(tiny_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    idle = ("training.learning_rate=1e-12", "training.best=bleu", "training.patience=2", "training.validate_every=3")
    shown = train(tiny_recipe, run, *idle).shown
    assert "Training ended: no better validation in 2." in shown  # BLEU 0 at update 3, no better at 6 and 9
    assert updates(run)[-1] == ("validation", 9)
    assert checkpoints(run)[-1] == "update-00000009.safetensors"
    first = sha256(run)
    assert "Training ended: no better validation in 2." in train(tiny_recipe, run, *idle).shown
    assert sha256(run) == first
    assert json.loads((run / "report.json").read_text())["validation"]["update"] == 3


@pytest.mark.slow
def test_minutes_end_training_and_stay_used(tiny_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    brief = ("training.minutes=0.01", "training.updates=100000", "training.validate_every=100000")
    shown = train(tiny_recipe, run, *brief).shown
    assert "Training ended: 0.01 minutes used." in shown
    report = json.loads((run / "report.json").read_text())
    seconds = report["training"]["seconds"]
    assert seconds >= 0.6
    assert updates(run)[-1] == ("validation", report["training"]["updates"])
    first = sha256(run)
    train(tiny_recipe, run, *brief)
    assert sha256(run) == first
    longer = train(tiny_recipe, run, f"training.minutes={2 * seconds / 60}", *brief[1:])  # more time may be given later
    assert "Going on after update" in longer.shown
    assert json.loads((run / "report.json").read_text())["training"]["updates"] > report["training"]["updates"]
