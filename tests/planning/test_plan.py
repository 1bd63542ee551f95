"""Planning: what it takes itself counts in the time that is given, and no measurement ends a training."""

from collections.abc import Callable
from io import StringIO
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from transduce.core.errors import InputError
from transduce.data.pairs.inputs import Named
from transduce.planning import plan
from transduce.planning.plan import TrainingPlan
from transduce.planning.speed import Speed
from transduce.training.display import Display

USUAL = Speed(update=0.1, validation=1.0, tests=2.0, start=0.0)
DESERVED = 990  # updates, of these 600 pairs

Planned = Callable[..., tuple[TrainingPlan, str]]


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planned:
    """A plan in so many minutes, and what was told, where each measurement takes half a minute and finds this."""
    now = [100.0]
    monkeypatch.setattr(plan.time, "monotonic", lambda: now[0])

    def make(
        minutes: float | None, *speeds: Speed, pairs: int = 600, model: dict[str, Any] | None = None, **training: Any
    ) -> tuple[TrainingPlan, str]:
        (tmp_path / "a.tsv").write_text("".join(f"ein {n} haus\tthe {n} house\n" for n in range(pairs)), "utf-8")
        found, limits = chain(speeds, repeat(speeds[-1])), list[float]()

        def measure(recipe: object, display: object, seconds: float) -> Speed:
            limits.append(seconds)
            now[0] += 30
            return next(found)

        monkeypatch.setattr(plan, "measure", measure)
        told = Console(file=StringIO(), width=500)
        given = {"training": training, **({"model": model} if model else {})}
        made = plan.make_plan(Named(source=tmp_path / "a.tsv"), given, minutes, Display(told))
        assert sum(limits) <= 0.1 * 60 * (minutes or 60)
        return made, told.file.getvalue()  # type: ignore[attr-defined]

    return make


def reason(made: TrainingPlan, key: str) -> str:
    return next(each.reason for each in made.decisions if each.key == key)


def test_looking_and_measuring_count_in_the_time_given(planned: Planned) -> None:
    """Of 120 seconds, 95 % are planned for: 114, of which 30 are over; 2 are for tests and 1 for the last validation.

    Of the 81 left, 12 are for validations, so 690 updates fit.
    """
    made, _ = planned(2.0, USUAL)
    training = made.table["training"]
    assert training["minutes"] == 1.35
    assert training["updates"] == 2 * DESERVED
    assert (training["validate_every"], training["warmup"]) == (690 // 12, 690 // 20)
    assert made.promised == (0.0, pytest.approx(69), 13, 2.0, 30.0)
    assert "60 seconds" not in reason(made, "training.updates")
    assert "2 minutes end it before, after about 690" in reason(made, "training.updates")


def test_without_a_time_the_data_decides(planned: Planned) -> None:
    made, _ = planned(None, USUAL)
    training = made.table["training"]
    assert "minutes" not in training
    assert training["updates"] == DESERVED
    assert reason(made, "training.updates") == "grows with the cube root of the text"


def test_a_slow_moment_while_measuring_ends_no_training(planned: Planned) -> None:
    """What the data deserves, and the time, are the only ends; however slow the machine was for a moment."""
    slow = USUAL._replace(update=40.0)
    for minutes, most in ((8.0, 2 * DESERVED), (None, DESERVED)):
        made, _ = planned(minutes, slow)
        training = made.table["training"]
        assert training["updates"] == most
        assert training["minutes"] <= 0.95 * (minutes or 60)
    assert "60 minutes, the most without --time, end it before, after about 85" in reason(made, "training.updates")


def test_time_for_more_than_helps_ends_before_it_is_over(planned: Planned) -> None:
    made, _ = planned(60.0, USUAL)
    assert made.table["training"]["updates"] == 2 * DESERVED
    assert reason(made, "training.updates") == f"2 times the {DESERVED} that the data deserves; more would not help"
    assert made.promised.updates == pytest.approx(2 * DESERVED * 0.1)


@pytest.mark.parametrize("speed", [USUAL._replace(tests=1000.0), USUAL._replace(validation=400.0, update=90.0)])
def test_something_is_trained_however_long_the_tests_take(planned: Planned, speed: Speed) -> None:
    """Where there is no room for the tests, a quarter of the time is for training, and that is told."""
    made, told = planned(8.0, speed)
    assert made.table["training"]["minutes"] == 2.0
    assert made.promised.total > 8 * 60
    assert "8 minutes are too short for all" in told
    assert "2 minutes are for training nevertheless" in told
    assert made.promised.updates >= speed.update


def test_what_fits_is_not_called_short(planned: Planned) -> None:
    assert "too short" not in planned(2.0, USUAL)[1]


def test_updates_that_are_chosen_end_a_training(planned: Planned) -> None:
    made, told = planned(8.0, USUAL, updates=5000)
    training = made.table["training"]
    assert training["updates"] == 5000
    assert reason(made, "training.updates") == "chosen by you"
    assert training["minutes"] == pytest.approx((0.95 * 480 - 30 - 3) / 60, abs=0.01)
    assert training["validate_every"] == 4110 // 12  # of those that fit
    assert "smaller" not in told
    assert "minutes" not in planned(None, USUAL._replace(update=9.0), updates=5000)[0].table["training"]


def test_too_short_a_time_makes_the_model_smaller_until_half_of_the_updates_fit(planned: Planned) -> None:
    """2,000 pairs deserve a model 128 wide and 1,500 updates; the smallest is 64 wide."""
    wide, narrow = USUAL._replace(update=1.0), USUAL._replace(update=0.4)
    made, told = planned(12.0, wide, narrow, pairs=2000)
    assert made.table["model"]["d_model"] == 64
    assert told.count("A smaller one is tried.") == 1
    assert made.promised.updates == pytest.approx(1520 * 0.4)
    enough = USUAL._replace(update=0.7)
    assert planned(12.0, enough, pairs=2000)[0].table["model"]["d_model"] == 128
    chosen = {"dropout": 0.1}
    assert planned(12.0, wide, narrow, pairs=2000, model=chosen)[0].table["model"]["d_model"] == 128


def test_a_second_is_a_time(planned: Planned) -> None:
    assert planned(1 / 60, USUAL)[0].table["training"]["minutes"] == 0.01


def test_a_smaller_model_is_not_measured_where_the_time_for_that_is_over(planned: Planned) -> None:
    """A tenth of 8 minutes is less than two measurements of half a minute."""
    made, _ = planned(8.0, USUAL._replace(update=0.6), USUAL._replace(update=99.0), pairs=2000)
    assert made.table["model"]["d_model"] == 64
    # a third of the work, 2 layers of 64 for 3 of 128; 456 - 30 seconds, less 2 for tests and 13 / 3 for validations
    assert made.promised.updates == pytest.approx(2090 * 0.2)


@pytest.mark.parametrize("pairs", [3, 49])
def test_few_pairs_are_refused_with_what_is_needed(planned: Planned, pairs: int) -> None:
    with pytest.raises(InputError, match=f"expected at least 50 pairs .* found {pairs}. Add more: .* hundreds"):
        planned(None, USUAL, pairs=pairs)


def test_fifty_pairs_are_enough(planned: Planned) -> None:
    assert planned(None, USUAL, pairs=50)[0].table["data"]["hold_out"] == {"validation": 2, "test": 2}


def test_some_hundreds_of_pairs_are_told_to_be_too_few(planned: Planned) -> None:
    said = "pairs are too few for a useful model: you need at least 500, preferably thousands."
    assert f"\n60 {said}" in planned(None, USUAL, pairs=60)[1]
    assert said not in planned(None, USUAL, pairs=500)[1]
