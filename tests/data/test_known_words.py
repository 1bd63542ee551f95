"""Which words some texts have."""

import pytest

from transduce.data.known_words import KnownWords
from transduce.inference.familiarity import Familiarity

TEXTS = [f"word{chr(97 + one)}{chr(97 + two)} house" for one in range(26) for two in range(26)]


def test_words_of_the_texts_are_known_and_few_others() -> None:
    known = KnownWords.from_text(KnownWords.of(TEXTS).to_text())
    assert known is not None
    assert all(word in known for text in TEXTS for word in text.split())
    assert "HOUSE" in known
    others = [f"other{chr(97 + one)}{chr(97 + two)}" for one in range(26) for two in range(26)]
    assert sum(word in known for word in others) < 0.03 * len(others)  # one in 120, by the paper
    assert known.unknown("my house, Hause") == [(0, 2), (10, 15)]


def test_a_file_of_words_is_small() -> None:
    assert len(KnownWords.of(TEXTS).bits) <= 677 * 10 / 8 + 1


@pytest.mark.parametrize("noted", [None, 3, "", "not base 64!", "A" * 2_000_000])
def test_another_kind_of_note_is_none(noted: object) -> None:
    assert KnownWords.from_text(noted) is None


def test_texts_of_mostly_unknown_words_are_told_of() -> None:
    familiar = Familiarity.of({"words": KnownWords.of(["the red house is here"]).to_text()}, None)
    known = familiar.unfamiliar("The red house at 12:30: https://example.org/unknown is here")
    assert (known.unknown, known.words, known.warnings) == (("at",), 6, [])
    strange = familiar.unfamiliar("das rote Haus the")
    assert strange.unknown == ("das", "rote", "Haus")
    assert strange.warnings == ["most words of this text are unknown to the model."]
    assert familiar.unfamiliar("Das Haus").warnings == []  # too short to tell
    assert Familiarity().unfamiliar("anything").unknown == ()
