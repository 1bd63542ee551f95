"""Which columns of one file are source and target, where nobody says it: by their names, their order, their texts."""

import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice, permutations
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from transduce.core.errors import InputError
from transduce.core.printable import SHOWN, listed
from transduce.data.files import text_lines
from transduce.data.rows import csv_header, csv_rows, places_of, text_keys
from transduce.data.source_columns import BETWEEN_COLUMNS
from transduce.planning.languages import TWO_LETTERS
from transduce.planning.tags import tags_in

LOOKED_AT = 200  # rows of a .csv whose texts are compared
GROUPED = 20_000  # rows in which tags are looked for
FEW = 12  # columns; in tables of more no tags are looked for, as every three of them would be tried
CELLS = 1_000_000  # that are looked at, in tables of more columns
TAGGED = 5  # rows that have a tag, on average
REPEATED = 10  # sources that come with several tags
TOLD_APART = 0.98  # share of sources with their tags that have one target
HEADINGS = {"source", "target", "src", "tgt", "trg", "input", "output", *TWO_LETTERS.values()}

Row = Sequence[str]


class GuessedColumns(NamedTuple):
    """keys: of an entry of [data]. names: all that the file calls its columns. notes: what to tell, in sentences."""

    keys: Mapping[str, Any] = MappingProxyType({})
    names: Sequence[str] = ()
    notes: tuple[str, ...] = ()


def guessed_columns(path: Path, kind: str, separator: str = "\t") -> GuessedColumns:
    """The columns of a .csv, .jsonl or .tsv.

    Raises:
        InputError: it cannot be known which are meant; the message has the options to choose from.
    """
    if kind == "csv":
        return _of_csv(path)
    if kind == "jsonl":
        return _of_jsonl(path)
    return _of_tsv(path, separator) if kind == "tsv" else GuessedColumns()


def _of_csv(path: Path) -> GuessedColumns:
    """Those called source and target, or the only two."""
    header = csv_header(path)
    most = GROUPED if len(header) <= FEW else min(LOOKED_AT, max(1, CELLS // len(header)))
    rows = [row for _, row in islice(csv_rows(path, range(len(header))), most)] if len(header) > 2 else []
    if {"source", "target"} <= {*header}:
        _refuse_tags(path, rows, header, [header.index("source"), header.index("target")])
        return GuessedColumns({"source_column": "source", "target_column": "target"}, header)
    if len(header) > 2:
        likely = _likely_columns(rows[:LOOKED_AT], len(header))
        places_of(path, header, [header[place] for place in likely])  # no advice that would be refused
        _refuse_tags(path, rows, header, likely)
        source, target = (shlex.quote(header[place][:SHOWN]) for place in likely)
        raise InputError(
            f"{path}: has {len(header)} columns ({listed(header)}); say which are meant: --source-column "
            f"{source} --target-column {target}, for example."
        )
    names = " and ".join(f'"{name[:40]}"' for name in header)
    note = f"{path}: its columns {names} are the source and the target. The first line is a header and not learnt from."
    return GuessedColumns({}, header, (note,))


def _of_jsonl(path: Path) -> GuessedColumns:
    """The keys called source and target, or the only two with texts; where there are more, reading tells of them."""
    keys = text_keys(path)
    if len(keys) != 2 or {"source", "target"} & {*keys}:
        return GuessedColumns()
    note = f'{path}: its keys "{keys[0]}" and "{keys[1]}" are the source and the target.'
    return GuessedColumns({"source_column": keys[0], "target_column": keys[1]}, keys, (note,))


def _of_tsv(path: Path, separator: str) -> GuessedColumns:
    """The first two. Told are columns that are not used, and a first line that looks like a header."""
    first = next(text_lines(path), "").split(separator)
    notes = []
    if 2 < len(first) <= FEW:
        rows = (line.split(separator) for line in islice(text_lines(path), GROUPED))
        _refuse_tags(path, [row for row in rows if len(row) >= len(first)], list(map(str, range(len(first)))), [0, 1])
    if len(first) > 2:
        notes.append(
            f"{path}: the first of its {len(first)} columns is the source, the second the target; the others are not "
            "used. To choose: --source-column and --target-column, counted from 0."
        )
    if len(first) > 1 and all(cell.strip().lower() in HEADINGS for cell in first[:2]):
        notes.append(f"{path}, line 1: looks like a header, but is learnt as a pair. Delete it if it is one.")
    return GuessedColumns(notes=tuple(notes))


def _likely_columns(rows: Sequence[Row], columns: int) -> list[int]:
    """The two that hold most different texts with letters; of such the longest."""
    found = list[tuple[int, int, int]]()
    for place in range(columns):
        texts = {row[place] for row in rows if any(map(str.isalpha, row[place]))}
        found.append((len(texts), sum(map(len, texts)), place))
    return sorted(place for *_, place in sorted(found)[-2:])


def _refuse_tags(path: Path, rows: Sequence[Row], names: Sequence[str], read: Sequence[int]) -> None:
    """Raises InputError for a table as of inflection: lemma, form and tags, of which two columns alone would be learnt.

    Of a table with many columns nothing is said.

    Args:
        names: of its columns, as an option takes them.
        read: the places of the source and the target, as far as is known.
    """
    if len(names) > FEW:
        return
    places = (place for place in permutations(range(len(names)), 3) if place[0] == read[0])
    found = next((place for place in places if _tells_apart(rows, *place)), None)
    if found is None:
        return
    source, target, tags = (shlex.quote(names[place]) for place in found)
    command = f"transduce train {shlex.quote(str(path))} --source-column {source}"
    raise InputError(
        f"{path}: the same text in column {source} has different ones in column {target}, which column {tags} tells "
        f"apart, as the tags of an inflection do. Choose. With the tags: {command} --source-column {tags} "
        f"--target-column {target}. Without them: {command} --target-column {shlex.quote(names[read[1]])}."
    )


def _tells_apart(rows: Sequence[Row], source: int, target: int, tags: int) -> bool:
    """Whether most sources that come with several tags have several targets, but one with each tag."""
    if len({row[tags] for row in rows}) > len(rows) / TAGGED:
        return False
    targets, tagged = defaultdict[str, set[str]](set), defaultdict[str, dict[str, set[str]]](dict)
    for row in rows:
        targets[row[source]].add(row[target])
        tagged[row[source]].setdefault(row[tags], set()).add(row[target])
    repeated = [text for text, with_tags in tagged.items() if len(with_tags) > 1]
    several = sum(len(targets[text]) > 1 for text in repeated)
    clear = [len(each) == 1 for with_tags in tagged.values() for each in with_tags.values()]
    if len(repeated) < REPEATED or several <= len(repeated) / 2 or sum(clear) < TOLD_APART * len(clear):
        return False
    between = BETWEEN_COLUMNS
    return tags_in([f"{row[source]}{between}{row[tags]}" for row in rows], between) is not None
