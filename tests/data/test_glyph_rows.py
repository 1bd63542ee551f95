"""Rows of cards and of glyphs: their labels are recomputed from their texts, and a row depends on its number alone."""

from collections import Counter

import pytest

from transduce.data.labelled import ALIKE, NAMES, Name, counts, glyph_row


def rows(name: Name, seed: int = 0, count: int = 2000) -> list[tuple[list[str], str]]:
    return [(text.split(), label) for text, label in (glyph_row(name, seed, number) for number in range(count))]


def test_the_label_of_cards_is_the_sum_of_the_two_black_ones() -> None:
    for cards, label in rows("black_cards"):
        assert {card[0] for card in cards} == {"B", "R"}
        black = [int(card[1:]) for card in cards if card[0] == "B"]
        assert len(black) == 2
        assert label == str(sum(black))


def test_the_label_of_glyphs_is_the_place_of_the_8() -> None:
    for glyphs, label in rows("find_eight"):
        assert set(glyphs) <= {"8", *ALIKE}
        assert glyphs.count("8") == 1
        assert glyphs[int(label) - 1] == "8"


@pytest.mark.parametrize("name", NAMES)
def test_lengths_places_and_values_are_equally_frequent(name: Name) -> None:
    drawn = rows(name, count=14_000)
    lengths = Counter(len(glyphs) for glyphs, _ in drawn)
    assert sorted(lengths) == list(range(6, 13))
    assert all(abs(count - 2000) < 200 for count in lengths.values())  # 4.8 standard deviations
    twelve = [glyphs for glyphs, _ in drawn if len(glyphs) == 12]
    wanted = 2 if name == "black_cards" else 1
    places = Counter(place for glyphs in twelve for place, glyph in enumerate(glyphs) if counts(name, glyph))
    expected = len(twelve) * wanted / 12
    assert all(abs(places[place] - expected) < 5 * expected**0.5 for place in range(12))


@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_a_function_of_its_number_and_another_seed_gives_others(name: Name) -> None:
    some = [glyph_row(name, 3, number) for number in range(50)]
    assert [glyph_row(name, 3, number) for number in reversed(range(50))] == some[::-1]
    assert len({text for text, _ in some} & {glyph_row(name, 4, number)[0] for number in range(50)}) <= 2


def test_what_counts() -> None:
    assert [counts("black_cards", card) for card in ("B8", "R8")] == [True, False]
    assert [counts("find_eight", glyph) for glyph in ("8", "B", "3")] == [True, False, False]
