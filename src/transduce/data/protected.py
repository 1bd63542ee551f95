"""What of a text is the same in every language: numbers, addresses, codes and placeholders, tags, emoji.

    for part in protected("Call %s at 12:30 😀"):
        text[part.start : part.end], part.kind      # "%s" placeholder, "12:30" number, "😀" emoji

Nothing here imports torch.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

EMOJI = "\U0001f000-\U0001faff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff"
JOINERS = "\u200d\ufe0f\u20e3\U000e0020-\U000e007f"  # which make one emoji of several characters
KINDS = {
    "reserved": r"⟦[^⟦⟧\s]{1,8}⟧",  # what a placeholder of ours looks like in a text
    "url": r"(?:(?:https?|ftp)://|www\.)[^\s<>\"“”«»]+",
    "email": r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}",
    "tag": r"</?[A-Za-z][^<>]*>",
    "entity": r"&(?:#\d{1,8}|#[xX][0-9a-fA-F]{1,8}|[A-Za-z]{1,32}\d{0,2});",
    "placeholder": (
        r"\{\{[^{}]*\}\}|[$%]\{[^{}]*\}|\{[\w.:,!-]*\}|%\([\w.]+\)[a-zA-Z]"
        r"|(?<![\w%])%(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z|j|t)?[diouxXeEfgGcsp@](?![A-Za-z])"
    ),
    "code": (
        r"(?<![\w./-])(?=[A-Z./-]{0,40}[0-9])(?=[0-9./-]{0,40}[A-Z])[A-Z0-9]{1,40}(?:[./-][A-Z0-9]{1,40}){0,8}(?!\w)"
    ),
    "number": r"\d+(?:[.,:/'’\u00a0\u202f-]\d+)*",
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
    while found and found[-1] in BEHIND_ADDRESS:
        if found[-1] == ")" and found.count("(") >= found.count(")"):
            break
        found = found[:-1]
    return found


def lacking(parts: Iterable[tuple[str, str]], output: str) -> list[str]:
    """Which parts of a source, as (text, kind), are not in its output, as often as they are in the source.

    A number counts as kept when its digits are there, as 1,000.50 is in 1 000,50 and 2026-11-28 in 28.11.2026.
    """
    missing, there = [], _Output(output)
    for text, kind in parts:
        if not (there.takes_number(text) if kind == "number" else there.takes(text)):
            missing.append(text)
    return missing


class _Output:
    """An output, of which each part is found once only."""

    def __init__(self, text: str) -> None:
        self.text = text
        numbers = [match[0] for match in re.finditer(KINDS["number"], text)]
        self.whole = Counter("".join(GROUPS.findall(each)) for each in numbers)
        self.groups = Counter(group.lstrip("0") for each in numbers for group in GROUPS.findall(each))

    def takes(self, part: str) -> bool:
        place = self.text.find(part)
        if place < 0:
            return False
        self.text = f"{self.text[:place]}\0{self.text[place + len(part) :]}"
        return True

    def takes_number(self, part: str) -> bool:
        digits = "".join(GROUPS.findall(part))
        asked = Counter(group.lstrip("0") for group in GROUPS.findall(part))
        if self.whole[digits]:
            self.whole[digits] -= 1
        elif any(self.groups[group] < often for group, often in asked.items()):
            return False
        self.groups -= asked
        return True
