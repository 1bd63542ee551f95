"""Text from files as messages may show it: what would steer a terminal is spelt out, long lists are cut."""

import re
from collections.abc import Sequence

SHOWN = 80  # characters of a name in a list
NAMED = 5  # lines, columns, files that a message names
PROBLEMS = 10  # of a file that one message has
# Controls but for line break and tab, what turns the direction of writing, breaks of lines, halves of characters.
STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
STEERS_IN_JSON = re.compile(r"[\x7f-\x9f]")  # the rest is escaped by JSON itself, or may stand there


def printable(text: str) -> str:
    r"""The same with `\x1b` for the escape character, and so on: names in a stranger's file may hold anything."""
    return STEERS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def printable_line(text: str) -> str:
    """The same in one line."""
    return printable(text).replace("\n", "\\n").replace("\t", "\\t")


def printable_json(text: str) -> str:
    """A text in JSON that means the same, and steers no terminal."""
    return STEERS_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def listed(names: Sequence[object], limit: int = 20) -> str:
    """The first of some names as a message shows them: a file may hold any number, of any length."""
    shown = [name if len(name) <= SHOWN else f"{name[:SHOWN]}…" for name in map(str, names[:limit])]
    return ", ".join(shown) + (f" and {len(names) - limit:,} more" if len(names) > limit else "")


def first_of(names: Sequence[object], limit: int) -> str:
    """The first of some names, and whether there are more: "4, 7, …"."""
    return ", ".join(map(str, names[:limit])) + (", …" if len(names) > limit else "")


def quoted(names: Sequence[str], limit: int, length: int = 60) -> str:
    """The same of texts, each between quotes and cut to `length` characters."""
    return first_of([f'"{name[:length]}"' for name in names[: limit + 1]], limit)
