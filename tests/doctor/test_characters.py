"""Scripts, lengths and odd characters, against a slow count with unicodedata."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.doctor.characters import ODD_NAMES, Alphabet, odd_bit, script_of, without_odd

TEXT = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=20)


@pytest.mark.parametrize(
    ("character", "script"),
    [("a", "LATIN"), ("ё", "CYRILLIC"), ("日", "CJK"), ("の", "CJK"), ("カ", "CJK"), ("ｶ", "CJK")]
    + [
        ("Ａ", "LATIN"),
        ("한", "HANGUL"),
        ("ع", "ARABIC"),
        ("ไ", "THAI"),
        ("7", ""),
        ("!", ""),
        ("\u0301", ""),
    ],
)
def test_script_of(character: str, script: str) -> None:
    assert script_of(character) == script


@given(st.lists(TEXT, min_size=1, max_size=6))
def test_measures_equal_a_slow_count(texts: list[str]) -> None:
    alphabet = Alphabet()
    measured = alphabet.measure(texts)
    for line, text in enumerate(texts):
        scripts = [script for script in map(script_of, text) if script]
        assert measured.length[line] == len(text)
        assert measured.letters[line] == len(scripts)
        dominant = alphabet.scripts[measured.script[line]]
        assert scripts.count(dominant) == max((scripts.count(s) for s in scripts), default=0)
        found = {name for bit, name in enumerate(ODD_NAMES) if measured.odd[line] >> bit & 1}
        assert len(found) == len({odd_bit(c) for c in text} - {0})


@given(TEXT)
def test_mended_text_has_nothing_odd_left(text: str) -> None:
    mended = without_odd(text)
    assert not any(odd_bit(c) for c in mended if c != "\ufffd")
    assert mended == mended.strip()
    kept = [c for c in text if unicodedata.category(c)[0] in "LNPS"]
    assert [c for c in mended if unicodedata.category(c)[0] in "LNPS"] == kept
