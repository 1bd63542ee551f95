"""What of a text is the same in every language: numbers, addresses, codes and placeholders, tags, emoji.

    for part in protected("Call %s at 12:30 😀"):
        text[part.start : part.end], part.kind      # "%s" placeholder, "12:30" number, "😀" emoji

Nothing here imports torch.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

EMOJI = "\U0001f000-\U0001faff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff"
JOINERS = "\u200d\ufe0f\u20e3\U000e0020-\U000e007f"  # which make one emoji of several characters
NUMBER = r"\d+(?:[.,:/'’\u00a0\u202f-]\d+)*"
GROUPED = r"\d{1,3}(?:[ \u00a0\u202f]\d{3}){1,6}(?:[.,]\d+)?(?!\d)"  # 1 234 567,89
PHONE = r"\+\d{1,3}(?:[ ()./-]{1,2}\d{1,4}){2,6}"
MONEY = "$€£¥₹₽₩"
ENDINGS = "txt|csv|tsv|json|xml|html?|md|pdf|docx?|xlsx?|pptx?|odt|zip|gz|png|jpe?g|gif|svg|mp[34]|py|js|exe"
KINDS = {
    "reserved": r"⟦[^⟦⟧\s]{1,8}⟧",  # what a placeholder of ours looks like in a text
    "url": r"(?:(?:https?|ftp)://|www\.)[^\s<>\"“”«»]+",
    "email": r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
    "tag": r"</?[A-Za-z][^<>]*>|</?\d+/?>",
    "entity": r"&(?:#\d{1,8}|#[xX][0-9a-fA-F]{1,8}|[A-Za-z]{1,32}\d{0,2});",
    "placeholder": (
        r"\{\{[^{}]*\}\}|[$%]\{[^{}]*\}|\{[\w.:,!-]*\}|%\([\w.]+\)[a-zA-Z]"
        r"|(?<![\w%])%(?:\d+\$)?[-+#0]{0,5}\d{0,9}(?:\.\d{0,9})?(?:hh|h|ll|l|z|j|t)?[diouxXeEfgGcsp@](?![A-Za-z])"
    ),
    "code": (
        r"(?<![\w./-])(?=[A-Z./-]{0,40}[0-9])(?=[0-9./-]{0,40}[A-Z])[A-Z0-9]{1,40}(?:[./-][A-Z0-9]{1,40}){0,8}(?!\w)"
    ),
    "name": (
        r"[A-Za-z]:\\[^\s<>\"]{1,200}|(?<![\w/])(?:~|\.{1,2})?(?:/[\w.-]{1,60}){2,20}"
        rf"|(?<![\w.-])[\w-]{{1,60}}\.(?:{ENDINGS})(?!\w)|(?<![\w@])[@#][A-Za-z_]\w{{0,60}}|\$[A-Za-z_]\w{{0,60}}"
    ),
    "number": (
        rf"{PHONE}|(?:(?<![\w)])[-+−±])?[{MONEY}]?(?:{GROUPED}|{NUMBER})(?:[ \u00a0\u202f]?(?:[%‰{MONEY}]|°[CF]?))?"
    ),
    "emoji": rf"(?:[{EMOJI}][{JOINERS}]*)+|[0-9#*]\ufe0f?\u20e3",
}
ANY = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in KINDS.items()))
BEHIND_ADDRESS = ".,;:!?)]}'\"’”»…。，；：！？）】」"
GROUPS = re.compile(r"\d+")


class Protected(NamedTuple):
    """Characters [start, end) of a text, and which of `KINDS` they are."""

    start: int
    end: int
    kind: str

    def overlaps(self, start: int, end: int) -> bool:
        """Whether it shares a character with another span."""
        return self.start < end and start < self.end


def protected(text: str) -> list[Protected]:
    """The parts of `text` that a translation keeps, in order; none overlap."""
    return [*_found(text)]


def _found(text: str) -> Iterator[Protected]:
    for match in ANY.finditer(text):
        start, end, kind = match.start(), match.end(), match.lastgroup or ""
        if kind == "url":
            end = start + len(_address(match[0]))
        yield Protected(start, end, kind)


def _address(found: str) -> str:
    """Without the punctuation of the sentence that it ends; a bracket stays where it was opened inside."""
    end, closed = len(found), found.count(")") - found.count("(")
    while end and found[end - 1] in BEHIND_ADDRESS and not (found[end - 1] == ")" and closed <= 0):
        closed -= found[end - 1] == ")"
        end -= 1
    return found[:end]


def lacking(parts: Iterable[tuple[str, str]], output: str) -> list[str]:
    """Which parts of a source, as (text, kind), are not in its output, as often as they are in the source.

    A number counts as kept when its digits are there, as 1,000.50 is in 1 000,50 and 2026-11-28 in 28.11.2026.
    """
    missing, there = [], _Output(output)
    for text, kind in parts:
        if not (there.takes_number(text) if kind == "number" else there.takes(text)):
            missing.append(text)
    return missing


def _digits(number: str) -> str:
    """All digits of a number, of any script as those of ASCII."""
    return "".join(str(unicodedata.digit(each)) for group in GROUPS.findall(number) for each in group)


class _Output:
    """An output, of which each part is found once only."""

    def __init__(self, text: str) -> None:
        self.text = text
        numbers = [match[0] for match in re.finditer(KINDS["number"], text)]
        self.whole = Counter(map(_digits, numbers))
        self.groups = Counter(group.lstrip("0") for each in numbers for group in GROUPS.findall(each))

    def takes(self, part: str) -> bool:
        place = self.text.find(part)
        if place < 0:
            return False
        self.text = f"{self.text[:place]}\0{self.text[place + len(part) :]}"
        return True

    def takes_number(self, part: str) -> bool:
        digits = _digits(part)
        asked = Counter(group.lstrip("0") for group in GROUPS.findall(part))
        if self.whole[digits]:
            self.whole[digits] -= 1
        elif any(self.groups[group] < often for group, often in asked.items()):
            return False
        self.groups -= asked
        return True
