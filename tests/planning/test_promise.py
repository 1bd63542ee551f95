"""Times as people write them, and as they are told."""

import time

import pytest

from transduce.core.errors import InputError
from transduce.planning.promise import Promise, elapsed, in_words, parse_minutes, promise
from transduce.planning.speed import Speed


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("2h", 120),
        ("90m", 90),
        ("1h30m", 90),
        ("1.5h", 90),
        ("45 min", 45),
        ("90s", 1.5),
        (" 1H 5M ", 65),
        ("1d", 1440),
    ],
)
def test_times_are_read(text: str, minutes: float) -> None:
    assert parse_minutes(text) == minutes


@pytest.mark.parametrize("text", ["", "2", "h", "0m", "-1h", "2 weeks", "1h x", "nan"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected a time such as 2h, 90m or 1h30m"):
        parse_minutes(text)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 second"),
        (45, "45 seconds"),
        (90, "90 seconds"),
        (120, "2 minutes"),
        (5000, "83 minutes"),
        (9000, "2.5 hours"),
    ],
)
def test_times_are_told(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def test_a_promise_counts_everything() -> None:
    speed = Speed(update=0.5, validation=10, tests=30, start=5)
    found = promise(speed, updates=1000, validate_every=300, planning=25)
    assert found.total == 5 + 500 + 4 * 10 + 30 + 25
    assert found.sentence() == (
        "This will take about 10 minutes from start to end: 25 seconds for planning, 40 seconds for validations, "
        "30 seconds for the tests, the rest for training."
    )


REPORT = {"training": {"seconds": 100.04}, "finishing_seconds": 20.5}
PROMISED = Promise(start=1, updates=80, validations=8, tests=15, planning=6)


def test_what_it_took_over_several_processes_is_planning_training_and_tests() -> None:
    assert elapsed(REPORT, PROMISED) == {"promised_seconds": 110.0, "took_seconds": 126.5}


def test_what_it_took_in_one_process_is_counted_from_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 1140.0)
    assert elapsed(REPORT, PROMISED, since=1000.0) == {"promised_seconds": 110.0, "took_seconds": 140.0}
