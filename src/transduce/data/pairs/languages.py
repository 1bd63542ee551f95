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
REGION = re.compile(r"[A-Z]{2}|[A-Z][a-z]{3}|\d{3}")  # zh-CN, zh-Hant, es-419
LANGUAGE = r"[a-z]{2,3}(?:[-_](?:[A-Za-z]{2,4}|\d{3}))?"
PAIR = re.compile(
    rf"([a-z]{{2,3}}(?:_[A-Za-z]{{2,4}})?)[-:,]([a-z]{{2,3}}(?:_[A-Za-z]{{2,4}})?)|({LANGUAGE})[:,]({LANGUAGE})"
)
TWO_LETTERS = {"cmn": "zh", "zho": "zh", "jpn": "ja", "kor": "ko", "eng": "en", "fra": "fr", "deu": "de", "spa": "es"}


def language_of(path: Path) -> str:
    """The code of the language that a file's name ends in, as in train.en or train.en.gz; "" = none."""
    suffixes = [suffix[1:] for suffix in path.suffixes if suffix.lower() not in PACKERS]
    found = CODE.fullmatch(suffixes[-1]) if suffixes else None
    if not found or found[1] in NO_CODES or f".{found[1]}" in formats.suffixes():
        return ""
    return TWO_LETTERS.get(found[0], found[0])


def parse_languages(text: str) -> tuple[str, str]:
    """`en-sw`, `en-zh-CN`, `pt_BR:en`: two codes, each with its region or script, if it has one.

    Raises:
        InputError: something else.
    """
    pair = PAIR.fullmatch(text.strip()) or PAIR.fullmatch(_marked(text.strip()))
    if not pair:
        raise InputError(f"--languages {text}: expected the codes of source and target, as in en-sw or en:zh-CN.")
    source, target = (each for each in pair.groups() if each)
    return TWO_LETTERS.get(source, source), TWO_LETTERS.get(target, target)


def _marked(text: str) -> str:
    """Two codes of three parts with a colon between: what looks like a region or a script belongs to what is before."""
    parts = text.split("-")
    regions = [place for place, each in enumerate(parts) if place and REGION.fullmatch(each)]
    if len(parts) == 4 and regions == [1, 3]:
        return f"{parts[0]}-{parts[1]}:{parts[2]}-{parts[3]}"
    if len(parts) == 3 and len(regions) == 1:
        return f"{parts[0]}-{parts[1]}:{parts[2]}" if regions == [1] else f"{parts[0]}:{parts[1]}-{parts[2]}"
    return text


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
