"""What the page computes itself, against the Python that says the same."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from visiting import Open, Visit

from transduce.interpret.colours import HEADS, glow, ink
from transduce.interpret.words import by_words
from words_of import WORDS_OF


@pytest.fixture
def tab(visit: Open) -> Visit:
    """An open page whose functions are called."""
    return visit()


def test_its_ink_is_that_of_the_other_pictures(tab: Visit) -> None:
    points = [i / 20 for i in range(21)]
    for name, scale in [("ink", ink), ("glow", glow)]:
        found = tab.page.evaluate(f"(points) => points.map(Transduce.{name})", points)
        np.testing.assert_allclose(found, [scale(point) for point in points], atol=1e-9)
    assert tab.page.evaluate("Transduce.HEADS") == list(HEADS)


def test_cells_have_the_scales_colours_in_both_themes(tab: Visit) -> None:
    for theme, scale in [("light", ink), ("dark", glow)]:
        tab.go(theme=theme)
        for weight in (0.0, 51 / 255, 0.6, 1.0):
            wanted = [round(channel * 255) for channel in scale(round(weight * 255) / 255)]
            assert tab.page.evaluate("(w) => Transduce.weightBytes(w)", weight) == wanted


def test_floats_are_read_as_they_were_written(tab: Visit) -> None:
    import base64

    values = np.array([0.0, -0.0, 1e-38, 0.1, 3.5, -2e30, 1.0], "<f4")
    found = tab.page.evaluate("(text) => [...Transduce.floats(text)]", base64.b64encode(values.tobytes()).decode())
    assert np.array_equal(np.array(found, np.float32), values)


def test_words_receive_and_attend_as_in_python(tab: Visit) -> None:
    drawn = np.random.default_rng(3)

    @settings(max_examples=25)
    @given(st.lists(st.booleans(), min_size=1, max_size=7), st.lists(st.booleans(), min_size=1, max_size=7))
    def check(row_starts: list[bool], column_starts: list[bool]) -> None:
        rows, columns = _groups(row_starts), _groups(column_starts)
        weights_TS = drawn.dirichlet(np.ones(len(column_starts)), len(row_starts)).astype(np.float32)
        by_column = by_words([each["tokens"] for each in columns], weights_TS)
        merged = by_words([each["tokens"] for each in rows], by_column, axis="queries")
        asked = {"values": weights_TS.ravel().tolist(), "rows": rows, "columns": columns}
        found = tab.page.evaluate(
            """({values, rows, columns}) => {
              const count = (groups) => groups.reduce((sum, group) => sum + group.tokens.length, 0);
              return [...Transduce.joined(Float32Array.from(values), count(rows), count(columns), rows, columns)];
            }""",
            asked,
        )
        np.testing.assert_allclose(np.array(found).reshape(merged.shape), merged, atol=1e-5)

    check()


def _groups(starts: list[bool]) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = []
    for i, start in enumerate(starts):
        if start or not i:
            groups.append({"text": str(i), "tokens": []})
        groups[-1]["tokens"].append(i)
    return groups


def test_words_are_those_that_python_finds(tab: Visit) -> None:
    found = tab.page.evaluate("(texts) => texts.map(Transduce.pieces)", list(WORDS_OF))
    for text, pieces in zip(WORDS_OF, found, strict=True):
        assert [each["text"] for each in pieces if each["word"]] == WORDS_OF[text], text
        assert "".join(each["text"] for each in pieces) == text


def test_offsets_count_characters_not_utf16_units(visit: Open) -> None:
    text = "3 😀😀 1 𝒜b 4"
    tab = visit(text=text)
    assert tab.find(".source").first.inner_text() == text
    assert tab.find(".source .w").all_inner_texts()[0] == "3"
    words = tab.find(".source .w").all_inner_texts()
    assert words[-1] == "4" and "".join(words) == text.replace(" ", "")


def test_what_moved_is_the_difference_of_alike_cells(tab: Visit) -> None:
    found = tab.page.evaluate(
        """() => {
          const side = (texts) => texts.map((text) => ({ text, tokens: [] }));
          const rows = side(["it", "."]);
          const one = {
            values: Float32Array.of(1, 2, 3, 4, 5, 6), T: 2, S: 3, rows, columns: side(["was", "tired", "."]),
          };
          const other = {
            values: Float32Array.of(9, 7, 5, 3, 1, 0, 2, 4), T: 2, S: 4, rows,
            columns: side(["was", "too", "wide", "."]),
          };
          const moved = Transduce.difference(one, other);
          return [[...moved.values], moved.columns.map((each) => each.text)];
        }"""
    )
    assert found == [[8.0, 0.0, -3.0, -2.0], ["was", "."]]  # "tired" has two words against it: no pair
