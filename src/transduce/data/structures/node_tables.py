"""Tables of the nodes and of the edges of one graph, in any format of tables.

Shapes: E edges.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.core.errors import InputError
from transduce.core.printable import PROBLEMS, listed
from transduce.data.files import text_lines
from transduce.data.formats import Format, Key, Row, format_of
from transduce.data.formats.jsonl import Jsonl, JsonLine
from transduce.data.formats.tsv import Tsv
from transduce.data.structures.numbered_names import NumberedNames

COLUMNS = ("node", "name", "split", "label", "feature_indices", "features")
ENDS = ("source", "src", "from", "head"), ("target", "tgt", "to", "tail")  # names of the columns of edges
MOST_NODES = 10_000_000
MOST_FEATURES = 1_000_000
SHOWN = 60  # characters of a line in a message


class NodeLine(NamedTuple):
    """A row of a table of nodes. split, label, name: "" where it has none. entries: feature -> value, not 0."""

    line: int
    node: int
    split: str
    label: str
    entries: dict[int, float]
    name: str = ""


class Misfit(ValueError):
    """What is wrong with a row, in words."""


def refuse(problems: Sequence[str], named: str) -> None:
    """Raises InputError with the first of the problems, and how many more there are; nothing where there are none."""
    if problems:
        more = [f"{named}: {len(problems) - PROBLEMS:,} more lines like these."] if len(problems) > PROBLEMS else []
        raise InputError([*problems[:PROBLEMS], *more])


def read_nodes(path: Path, features: bool = True) -> list[NodeLine]:
    """A table of nodes, whose columns have names.

    node: its number. name: what it is called; without `node`, nodes are numbered from 0 in the order of the table.
    split, label: any texts; an empty label, or -1, is not given. feature_indices: the numbers of the features that are
    1, separated by spaces; or features: all of their values, as many as in every other row. In JSON both may be lists.

    Args:
        features: whether the table has to have features.

    Raises:
        InputError: columns are missing, or there twice; a row cannot be read, names a node again, or has more cells
            than the header; all such rows are named.
    """
    there = _columns(path, features)
    found: dict[int, NodeLine] = {}
    names: dict[str, int] = {}
    problems, width = [], 0
    for number, row in _cells(path, there):
        cells = dict(zip(there, row, strict=True))
        try:
            each, width = _node_line(number, cells, len(found)), _width(cells, width)
            if each.node in found:
                raise Misfit(f"node {each.node} was in line {found[each.node].line} already")
            if each.name and names.setdefault(each.name, number) != number:
                raise Misfit(f'the name "{each.name[:SHOWN]}" was in line {names[each.name]} already')
            found[each.node] = each
        except Misfit as error:
            problems.append(f"{path}, line {number}: {error}.")
        except ValueError:
            came = " ".join(row)[:SHOWN]
            problems.append(f"{path}, line {number}: expected a node's number and its features; got {came}")
    if not found and not problems:
        problems.append(f"{path}: expected nodes; there are none.")
    refuse(problems, str(path))
    return [found[node] for node in sorted(found)]


def names_of(nodes: Sequence[NodeLine]) -> NumberedNames:
    """What the nodes of a table are called; nodes that no row is of have no name."""
    count = nodes[-1].node + 1
    if not any(each.name for each in nodes):
        return NumberedNames(count)
    names = [""] * count
    for each in nodes:
        names[each.node] = each.name
    return NumberedNames(count, tuple(names))


def _columns(path: Path, features: bool) -> list[str]:
    """The columns that are read. Raises InputError where some are missing."""
    format = format_of(path)
    columns = format.columns(path)
    there = [name for name in COLUMNS if format.place(path, name, columns) is not None]
    described = {"feature_indices", "features"} & {*there}
    if not {"node", "name"} & {*there} or (features and not described):
        header = format.first(path) if isinstance(format, Tsv) else [str(each) for each in columns]
        raise InputError(
            f"{path}, line 1: expected a header with node or name, feature_indices or features, and perhaps split and "
            f"label; got {listed(header)[:80]}."
        )
    return there


def _cells(path: Path, keys: Sequence[str]) -> Iterator[Row]:
    """The cells of each row. Raises InputError as `Format.rows`, and for rows with more cells than the header."""
    format = format_of(path)
    if isinstance(format, Jsonl):
        return ((each.line, _values(path, each, keys)) for each in format.objects(path))
    if isinstance(format, Tsv):
        _check_width(path, format)
    return format.rows(path, keys)


def _check_width(path: Path, format: Tsv) -> None:
    wide = len(format.first(path))
    problems = [
        f"{path}, line {number}: expected {wide} cells, as in the header; got {cells}."
        for number, line in enumerate(text_lines(path), 1)
        if (cells := line.count(format.separator) + 1) > wide
    ]
    refuse(problems, str(path))


def _values(path: Path, each: JsonLine, keys: Sequence[str]) -> list[str]:
    """The values of an object as cells; those of a list with spaces between, "" for null and where there is none."""
    found = each.value
    values = [found.get(key) for key in keys] if isinstance(found, dict) else []
    if not values or not all(_is_cell(value) for value in values):
        raise InputError(
            f"{path}, line {each.line}: expected an object of texts, numbers and lists of numbers; got "
            f"{each.written[:SHOWN]}"
        )
    return [" ".join(value) if isinstance(value, list) else value or "" for value in values]


def _is_cell(value: Any) -> bool:
    """Numbers are texts here, as they are written."""
    return value is None or isinstance(value, str) or (
        isinstance(value, list) and all(isinstance(each, str) for each in value)
    )  # fmt: skip


def _width(cells: Mapping[str, str], width: int) -> int:
    """How many features the nodes have up to this one; 0 = none had any, which is no error."""
    count = len(cells.get("features", "").split()) if "feature_indices" not in cells else 0
    if count and width and count != width:
        raise Misfit(f"expected {width} features, as in the lines before; got {count}")
    return width or count


def _node_line(line: int, cells: Mapping[str, str], place: int) -> NodeLine:
    """place: the number of a node whose table has no numbers."""
    node, label = int(cells.get("node", place)), cells.get("label", "").strip()
    name = cells.get("name", "").strip()
    if "node" not in cells and not name:
        raise Misfit("expected the name of a node; it is empty")
    if "\n" in name:
        raise Misfit("expected the name of a node in one line")
    if "feature_indices" in cells:
        entries = dict.fromkeys(map(int, cells["feature_indices"].split()), 1.0)
    else:
        entries = dict(enumerate(map(float, cells.get("features", "").split())))
    if node < 0 or min(entries, default=0) < 0 or not all(np.isfinite(value) for value in entries.values()):
        raise ValueError
    if node >= MOST_NODES:
        raise Misfit(f"expected nodes numbered from 0 to {MOST_NODES - 1:,}; got {node}")
    if (last := max(entries, default=0)) >= MOST_FEATURES:
        raise Misfit(f"expected features numbered from 0 to {MOST_FEATURES - 1:,}; got {last}")
    known = "" if label == "-1" else label
    return NodeLine(line, node, cells.get("split", "").strip(), known, {k: v for k, v in entries.items() if v}, name)


def read_edges_file(path: Path, nodes: NumberedNames) -> NDArray[np.int64]:
    """(E, 2): the two nodes of each row, by name or number.

    .csv, .jsonl and so on have columns source and target, or two columns. Any other file has the two nodes of an edge
    in a line, with a tab or white space between.

    Raises:
        InputError: a row is none such, or names a node that there is not; all such rows are named.
    """
    format, pairs, problems = format_of(path), list[tuple[int, int]](), list[str]()
    for number, ends in _lines_of_two(path, format) if isinstance(format, Tsv) else _table_of_two(path, format, nodes):
        found = [nodes.find(end) for end in ends]
        if len(found) == 2 and found[0] is not None and found[1] is not None:
            pairs.append((found[0], found[1]))
            continue
        came = " ".join(ends)[:SHOWN]
        unknown = [end for end, node in zip(ends, found, strict=True) if node is None]
        if len(found) != 2:
            problems.append(f"{path}, line {number}: expected two nodes; got {came}")
        else:
            problems.append(f"{path}, line {number}: expected {nodes.wanted}; got {came}.{nodes.hint(unknown[0])}")
    refuse(problems, str(path))
    return np.array(pairs, np.int64).reshape(-1, 2)


def _lines_of_two(path: Path, format: Tsv) -> Iterator[Row]:
    header = format.header(path) or [*map(str.strip, format.first(path))] in [
        [*each] for each in zip(*ENDS, strict=True)
    ]
    for number, line in enumerate(text_lines(path), 1):
        if line.strip() and number > header:
            yield number, [end.strip() for end in line.split("\t")] if "\t" in line else line.split()


def _table_of_two(path: Path, format: Format, nodes: NumberedNames) -> Iterator[Row]:
    columns = format.columns(path)
    if format.header(path) and len(columns) == 2 and all(nodes.find(str(each)) is not None for each in columns):
        raise InputError(f"{path}, line 1: expected a header such as source,target; got an edge. Add a header.")
    keys: list[Key] = [*chain.from_iterable([name for name in names if name in columns][:1] for names in ENDS)]
    if len(keys) != 2:
        keys = [*columns]
    if len(keys) != 2:
        raise InputError(f"{path}: expected the columns source and target; it has {listed(columns) or 'none'}.")
    return format.rows(path, keys)
