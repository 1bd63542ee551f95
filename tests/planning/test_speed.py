"""The speed is measured within the time that there is for it, and no slow moment decides."""

from collections.abc import Callable

import pytest

from transduce.planning import speed
from transduce.planning.speed import Speed, of_a_batch, steady, timed


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets seconds pass; there is no other clock."""
    now = [100.0]
    monkeypatch.setattr(speed.time, "perf_counter", lambda: now[0])

    def pass_(seconds: float) -> None:
        now[0] += seconds

    return pass_


@pytest.mark.parametrize(
    ("each", "limit", "made"),
    [
        (0.01, float("inf"), 100),  # the most
        (0.25, float("inf"), 20),  # of five seconds
        (2.0, float("inf"), 6),  # the fewest
        (2.0, 8.0, 1),  # four in all, the first three of which are not counted
        (60.0, 8.0, 1),
        (60.0, 0.0, 1),  # always one
    ],
)
def test_updates_are_timed_as_long_as_there_is_time(
    each: float, limit: float, made: int, clock: Callable[[float], None]
) -> None:
    assert timed(lambda: clock(each), limit) == pytest.approx([each] * made)


def test_the_first_updates_are_slow_and_do_not_count(clock: Callable[[float], None]) -> None:
    seconds = iter([9.0, 9.0, 9.0, *[2.0] * 6])
    assert timed(lambda: clock(next(seconds)), float("inf")) == [2.0] * 6


def test_where_there_is_time_for_slow_updates_alone_the_last_counts(clock: Callable[[float], None]) -> None:
    seconds = iter([9.0, 5.0])
    assert timed(lambda: clock(next(seconds)), 10.0) == [5.0]


def test_one_slow_moment_does_not_decide() -> None:
    assert steady([0.1] * 20) == pytest.approx(0.1)
    assert steady([0.1] * 9 + [30.0]) == pytest.approx(0.11)
    assert steady([0.08, 0.1, 0.15]) == pytest.approx(0.11)  # long and short batches count as they are


@pytest.mark.parametrize(
    ("few", "limit", "counts", "found"),
    [
        (0.05, float("inf"), [2, 64], 0.002),
        (0.05, 0.41, [2, 64], 0.002),  # both take 0.1 + 0.3 seconds, by what is usual
        (0.05, 0.39, [2], 3 * 0.1 / 64),
        (5.0, 0.0, [2], 3 * 10.0 / 64),
    ],
)
def test_many_sentences_are_translated_if_there_is_time(
    few: float, limit: float, counts: list[int], found: float
) -> None:
    made = list[int]()

    def each(count: int) -> float:
        made.append(count)
        return few if count == 2 else 0.002

    assert of_a_batch(each, limit) == pytest.approx(found)
    assert made == counts


def test_a_smaller_model_has_less_to_do_but_loads_as_long() -> None:
    found = Speed(update=1.0, validation=8.0, tests=22.0, start=3.0, sentence=0.4).of_a_smaller_model(0.25)
    assert found == (0.25, 2.0, 2.0 + 5.0, 3.0, 0.1)
