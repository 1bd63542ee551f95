"""What each line holds: numbers, placeholders, a URL alone, brackets, capitals, repetition, characters that deceive.

Each becomes a bit, or a set of bits, so that the two sides of a pair are compared without their texts.
"""

import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np
from numpy.typing import NDArray

ENDS, LOWER, UPPER, MIXED, URL, BRACKET, NOTE, REPEATS, INVISIBLE, HOMOGLYPH, WIDE, NARROW = (
    1 << bit for bit in range(12)
)
"""ENDS: as a sentence does. LOWER, UPPER, MIXED: the case of its letters. URL: it is one alone. NOTE: it says that it
is a translator's note. REPEATS: a phrase stands there again and again. WIDE: full-width Latin letters. NARROW:
half-width katakana."""

END = (".", "!", "?", "…", "。", "！", "？", "．", "।", "؟", "۔", "።")
CLOSING = " \"'»”’)]」』）】"
OPENING = "([（［【〔"
SAYS_NOTE = re.compile(
    r"\b(?:translator|traducteur|traductrice|übersetzer|traductor|traduttore|tradutor)\w*(?:'s note)?\s?:|\bNdT\b"
    r"|\bN\. ?d\. ?T\b|Anm\. ?d\. ?Ü|译者?注|譯者?註|訳者?注",
    re.IGNORECASE,
)
DIGIT = re.compile(r"\d")
NUMBER = re.compile(r"(\d+(?:[., \u00a0\u202f]\d{3}(?!\d))*)\s?([千万萬亿億]?)")
TIMES = {"": 1, "千": 10**3, "万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
PLACEHOLDER = re.compile(
    r"(?<![\d%])%(?:\d+\$)?[sdif@](?![^\W\d_])|%\(\w+\)[sd]|\$?\{\{?[^\W\d]?[\w.]*\}?\}|<(?:x|g|ph) id=[^<>]*>"
)
REPEATED = (
    (1, 6),
    *((words, 4) for words in range(2, 7)),
)  # words of a phrase, and how often it must stand there in a row
FEWEST_AGAIN = 5  # words that stood there before, of fewer nothing is repeated

_GREEK = dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧονρ", "ABEZHIKMNOPTYXovp", strict=True))
_CYRILLIC = dict(zip("АВЕКМНОРСТХІЈЅаеорсухіјѕ", "ABEKMHOPCTXIJSaeopcyxijs", strict=True))
LIKE_LATIN = _GREEK | _CYRILLIC
LATIN = "A-Za-z\u00c0-\u024f"
_ALIKE = "".join(LIKE_LATIN)
DISGUISED = re.compile(rf"[{_ALIKE}{LATIN}]*(?:[{LATIN}][{_ALIKE}]|[{_ALIKE}][{LATIN}])[{_ALIKE}{LATIN}]*")
UNTOLD = re.compile(r"[^\W\d_]+")
PLAIN = rf"{LATIN}\u0370-\u052f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3"  # scripts that need no joiners
BREAKING = "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff"  # scripts in which U+200B says where a line may be broken
INVISIBLES = re.compile(
    rf"(?<![{BREAKING}])\u200b(?![{BREAKING}])|[\u00ad\u180e\u2060]"
    rf"|(?<=[{PLAIN}])[\u200c-\u200f]|[\u200c-\u200f](?=[{PLAIN}])"
)
WIDE_LETTER, NARROW_KANA = re.compile("[\uff21-\uff3a\uff41-\uff5a]+"), re.compile("[\uff66-\uff9f]+")
EASTERN = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
ABOVE_LATIN, ABOVE_CYRILLIC = "\u0370", "\uff00"

Bits = NDArray[np.uint16]


@dataclass(frozen=True)
class Contents:
    """One entry a line: bits (see `ENDS`); its numbers and its placeholders as sets of 64 and 32 possible ones."""

    bits: Bits
    numbers: NDArray[np.uint64]
    placeholders: NDArray[np.uint32]


def contents_of(texts: Sequence[str], words: Sequence[Sequence[str]]) -> Contents:
    """Of lines without outer white space, and their words in lower case (`transduce.doctor.words`)."""
    bits = np.fromiter(map(_bits, texts, words), np.uint16, len(texts))
    numbers = np.fromiter(map(number_set, texts), np.uint64, len(texts))
    placeholders = np.fromiter(map(placeholder_set, texts), np.uint32, len(texts))
    return Contents(bits, numbers, placeholders)


def _bits(text: str, words: Sequence[str]) -> int:
    bits = _case(text) | (ENDS if text.endswith(END) or text.rstrip(CLOSING).endswith(END) else 0)
    if text[:4].lower() in ("http", "www.", "ftp:") and not text.count(" "):
        bits |= URL
    if any(map(text.__contains__, OPENING)):
        bits |= BRACKET
    if (bits & BRACKET or ":" in text) and SAYS_NOTE.search(text):
        bits |= NOTE
    if len(words) - len(set(words)) >= FEWEST_AGAIN and repeats(words):
        bits |= REPEATS
    return bits if text.isascii() else bits | _deceives(text)


def _case(text: str) -> int:
    if text.islower():
        return LOWER
    if text.isupper():
        return UPPER
    return MIXED if text.lower() != text else 0


def _deceives(text: str) -> int:
    bits = 0 if text.isprintable() or not INVISIBLES.search(text) else INVISIBLE
    highest = max(text)
    if highest >= ABOVE_LATIN and DISGUISED.search(text) and without_homoglyphs(text) != text:
        bits |= HOMOGLYPH
    if highest >= ABOVE_CYRILLIC:
        bits |= WIDE if WIDE_LETTER.search(text) and not EASTERN.search(text) else 0
        bits |= NARROW if NARROW_KANA.search(text) else 0
    return bits


def repeats(words: Sequence[str]) -> bool:
    """Whether a phrase of up to six words stands there six times (one word) or four times in a row."""
    return any(_repeats(words, length, length * (often - 1)) for length, often in REPEATED)


def _repeats(words: Sequence[str], length: int, most: int) -> bool:
    """Whether `most` words in a row, of which some are no punctuation, are those that stand `length` before."""
    run = 0
    for place, (before, word) in enumerate(zip(words, words[length:], strict=False)):
        run = run + 1 if before == word else 0
        if run >= most and any(map(str.isalpha, words[place : place + length])):
            return True
    return False


def number_set(text: str) -> int:
    """The numbers in digits, each as one of 64 bits: two different sets of numbers are the same once in 64 times.

    Separators of thousands and leading zeros do not count: 10,000 is 10000, and 1万.
    """
    if not DIGIT.search(text):
        return 0
    found = (("".join(filter(str.isdecimal, digits)), times) for digits, times in NUMBER.findall(text))
    return _set_of((str(int(digits) * TIMES[times]) for digits, times in found if 0 < len(digits) < 100), 64)


def placeholder_set(text: str) -> int:
    """The placeholders (%s, %1$d, {name}, {{x}}, ${y}, <x id="1"/>), each as one of 32 bits."""
    if "%" not in text and "{" not in text and "<" not in text:
        return 0
    return _set_of(PLACEHOLDER.findall(text), 32)


def _set_of(each: Iterable[str], size: int) -> int:
    return reduce(or_, (1 << zlib.crc32(one.encode()) % size for one in each), 0)


def without_homoglyphs(text: str) -> str:
    """The text with Latin letters for the Greek and Cyrillic ones that look like them, in words that have both."""
    return UNTOLD.sub(_latin, text) if not text.isascii() else text


def _latin(found: re.Match[str]) -> str:
    word = found[0]
    if not DISGUISED.fullmatch(word):
        return word
    return "".join(LIKE_LATIN.get(letter, letter) for letter in word)


def without_invisibles(text: str) -> str:
    """The text without zero-width characters and soft hyphens, where no script needs them."""
    return text if text.isprintable() else INVISIBLES.sub("", text)


def usual_width(text: str) -> str:
    """The text with full-width Latin letters and half-width katakana as they are usually written (NFKC)."""
    from unicodedata import normalize

    if text.isascii() or max(text) < ABOVE_CYRILLIC:
        return text
    change: Callable[[re.Match[str]], str] = lambda found: normalize("NFKC", found[0])  # noqa: E731
    text = NARROW_KANA.sub(change, text)
    return text if EASTERN.search(text) else WIDE_LETTER.sub(change, text)  # within Chinese and Japanese they are usual
