"""What can be wrong with one side alone: broken bytes and encodings, odd characters, HTML, a foreign script, mixed
Chinese, endless lines, letters that deceive."""

import numpy as np
from numpy.typing import NDArray

from transduce.doctor.characters import ODD_NAMES, OTHER_CONTROL
from transduce.doctor.contents import HOMOGLYPH, INVISIBLE, LOWER, MIXED, NARROW, UPPER, URL, WIDE
from transduce.doctor.report import Finding, Mask, Severity, about_rows
from transduce.doctor.scan import ScannedSide
from transduce.doctor.writing import GBK, MARKUP, MOJIBAKE, SIMPLIFIED, TRADITIONAL, is_chinese

Letters = NDArray[np.int32]

LETTERS_TO_JUDGE = 8  # fewer may be a name or a unit; a Chinese character says as much as two letters
MANY_MIXED = 0.01  # share of the Chinese lines that are written the other way, which is no accident
MUCH_MARKUP = 0.01  # share of the lines with HTML, which is no accident: Moses's tokenizer writes &apos; for '
WITH_CASE = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN")  # scripts with capitals
MOSTLY_CASED = 0.7  # share of the lines that have capitals, or none, from which the others are odd
MANY_LINES = 0.01  # share of the lines that is no accident
COMMON_SCRIPT = 0.1  # share of the lines from which a script belongs to the side
LONG = 1_000  # characters
LONG_TIMES_MEDIAN = 20
QUIET = {"tab": Severity.NOTE}


def check_side(side: ScannedSide, role: str) -> list[Finding]:
    """Every finding about `side` that needs no other file."""
    each = (invalid, odd, foreign, mojibake, markup, mixed_chinese, mixed_width, invisible, homoglyph, case, endless)
    return [finding for check in each for finding in check(side, role)]


def invalid(side: ScannedSide, role: str) -> list[Finding]:
    """Lines that are not UTF-8."""
    sentence = f"{{lines}} of the {role} not in UTF-8."
    rows = np.flatnonzero(side.invalid)
    return about_rows("invalid_utf8", Severity.ERROR, sentence, rows, side=role, first_line=side.file.first_line)


def odd(side: ScannedSide, role: str) -> list[Finding]:
    """Characters that other tools take for a line end, or that no text needs; one finding for each sort."""
    findings: list[Finding] = []
    for bit, name in enumerate(ODD_NAMES):
        rows = np.flatnonzero(side.odd & np.uint16(1 << bit))
        one = f"an{name}" if name == OTHER_CONTROL else f"a {name}"
        sentence = f"{{lines}} of the {role} with {one} inside."
        severity = QUIET.get(name, Severity.WARNING)
        if name == "NUL" and len(rows) > MANY_LINES * len(side):
            severity = Severity.ERROR  # a binary file, or UTF-16
        findings += about_rows("odd_character", severity, sentence, rows, side=role, first_line=side.file.first_line)
    return findings


def mojibake_mask(side: ScannedSide) -> Mask:
    """Lines that were decoded by the wrong encoding."""
    return (side.marks & MOJIBAKE) > 0


def mojibake(side: ScannedSide, role: str) -> list[Finding]:
    """Damaged encodings, which `clean` repairs as far as it can be done."""
    rows = np.flatnonzero(mojibake_mask(side))
    sentence = (
        f'{{lines}} of the {role} decoded by the wrong encoding, such as "Ã©" for "é"; a cleaned copy repairs them.'
    )
    found = about_rows("mojibake", Severity.WARNING, sentence, rows, side=role, first_line=side.file.first_line)
    rows = np.flatnonzero(side.marks & GBK)
    sentence = (
        f'{{lines}} of the {role} in UTF-8 that was read as GBK, such as "杩欎粈涔" for "这什么". Get the original '
        "file: a cleaned copy repairs only lines of which nothing was lost."
    )
    return found + about_rows("gbk", Severity.WARNING, sentence, rows, side=role, first_line=side.file.first_line)


def markup(side: ScannedSide, role: str) -> list[Finding]:
    """Lines with HTML, whose entities `clean` writes as characters; a note where they are many, as by Moses."""
    rows = np.flatnonzero(side.marks & MARKUP)
    sentence = (
        f"{{lines}} of the {role} with HTML inside, such as <br> or &amp;. A cleaned copy replaces entities by their "
        "characters, and keeps tags."
    )
    severity = Severity.WARNING if len(rows) < MUCH_MARKUP * len(side) else Severity.NOTE
    return about_rows("markup", severity, sentence, rows, side=role, first_line=side.file.first_line)


def mixed_chinese(side: ScannedSide, role: str) -> list[Finding]:
    """Chinese lines in traditional characters among simplified ones, or the other way round."""
    old, new = (side.marks & TRADITIONAL) > 0, (side.marks & SIMPLIFIED) > 0
    if not is_chinese(side.marks) or not old.any() or not new.any():
        return []
    fewer, more, rare = ("traditional", "simplified", old & ~new)
    conversion = "t2s"
    if old.sum() > new.sum():
        fewer, more, rare, conversion = "simplified", "traditional", new & ~old, "s2t"
    rows = np.flatnonzero(rare)
    often = len(rows) > MANY_MIXED * (old | new).sum()
    sentence = (
        f"{{lines}} of the {role} in {fewer} characters, where {int((old | new).sum()) - len(rows):,} are in {more} "
        f"ones. To write all the same way: opencc -c {conversion} -i FILE -o NEW."
    )
    severity = Severity.WARNING if often else Severity.NOTE
    return about_rows("mixed_chinese", severity, sentence, rows, side=role, first_line=side.file.first_line)


