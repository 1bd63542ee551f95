"""How a line is written: in simplified or traditional Chinese, with a damaged encoding, with HTML in it.

OpenCC says which characters are simplified or traditional, and ftfy which texts were decoded by the wrong encoding (Ã©
for é). Both are in the extra `doctor`; what could not be looked for without them is told.

UTF-8 that was read as GBK, the commonest damage to Chinese texts: 杩欎粈涔 for 这什么.

Two of the three bytes of a Chinese character make one wrong character, so the bytes of the wrong ones are valid UTF-8
of one script. Those of Chinese text hardly ever are. A byte without a partner is lost in the damage: what stands
before it can be told, and not repaired.
"""

import html
import re
from codecs import getincrementaldecoder
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from html.entities import html5

import numpy as np
from numpy.typing import NDArray

from transduce.core.extras import installing

NAMES = (
    "a|abbr|b|blockquote|body|br|center|code|dd|div|dl|dt|em|font|h[1-6]|head|hr|html|i|img|li|ol|p|pre|script|small"
    "|span|strike|strong|style|sub|sup|table|tbody|td|th|title|tr|tt|u|ul"
)
TAG = re.compile(rf"</?(?:{NAMES})(?:\s[^<>]*)?/?>", re.IGNORECASE)
ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[a-zA-Z][a-zA-Z0-9]{1,31});")


STRETCH = re.compile("[^\x00-\x7f\ufffd]+")  # between ASCII and what is lost
CHARACTERS = re.compile("[\u3400-\u9fff]")
FEWEST = 4  # characters of a stretch that are Chinese, to tell from
SCRIPTS = (
    "\u3000-\u30ff\u3400-\u9fff\uff00-\uffef",  # Chinese, Japanese
    "\uac00-\ud7a3",
    "\u0400-\u04ff",
    "\u0370-\u03ff",
    "\u0590-\u05ff",
    "\u0600-\u06ff",
    "\u0e00-\u0e7f",
)
OF_ONE_SCRIPT = re.compile("|".join(f"[\x00-\x7f\u2000-\u206f{script}]+" for script in SCRIPTS))
Decoder = getincrementaldecoder("utf-8")

Marks = NDArray[np.uint8]
Convert = Callable[[str], str]

TRADITIONAL, SIMPLIFIED, KANA, HAN, MOJIBAKE, SUSPECT, GBK, MARKUP = (np.uint8(1 << bit) for bit in range(8))
HAN_LETTER = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
KANA_LETTER = re.compile(r"[\u3041-\u3096\u30a1-\u30fa]")
FIRST_KANA = "\u3041"
WRONGLY_DECODED = re.compile(r"[\u00c2-\u00c5\u00d0\u00d1\u00e2\u00e3][\u0080-\u00bf\u0152-\u0192\u02c6\u2013-\u2122]")
ENDS = re.compile("[\0\n]")  # where OpenCC stops, and where its output is cut into lines
STANDARDS = ("s2t", "s2tw", "s2hk")  # a simplified character is one that none of them writes


@dataclass(frozen=True)
class Extras:
    """What the libraries of the extra `doctor` do; None for one that is not installed."""

    simplify: Convert | None
    traditional: tuple[Convert, ...]
    repair: Convert | None


@cache
def extras() -> Extras:
    simplify, traditional, repair = None, list[Convert](), None
    try:
        import opencc  # noqa: F401 (checks that it can be imported)

        simplify, traditional = partial(_convert, "t2s"), [partial(_convert, standard) for standard in STANDARDS]
    except ImportError:
        pass
    try:
        from ftfy import fix_encoding
        from ftfy.badness import is_bad

        def repair(text: str) -> str:
            return fix_encoding(text) if is_bad(text.replace("\x85", " ")) else text  # alone it ends a line
    except ImportError:
        pass
    return Extras(simplify, tuple(traditional), repair)


def _convert(standard: str, text: str) -> str:
    return _converter(standard)(text)


@cache
def _converter(standard: str) -> Convert:
    """Its dictionaries take a tenth of a second to read, which other languages need not wait for."""
    from opencc import OpenCC

    return OpenCC(standard).convert


