"""Exposure bias: errors by position against all least edits, rates against slow sums."""

import itertools

import numpy as np
import pytest

from random_models import language_model, translator
from transduce.inference.teacher_forcing import reports_exposure
from transduce.metrics.error_rate import edits, errors_at
from transduce.metrics.exposure import LEAST, Exposure
from transduce.search.settings import Search


def test_errors_at_positions_add_up_to_the_least_edits() -> None:
    words = ["".join(each) for length in range(5) for each in itertools.product("ab", repeat=length)]
    for said, wanted in itertools.product(words, words):
        found = errors_at(said, wanted)
        assert len(found) == len(wanted) + 1
        assert found.sum() == edits(said, wanted), (said, wanted)
        assert found.min() >= 0


@pytest.mark.parametrize(
    ("said", "wanted", "expected"),
    [
        ("abc", "abc", [0, 0, 0, 0]),
        ("axc", "abc", [0, 1, 0, 0]),
        ("ac", "abc", [0, 1, 0, 0]),
        ("abcde", "abc", [0, 0, 0, 2]),
        ("xabc", "abc", [1, 0, 0, 0]),
        ("", "ab", [1, 1, 0]),
        ("ab", "", [2]),
        ("aba", "bab", [1, 0, 0, 1]),  # an insertion at the end, where a deletion would do as well
    ],
)
def test_where_the_errors_are(said: str, wanted: str, expected: list[int]) -> None:
    assert errors_at(said, wanted).tolist() == expected


def some(count: int) -> Exposure:
    random_ = np.random.default_rng(1)
    lengths = random_.integers(1, 6, count).tolist()
    forced = [random_.integers(0, 2, length + 1) for length in lengths]
    return Exposure(forced, [random_.integers(0, 3, length + 1) for length in lengths], "character")


def test_the_rates_are_the_sums() -> None:
    found = some(40)
    forced, free = sum(map(sum, found.forced)), sum(map(sum, found.free))
    symbols = sum(len(each) - 1 for each in found.forced)
    tallies = found.tallies()
    assert tallies["teacher_forced"].name == "CER, teacher-forced"
    assert tallies["teacher_forced"].value == pytest.approx(100 * forced / symbols)
    assert tallies["exposure_bias"].value == pytest.approx(100 * (free - forced) / symbols)
    low, high = tallies["exposure_bias"].score().interval or (0, 0)
    assert low < tallies["exposure_bias"].value < high
    assert "end:an error where missed" in tallies["teacher_forced"].signature


def test_positions_are_shown_as_far_as_enough_references_reach() -> None:
    found = some(30)
    by_position = found.by_position()
    for place, reached in enumerate(by_position["references"]):
        longer = [row for row, each in enumerate(found.forced) if len(each) > place + 1]
        assert len(longer) == reached >= LEAST
        for name, kind in (("teacher_forced", found.forced), ("free_running", found.free)):
            assert by_position[name][place] == pytest.approx(100 * np.mean([kind[row][place] for row in longer]))
    place = len(by_position["references"])
    assert sum(len(each) > place + 1 for each in found.forced) < LEAST


def test_outputs_are_compared_by_tokens() -> None:
    found = Exposure.of_outputs([np.zeros(3, np.int64)], [["un", "do", "ing"]], [["un", "doing"]], "token")
    assert found.tallies()["exposure_bias"].value == pytest.approx(100.0)  # one replaced, one inserted, of two
    assert found.tallies()["teacher_forced"].name == "token error rate, teacher-forced"


def test_it_is_reported_where_the_decoder_writes_alone() -> None:
    """CTC adds its own score to the decoder's, so its outputs are not those of the teacher-forced decoder."""
    random_ = translator()
    model, task = random_.model, random_.task
    assert reports_exposure(task, model, True, Search())
    assert reports_exposure(task, model, True, None)
    assert not reports_exposure(task, model, True, Search(ctc_weight=0.3))
    assert not reports_exposure(task, model, None, Search())  # of texts only if the recipe asks for it
    poems = language_model()
    assert not reports_exposure(poems.task, poems.model, True, Search())  # nothing is read
