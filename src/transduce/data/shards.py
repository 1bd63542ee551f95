"""A corpus as many files: names with * and ? in an entry of data.train, and which files belong together.

    { source = "train-*.en.gz", target = "train-*.de.gz" }

stands for one entry a file, in the order of what the pattern leaves open; that must be the same on both sides.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

from transduce.core.errors import InputError
from transduce.core.printable import NAMED
from transduce.data.remote import matching_urls, url_of

WILD = re.compile(r"\*\*|\*|\?")
SAMPLED = 8


@runtime_checkable
class NamesShards(Protocol):
    """An entry that may name many files."""

    @property
    def names(self) -> dict[str, str]:
        """The names of its files, by key."""
        ...

    def model_copy(self, *, update: Mapping[str, Any]) -> Any: ...


Entry = TypeVar("Entry")


def shards_of(entries: Sequence[Entry], root: Path) -> list[Entry]:
    """The entries, each whose names are patterns replaced by one a file that there is. Raises as `grouped_shards`."""
    return [each for group in grouped_shards(entries, root) for each in group]


def grouped_shards(entries: Sequence[Entry], root: Path) -> list[list[Entry]]:
    """Of each entry itself, or where its names are patterns one a file that there is.

    Raises:
        InputError: no file matches, or the files of two sides are not in step. All at once.
    """
    found, problems = list[list[Entry]](), list[str]()
    for entry in entries:
        try:
            found.append(_shards(entry, root) if _is_open(entry) else [entry])
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return found


def sampled_shards(entries: Sequence[Entry], root: Path) -> list[Entry]:
    """As `shards_of`, of each pattern at most `SAMPLED` files, evenly spread, for a look at a corpus."""
    return [each for group in grouped_shards(entries, root) for each in group[:: -(-len(group) // SAMPLED)]]


def _is_open(entry: Any) -> bool:
    return isinstance(entry, NamesShards) and any(map(WILD.search, entry.names.values()))


def _shards(entry: Any, root: Path) -> list[Any]:
    sides = {key: matches(name, root) for key, name in entry.names.items()}
    if getattr(entry, "pairs", None) is not None:
        raise InputError(f"{' and '.join(entry.names.values())}: pairs is for one file; leave it out, or the pattern.")
    if len(sides) > 1:
        _check_in_step(entry.names, sides)
    first = next(iter(sides.values()))
    return [entry.model_copy(update={key: side[open_] for key, side in sides.items()}) for open_ in first]


def matches(pattern: str, root: Path) -> dict[tuple[str, ...], str]:
    """The names that match, as they are written in recipes, by what stands for each * and ?; in order.

    Raises:
        InputError: there is none; see also `transduce.data.remote.local_copy`.
    """
    url = url_of(pattern)
    names = matching_urls(url) if url else _files(pattern, root)
    like = re.compile(_expression(url or pattern), re.DOTALL)
    found = {match.groups(): name for name in names if (match := like.fullmatch(name))}
    if not found:
        where = "" if url else f" in {root}"
        raise InputError(f"{pattern}: no file{where} matches this pattern.")
    return dict(sorted(found.items()))


@lru_cache(maxsize=1000)
def _expression(pattern: str) -> str:
    kinds = {"**": "(.*)", "*": "([^/]*)", "?": "([^/])"}
    wild = [kinds[each] for each in WILD.findall(pattern)]
    plain = [re.escape(each) for each in WILD.split(pattern)]
    return "".join(part + more for part, more in zip(plain, [*wild, ""], strict=True))


def _files(pattern: str, root: Path) -> list[str]:
    path = Path(pattern)
    if path.is_absolute():
        anchor = Path(path.anchor)
        return [each.as_posix() for each in anchor.glob(path.relative_to(anchor).as_posix()) if each.is_file()]
    return [each.relative_to(root).as_posix() for each in root.glob(path.as_posix()) if each.is_file()]


def _check_in_step(names: Mapping[str, str], sides: Mapping[str, Mapping[tuple[str, ...], str]]) -> None:
    """Raises InputError for files of one side without one of the other."""
    (one, first), (other, second) = sides.items()
    lonely = [first[each] for each in first if each not in second] + [
        second[each] for each in second if each not in first
    ]
    if lonely:
        more = f" and {len(lonely) - NAMED:,} more" if len(lonely) > NAMED else ""
        raise InputError(
            f"{names[one]} matches {len(first):,} files and {names[other]} {len(second):,}: expected pairs of names "
            f"with the same in place of * and ?. Without a partner: {', '.join(sorted(lonely)[:NAMED])}{more}."
        )
