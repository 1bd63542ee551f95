"""What can be wrong with one side alone: broken bytes, odd characters, a foreign script, endless lines."""

import numpy as np

from transduce.data.doctor.characters import ODD_NAMES
from transduce.data.doctor.report import Finding, Mask, Severity, about_rows
from transduce.data.doctor.scan import ScannedSide

LETTERS_TO_JUDGE = 8  # fewer may be a name or a unit
COMMON_SCRIPT = 0.1  # share of the lines from which a script belongs to the side
LONG = 1_000  # characters
LONG_TIMES_MEDIAN = 20
QUIET = {"tab": Severity.NOTE, "replacement character (U+FFFD)": Severity.NOTE}


def check_side(side: ScannedSide, role: str) -> list[Finding]:
    """Every finding about `side` that needs no other file."""
    return invalid(side, role) + odd(side, role) + foreign(side, role) + endless(side, role)


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
        sentence = f"{{lines}} of the {role} with a {name} inside."
        severity = QUIET.get(name, Severity.WARNING)
        findings += about_rows("odd_character", severity, sentence, rows, side=role, first_line=side.file.first_line)
    return findings


def foreign_mask(side: ScannedSide) -> Mask:
    """Lines mostly in a script that fewer than a tenth of the side's lines are in."""
    judged = side.letters >= LETTERS_TO_JUDGE
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
    kept = side.script[(side.letters >= LETTERS_TO_JUDGE) & ~foreign_mask(side)]
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
