"""Near-duplicates are those that comparing all with all finds, however many texts share an n-gram."""

import random
from collections.abc import Callable

import pytest

from transduce.data import near_duplicates
from transduce.data.near_duplicates import NearDuplicates, normalized

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def pairs_of(text: str, by_words: bool) -> set[tuple[str, str]]:
    """Of neighbours, the slow and obvious way."""
    units = ["", *(text.split(" ") if by_words else text), ""]
    return {(units[at], units[at + 1]) for at in range(len(units) - 1)}


def jaccard(one: str, other: str, by_words: bool) -> float:
    first, second = pairs_of(one, by_words), pairs_of(other, by_words)
    return len(first & second) / len(first | second)


def spoken(drawn: random.Random) -> str:
    return " ".join(drawn.choice(DIGITS) for _ in range(drawn.randint(3, 20)))


def letters(drawn: random.Random) -> str:
    return "".join(drawn.choice("acgt") for _ in range(drawn.randint(5, 30)))


@pytest.mark.parametrize("few", [0, near_duplicates.FEW, 10**9])
@pytest.mark.parametrize(("kind", "by_words"), [(spoken, True), (letters, False)])
def test_all_are_found_and_no_others(
    monkeypatch: pytest.MonkeyPatch, few: int, kind: Callable[[random.Random], str], by_words: bool
) -> None:
    monkeypatch.setattr(near_duplicates, "FEW", few)
    drawn = random.Random(2)
    chosen = [kind(drawn) for _ in range(300)]
    texts = [kind(drawn) for _ in range(100)] + chosen[:30] + [text + text[-1] for text in chosen[30:60]]
    index = NearDuplicates(enumerate(chosen), by_words)
    found = {(text, number) for text in texts for number in index.of(text)}
    near = {(text, number) for text in texts for number, one in enumerate(chosen) if jaccard(text, one, by_words) > 0.7}
    assert found == near
    assert len(near) > 20


def test_several_texts_with_one_number(monkeypatch: pytest.MonkeyPatch) -> None:
    for few in (0, 10):
        monkeypatch.setattr(near_duplicates, "FEW", few)
        index = NearDuplicates([(7, "a b c d"), (7, "e f g h")], by_words=True)
        assert [*index.of("a b c d"), *index.of("e f g h")] == [7, 7]


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("  Two dogs, 3 cats! ", "two dogs cats"),
        ("हिन्दी, भाषा", "हिन्दी भाषा"),
        ("ปู่ 12 ย่า", "ปู่ ย่า"),
        ("cafe\u0301", "caf\u00e9"),
        ("❤\ufe0f!", "❤\ufe0f!"),
    ],
)
def test_all_but_case_digits_punctuation_and_white_space_counts(text: str, same: str) -> None:
    assert normalized(text) == same


def test_words_that_differ_in_a_vowel_sign_are_two() -> None:
    assert len({normalized(word) for word in ("कि", "का", "क", "कु")}) == 4
