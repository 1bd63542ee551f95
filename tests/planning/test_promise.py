"""Times as people write them, and as they are told."""

import pytest

from transduce.core.errors import InputError
from transduce.planning.promise import in_words, parse_minutes, promise, taken
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
    found = promise(Speed(update=0.5, validation=10, tests=30, start=5), updates=1000, validate_every=300)
    assert found.total == 5 + 500 + 4 * 10 + 30
    assert (
        found.sentence()
        == "This will take about 10 minutes: 40 seconds of them for validations, 30 seconds for the tests."
    )


def test_what_it_took_is_training_and_tests() -> None:
    report = {"training": {"seconds": 100.04}, "finishing_seconds": 20.5}
    assert taken(report, 110.0) == {"promised_seconds": 110.0, "took_seconds": 120.5}