def mixed_width(side: ScannedSide, role: str) -> list[Finding]:
    """Full-width letters in texts that are not Chinese or Japanese, and half-width katakana."""
    findings = []
    for which, bit in (("full-width letters", WIDE), ("half-width katakana", NARROW)):
        sentence = f"{{lines}} of the {role} in {which}. A cleaned copy writes them as usual."
        findings += _mended(side, role, "mixed_width", (side.bits & bit) > 0, sentence)
    return findings


def invisible(side: ScannedSide, role: str) -> list[Finding]:
    """Zero-width characters and soft hyphens."""
    sentence = f"{{lines}} of the {role} with a zero-width character or a soft hyphen inside. A cleaned copy has none."
    return _mended(side, role, "invisible", (side.bits & INVISIBLE) > 0, sentence)


def homoglyph(side: ScannedSide, role: str) -> list[Finding]:
    """Words in Latin script with a Greek or Cyrillic letter that looks the same."""
    sentence = (
        f"{{lines}} of the {role} with a Greek or Cyrillic letter within a Latin word, which looks the same. A cleaned "
        "copy has the Latin one."
    )
    return _mended(side, role, "homoglyph", (side.bits & HOMOGLYPH) > 0, sentence)


def case(side: ScannedSide, role: str) -> list[Finding]:
    """Lines without a capital, or in capitals, where most lines have some, or none."""
    cased = ((side.bits & (LOWER | UPPER | MIXED)) > 0) & ((side.bits & URL) == 0) & (side.letters >= LETTERS_TO_JUDGE)
    cased &= np.isin(side.script, [number for number, name in enumerate(side.scripts) if name in WITH_CASE])
    findings = []
    for bit, how in ((LOWER, "without a capital letter"), (UPPER, "in capitals")):
        mask = cased & ((side.bits & bit) > 0)
        if mask.sum() < (1 - MOSTLY_CASED) * max(int(cased.sum()), 1):
            sentence = f"{{lines}} of the {role} {how}, where most lines are written otherwise."
            findings += _mended(side, role, "case", mask, sentence)
    return findings


def _mended(side: ScannedSide, role: str, kind: str, mask: Mask, sentence: str) -> list[Finding]:
    """A warning; a note where they are few."""
    rows = np.flatnonzero(mask)
    severity = Severity.WARNING if len(rows) > MANY_LINES * len(side) else Severity.NOTE
    return about_rows(kind, severity, sentence, rows, side=role, first_line=side.file.first_line)


def spoken_letters(side: ScannedSide) -> Letters:
    """The letters of each line, a Chinese or Japanese character counted twice."""
    cjk = side.scripts.index("CJK") if "CJK" in side.scripts else -1
    return np.where(side.script == cjk, 2 * side.letters, side.letters)


def foreign_mask(side: ScannedSide) -> Mask:
    """Lines mostly in a script that fewer than a tenth of the side's lines are in."""
    judged = spoken_letters(side) >= LETTERS_TO_JUDGE
    lines_in = np.bincount(side.script[judged], minlength=len(side.scripts))
    common = lines_in >= COMMON_SCRIPT * max(int(judged.sum()), 1)
    return judged & ~common[side.script]


def foreign(side: ScannedSide, role: str) -> list[Finding]:
    """Lines in the wrong script."""
    rows = np.flatnonzero(foreign_mask(side))
    usual = ", ".join(usual_scripts(side))
    strange = ", ".join(sorted({side.scripts[script].title() for script in side.script[rows]}))
    sentence = f"{{lines}} of the {role} mostly in {strange} script, where {usual} is usual."
    return about_rows("wrong_script", Severity.WARNING, sentence, rows, side=role, first_line=side.file.first_line)


def usual_scripts(side: ScannedSide) -> list[str]:
    """The side's script, or scripts where it has several."""
    kept = side.script[(spoken_letters(side) >= LETTERS_TO_JUDGE) & ~foreign_mask(side)]
    return [side.scripts[script].title() if side.scripts[script] != "CJK" else "CJK" for script in np.unique(kept)]


def endless_mask(side: ScannedSide) -> Mask:
    """Lines of more than 1,000 characters that are also more than 20 times the median."""
    spoken = side.length[side.length > 0]
    median = float(np.median(spoken)) if len(spoken) else 0.0
    return side.length > max(LONG, LONG_TIMES_MEDIAN * median)


def endless(side: ScannedSide, role: str) -> list[Finding]:
    """Extremely long lines."""
    rows = np.flatnonzero(endless_mask(side))
    longest = int(side.length.max()) if len(side) else 0
    sentence = f"{{lines}} of the {role} extremely long (up to {longest:,} characters)."
    return about_rows("extreme_length", Severity.WARNING, sentence, rows, side=role, first_line=side.file.first_line)
