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
from transduce.data.formats import Format, Key
from transduce.data.formats.base import check_once
from transduce.data.pairs.tags import tags_in
from transduce.data.source_columns import BETWEEN_COLUMNS

LOOKED_AT = 200  # rows whose texts are compared
GROUPED = 20_000  # rows in which tags are looked for
FEW = 12  # columns; in tables of more no tags are looked for, as every three of them would be tried
CELLS = 1_000_000  # that are looked at, in tables of more columns
TAGGED = 5  # rows that have a tag, on average
REPEATED = 10  # sources that come with several tags
TOLD_APART = 0.98  # share of sources with their tags that have one target

Row = Sequence[str]


class GuessedColumns(NamedTuple):
    """keys: of an entry of [data]. names: all that the file calls its columns. notes: what to tell, in sentences."""

    keys: Mapping[str, Any] = MappingProxyType({})
    names: Sequence[str] = ()
    notes: tuple[str, ...] = ()


def guessed_columns(path: Path, format: Format) -> GuessedColumns:
    """The columns of a file whose columns nobody named.

    Raises:
        InputError: it cannot be known which are meant; the message has the options to choose from.
    """
    if not format.counted:
        return _of_keys(path, format)
    columns = format.columns(path)
    return _of_numbers(path, format, columns) if isinstance(columns, range) else _of_header(path, format, columns)


def _of_header(path: Path, format: Format, columns: Sequence[Key]) -> GuessedColumns:
    """Those called source and target, or the only two."""
    header = [str(name) for name in columns]
    several = format.rows(path, range(len(header))) if len(header) > 2 else iter(())
    rows = [row for _, row in islice(several, _looked_at(len(header)))]
    words = [name.strip().lower() for name in header]
    if {"source", "target"} <= {*words}:
        source, target = words.index("source"), words.index("target")
        _refuse_tags(path, rows, header, [source, target])
        return GuessedColumns({"source_column": header[source], "target_column": header[target]}, header)
    if len(header) > 2:
        likely = _likely_columns(rows[:LOOKED_AT], len(header))
        check_once(path, header, [header[place] for place in likely])  # no advice that would be refused
        _refuse_tags(path, rows, header, likely)
        example = "--source-column {} --target-column {}".format(
            *(shlex.quote(header[place][:SHOWN]) for place in likely)
        )
        raise InputError(
            f"{path}: has {len(header)} columns ({listed(header)}); say which are meant: {example}, for example."
        )
    names = " and ".join(f'"{name[:40]}"' for name in header)
    first = " The first line is a header and not learnt from." if format.header(path) else ""
    return GuessedColumns({}, header, (f"{path}: its columns {names} are the source and the target.{first}",))


def _of_keys(path: Path, format: Format) -> GuessedColumns:
    """The keys called source and target, or the only two with texts; where there are more, reading tells of them."""
    keys = [str(key) for key in format.text_columns(path)]
    if len(keys) != 2 or {"source", "target"} & {*keys}:
        return GuessedColumns()
    note = f'{path}: its keys "{keys[0]}" and "{keys[1]}" are the source and the target.'
    return GuessedColumns({"source_column": keys[0], "target_column": keys[1]}, keys, (note,))


def _of_numbers(path: Path, format: Format, columns: Sequence[Key]) -> GuessedColumns:
    """The first two. Told are columns that are not used."""
    if len(columns) <= 2:
        return GuessedColumns()
    rows = [row for _, row in islice(format.rows(path, columns), _looked_at(len(columns)))]
    _refuse_tags(path, rows, list(map(str, columns)), [0, 1])
    note = (
        f"{path}: the first of its {len(columns)} columns is the source, the second the target; the others are not "
        "used. To choose: --source-column and --target-column, counted from 0."
    )
    return GuessedColumns(notes=(note,))


def _looked_at(columns: int) -> int:
    return GROUPED if columns <= FEW else min(LOOKED_AT, max(1, CELLS // columns))


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
