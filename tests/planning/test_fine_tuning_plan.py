"""What is decided for a training from a model that translates already."""

import shutil
from pathlib import Path

import pytest

from trained import shown
from transduce.data.pairs.inputs import Named
from transduce.planning.decisions import Decision
from transduce.planning.fine_tuning import affordable
from transduce.planning.plan import TrainingPlan, make_plan
from transduce.planning.speed import Speed, _with_replay
from transduce.recipe.training import Replay

pytestmark = pytest.mark.usefixtures("briefly_measured")


def plan_from(corpus: Path, start: Path | None, minutes: float | None = None, **given: object) -> TrainingPlan:
    named = Named(source=corpus / "train.digits", target=corpus / "train.words")
    started = {"training": {"start": str(start)}} if start else {}
    return make_plan(named, {**started, **given}, minutes, shown(), "fine")


def test_it_learns_slowly_and_is_shown_what_it_knew(tiny_run: Path, tiny_corpus: Path, tmp_path: Path) -> None:
    alone = Path(shutil.copy(tiny_run / "model.safetensors", tmp_path / "alone.safetensors"))
    usual = plan_from(tiny_corpus, None).recipe.training
    for start, minutes, kind in ((tiny_run, None, "learnt"), (alone, 0.5, "generated")):
        plan = plan_from(tiny_corpus, start, minutes)
        training, replay = plan.recipe.training, plan.recipe.replay
        assert replay is not None and replay.kind == kind
        assert training.learning_rate == pytest.approx(usual.learning_rate / 10)
        assert training.updates == 250 < usual.updates / 2
        assert training.label_smoothing == 0.1
        assert plan.promised.start > 0
    without = plan_from(tiny_corpus, alone, replay="none").recipe
    assert without.replay is None and without.training.updates == 250


def test_a_model_writes_no_more_than_it_has_time_for() -> None:
    def decided(kind: str) -> list[Decision]:
        return [Decision("replay.kind", kind, ""), Decision("replay.pairs", 2000, "")]

    assert [affordable(decided("generated"), most)[1].value for most in (10, 700, 5000)] == [200, 700, 2000]
    assert affordable(decided("learnt"), 10) == decided("learnt")


def test_what_is_replayed_takes_time() -> None:
    speed = Speed(update=1.0, validation=2.0, tests=3.0, start=4.0, sentence=0.01)
    written, learnt = (_with_replay(speed, Replay(kind=kind, pairs=90, kept=10)) for kind in ("generated", "learnt"))
    assert written.validation == learnt.validation == pytest.approx(2.0 + 1.3 * 10 * 0.01)
    assert learnt.start == pytest.approx(4.0 + learnt.validation)  # what the first model can do is measured
    assert written.start == pytest.approx(learnt.start + 2.0 * 100 * 0.01)