def marks_of(texts: Sequence[str]) -> Marks:
    """What each line shows, as bits: TRADITIONAL or SIMPLIFIED characters (the more frequent, or both), KANA, HAN, and
    MOJIBAKE that ftfy can repair; SUSPECT where it should look and is not installed; GBK, what was read as that;
    MARKUP, which is HTML."""
    marks = np.where([has_markup(text) for text in texts], MARKUP, np.uint8(0))
    others = [(place, text) for place, text in enumerate(texts) if not text.isascii()]
    known = extras()
    for place, text in others:
        eastern = max(text) >= FIRST_KANA
        if eastern and KANA_LETTER.search(text):
            marks[place] |= KANA
        if eastern and HAN_LETTER.search(text):
            marks[place] |= HAN
            if read_as_gbk(text):
                marks[place] |= GBK
                continue
        if known.repair and known.repair(text) != text:
            marks[place] |= MOJIBAKE
        elif not known.repair and WRONGLY_DECODED.search(text):
            marks[place] |= SUSPECT
    chinese = [place for place in range(len(texts)) if marks[place] & HAN and not marks[place] & KANA]
    if known.simplify and chinese:
        lines = [texts[place] for place in chinese]
        old = _changed(lines, known.simplify)
        new = np.min([_changed(lines, convert) for convert in known.traditional], axis=0)
        marks[chinese] |= np.where(old >= np.maximum(new, 1), TRADITIONAL, np.uint8(0))
        marks[chinese] |= np.where(new >= np.maximum(old, 1), SIMPLIFIED, np.uint8(0))
    return marks


def _changed(lines: Sequence[str], convert: Convert) -> NDArray[np.int64]:
    """How many characters of each line a conversion changes."""
    given = [ENDS.sub(" ", line) for line in lines]
    converted = convert("\n".join(given)).split("\n")
    return np.array(
        [sum(one != other for one, other in zip(line, new, strict=False)) if line != new else 0
         for line, new in zip(given, converted, strict=True)]
    )  # fmt: skip


def repaired(text: str) -> str:
    """The text as it was before it was decoded by the wrong encoding, as far as it can be told; mostly by ftfy."""
    repair, text = extras().repair, without_gbk(text)
    return text if repair is None or text.isascii() else repair(text)


def not_looked_for(marks: Marks) -> list[str]:
    """What these lines should be examined for, and is not, as a library is not installed."""
    known, found = extras(), []
    if known.simplify is None and is_chinese(marks):
        found.append(f"mixed simplified and traditional Chinese, which needs OpenCC: {installing('doctor')}")
    if (marks & SUSPECT).any():
        found.append(f"damaged encoding, which needs ftfy: {installing('doctor')}")
    return found


def is_chinese(marks: Marks) -> bool:
    """Whether lines with Han characters are Chinese: Japanese ones have kana beside them."""
    han, kana = int((marks & HAN > 0).sum()), int((marks & KANA > 0).sum())
    return han > 0 and kana < 0.1 * han


def read_as_gbk(text: str) -> bool:
    """Whether a stretch of the text is UTF-8 that was read as GBK."""
    return any(_is_utf8(each) for each in STRETCH.findall(text))


def without_gbk(text: str) -> str:
    """The text as it was, where it was read as GBK and nothing was lost; else the text itself."""
    if not read_as_gbk(text):
        return text
    try:
        return text.encode("gb18030").decode("utf-8")
    except UnicodeError:
        return text


def _is_utf8(stretch: str) -> bool:
    """Whether the bytes of wrong characters are UTF-8 of one script, of which the last character may lack some."""
    if len(CHARACTERS.findall(stretch)) < FEWEST:
        return False
    try:
        right = Decoder().decode(stretch.encode("gb18030"))
    except UnicodeError:
        return False
    return bool(OF_ONE_SCRIPT.fullmatch(right))


def has_markup(text: str) -> bool:
    """Whether a tag of HTML or an entity stands in the text."""
    if "<" in text and TAG.search(text):
        return True
    return "&" in text and any(_is_known(found[0]) for found in ENTITY.finditer(text))


def without_entities(text: str) -> str:
    """The text with the characters that its entities stand for; a space for one that is a space or no letter."""
    return ENTITY.sub(_character, text) if "&" in text else text


def _is_known(entity: str) -> bool:
    return entity[1] == "#" or entity[1:] in html5


def _character(found: re.Match[str]) -> str:
    text = html.unescape(found[0]) if _is_known(found[0]) else found[0]
    return text if text.isprintable() else " "
