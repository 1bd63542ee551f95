"""Segments: what stands between them is white space, and nothing is lost."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growing import grows_as_a_line
from transduce.inference.sentences import rejoined, segments


def cut(text: str, lines: bool = True) -> list[str]:
    return [text[first:last] for first, last in segments(text, lambda line: False, lines)]


@given(st.text(alphabet=' \n\r\t\u2028\u00a0.。!?,aBé漢")', max_size=60), st.booleans(), st.booleans())
def test_a_text_put_together_again_is_the_text(text: str, whole: bool, lines: bool) -> None:
    spans = segments(text, lambda line: whole, lines)
    parts = [text[first:last] for first, last in spans]
    assert rejoined(text, spans, parts) == text
    assert all(part and part == part.strip() for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())  # only white space is left out
    assert all(first >= end for (_, end), (first, _) in pairwise(spans))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two!  Three?", ["One.", "Two!", "Three?"]),
        ("Dr. Smith met Mr. Jones. They left.", ["Dr. Smith met Mr. Jones.", "They left."]),
        ("It costs 3.50 now. e.g. this one. Yes", ["It costs 3.50 now.", "e.g. this one.", "Yes"]),
        ("1. The first. 2. The second.", ["1. The first.", "2. The second."]),
        ("He said “No.” Then he left.", ["He said “No.”", "Then he left."]),
        ("你好。再见！真的？！是", ["你好。", "再见！", "真的？！", "是"]),
        ("a line\n\n\n  another line \n", ["a line", "another line"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


def test_a_line_that_fits_stays_whole_and_lines_stay_apart() -> None:
    text = "One. Two.\r\nThree. Four.\n\n\tFive. "
    assert [text[a:b] for a, b in segments(text, lambda line: True)] == ["One. Two.", "Three. Four.", "Five."]
    assert cut(text, lines=False) == ["One.", "Two.", "Three.", "Four.", "Five."]


@pytest.mark.parametrize("unit", [" ", "a. ", ". ", "。", "\n", "x", '." '])
def test_no_text_takes_long(unit: str) -> None:
    assert grows_as_a_line(lambda size: segments(unit * (size // len(unit)), lambda line: False), 5_000)
