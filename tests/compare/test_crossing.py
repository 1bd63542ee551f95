"""Where two lines cross, and what is said of it, against examples worked out by hand."""

import math
from typing import Any

import pytest

from transduce.compare.axis_tables import Crossing, crossings, sentences


def test_two_straight_lines_cross_where_algebra_says() -> None:
    # 10 + 2 (x - 1) and 20 - 3 (x - 1) are the same at x = 3
    assert crossings([1, 5], [10, 18], [20, 8]) == [Crossing(pytest.approx(3.0), 1, 5, rises=False)]
    assert crossings([1, 5], [20, 8], [10, 18]) == [Crossing(pytest.approx(3.0), 1, 5, rises=True)]


def test_on_a_logarithmic_axis_the_logarithm_is_interpolated() -> None:
    # halfway between 100 and 10,000 in logarithms
    assert crossings([100, 10_000], [1, 3], [2, 2], logarithmic=True)[0].place == pytest.approx(1000)
    assert crossings([100, 10_000], [1, 3], [2, 2])[0].place == pytest.approx(5050)
    third = crossings([1000, 2000], [0, 3], [1, 1], logarithmic=True)[0].place
    assert third == pytest.approx(math.exp(math.log(1000) + math.log(2) / 3))


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ([1, 2, 3], [2, 3, 4], []),
        ([1, 2, 3], [1, 2, 3], []),
        ([1, 2, 3], [2, 2, 4], []),  # they touch
        ([1, 2, 3], [1, 1, 1], []),  # from one point
        ([1, 2, 3], [2, 2, 2], [(20, 10, 30)]),  # at a place
        ([1, 2, 2, 3], [2, 2, 2, 2], [(20, 10, 40)]),  # the same for a while
        ([1, 3, 1], [2, 2, 2], [(15, 10, 20), (25, 20, 30)]),  # there and back
    ],
)
def test_every_crossing_and_no_other(one: list[float], other: list[float], found: list[Any]) -> None:
    places = [10, 20, 30, 40][: len(one)]
    assert [each[:3] for each in crossings(places, one, other)] == found


def figure(values: dict[str, list[list[float]]], **told: Any) -> dict[str, Any]:
    """Of each variant the lines of its seeds, over 1,000, 2,000, .."""
    variants = {
        name: [
            {"at": 1000 * place, "value": sum(runs) / len(runs), "runs": dict(enumerate(runs))}
            for place, runs in enumerate(zip(*lines, strict=True), 1)
        ]
        for name, lines in values.items()
    }
    return {"name": "BLEU", "test": "flickr", "lower_is_better": False, "variants": variants, **told}


AXIS = {"title": "pairs", "places": [1000, 2000, 3000], "logarithmic": False}


def test_a_sentence_says_where_and_how_often_over_the_seeds() -> None:
    rnn = [[10.0, 12, 14], [10, 12, 14], [10, 12, 20], [10, 12, 14]]
    transformer = [[8.0, 11, 20], [8, 13, 20], [8, 11, 19], [8, 11, 16]]
    [said] = sentences(AXIS, figure({"rnn": rnn, "transformer": transformer}))
    gaps = 11.5 - 12, (20 + 20 + 19 + 16) / 4 - (14 + 14 + 20 + 14) / 4  # at 2,000 and 3,000
    crossed = 2000 + 1000 * gaps[0] / (gaps[0] - gaps[1])
    assert said == (
        f"BLEU on flickr: rnn and transformer cross at about {round(crossed, -1):,.0f} pairs, between 2,000 and 3,000; "
        "transformer is better above. Seed by seed, they cross between 1,000 and 2,000 (1 of 4), "
        "between 2,000 and 3,000 (2 of 4), nowhere (1 of 4)."
    )


def test_where_lower_is_better_the_lower_line_is() -> None:
    lines = {"one": [[1.0, 2, 3]], "other": [[2.0, 2.5, 2.75]]}
    [said] = sentences(AXIS, figure(lines, lower_is_better=True, test=""))
    assert said.startswith(
        "BLEU: one and other cross at about 2,670 pairs, between 2,000 and 3,000; other is better above."
    )
    [said] = sentences(AXIS, figure({"one": [[1.0, 2, 3]], "other": [[2.0, 2.5, 3]]}, lower_is_better=True))
    assert said == "BLEU on flickr: one is better than other wherever they differ."


def test_lines_that_do_not_cross_are_told_too() -> None:
    lines = {"one": [[1.0, 2, 3], [1, 2, 3]], "other": [[2.0, 2.5, 4], [2, 2.5, 4]], "third": [[1.0, 2, 3]] * 2}
    said = sentences(AXIS, figure(lines))
    assert said == [
        "BLEU on flickr: other is better than one everywhere. Seed by seed, they cross nowhere (2 of 2).",
        "BLEU on flickr: one and third are the same everywhere. Seed by seed, they cross nowhere (2 of 2).",
        "BLEU on flickr: other is better than third everywhere. Seed by seed, they cross nowhere (2 of 2).",
    ]
    many = {str(number): [[number + 0.0, 1, 2]] for number in range(5)}
    assert len(sentences(AXIS, figure(many))) == 4  # each beside the first


def test_a_place_that_one_of_them_lacks_is_left_out() -> None:
    found = figure({"one": [[1.0, 2, 3]], "other": [[2.0, 1, 4]]})
    found["variants"]["one"].pop(1)
    [said] = sentences(AXIS, found)
    assert said == "BLEU on flickr: other is better than one everywhere."
