"""Which languages the names of files and of columns say, and those that are named."""

import re
from collections.abc import Sequence
from pathlib import Path

from transduce.core.errors import InputError
from transduce.core.languages import BY_CODE, base_of
from transduce.data import formats
from transduce.data.files import PACKERS

NO_CODES = frozenset("txt src tgt trg raw tok bpe lc zip ids xml md log npy bin dev".split())  # noqa: SIM905
CODE = re.compile(r"([a-z]{2,3})([-_][A-Za-z]{2,4})?")
TWO_LETTERS = {"cmn": "zh", "zho": "zh", "jpn": "ja", "kor": "ko", "eng": "en", "fra": "fr", "deu": "de", "spa": "es"}


def language_of(path: Path) -> str:
    """The code of the language that a file's name ends in, as in train.en or train.en.gz; "" = none."""
    suffixes = [suffix[1:] for suffix in path.suffixes if suffix.lower() not in PACKERS]
    found = CODE.fullmatch(suffixes[-1]) if suffixes else None
    if not found or found[1] in NO_CODES or f".{found[1]}" in formats.suffixes():
        return ""
    return TWO_LETTERS.get(found[0], found[0])


def parse_languages(text: str) -> tuple[str, str]:
    """`en-sw`.

    Raises:
        InputError: something else.
    """
    found = re.fullmatch(r"([a-z]{2,3}(?:_[A-Za-z]{2,4})?)[-:,]([a-z]{2,3}(?:_[A-Za-z]{2,4})?)", text.strip())
    if not found:
        raise InputError(f"--languages {text}: expected the codes of source and target, as in en-sw.")
    return TWO_LETTERS.get(found[1], found[1]), TWO_LETTERS.get(found[2], found[2])


def plain_code(code: str) -> str:
    """A language without region or script, by two letters where it has such a code: en for EN-US or eng."""
    base = base_of(code)
    return TWO_LETTERS.get(base, base)


def languages_of_columns(names: Sequence[object]) -> tuple[str, str]:
    """Those of two columns that are called by codes, as en and zh, or translation.en and translation.zh.

    ("", "") where one of them is no code of ISO 639-1, or is a number.
    """
    codes = [str(name).rpartition(".")[2].lower() for name in names]
    codes = [TWO_LETTERS.get(code, code) for code in codes]
    known = len(codes) == 2 and all(len(code) == 2 and code in BY_CODE for code in codes)
    return (codes[0], codes[1]) if known else ("", "")
