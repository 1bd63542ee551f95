"""Parts of a graph's nodes, or of graphs, that are given as files: a list for each part, or a table of folds."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import AfterValidator, model_validator

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.core.registry import check
from transduce.data.files import text_lines
from transduce.data.formats import format_of
from transduce.data.hold_out import TRAIN, HoldOut
from transduce.data.labelled_hold_out import ExampleSplit, hash_of, parts_of_files
from transduce.data.remote import located
from transduce.data.structures.node_tables import refuse
from transduce.data.structures.numbered_names import NumberedNames

FormatName = Annotated[str, AfterValidator(lambda name: check("data.formats", name))]
FoldRow = tuple[int, str, str]  # line, graph, fold
SHOWN = 40  # characters of a text in a message


class ListedMember(NamedTuple):
    """A node, or a graph, by its number, and where it is named: "train.txt, line 3"."""

    number: int
    where: str


class MemberList(Config):
    """A list of nodes, or of graphs, by their names or numbers: one a row of a table, or a line of any other file."""

    file: str
    """A line for each; or a table: .csv, .jsonl, .json, .parquet, .xlsx, .tsv. Compressed or not."""
    format: FormatName | None = None
    """Of the file, as in "csv". Unset: what its suffix says."""
    column: int | str = 0
    """Column of the names or numbers: its number from 0, or its name. In objects the key is `node`, or `graph`."""

    def path(self, root: Path) -> Path:
        """The file, relative ones from `root`."""
        return located(root, self.file)

    def paths(self, root: Path) -> list[Path]:
        """The file alone."""
        return [self.path(root)]

    def evaluate_options(self, root: Path) -> list[str]:
        """None: `transduce evaluate` reads the nodes or the graphs themselves."""
        return []

    def read(self, root: Path, names: NumberedNames) -> list[ListedMember]:
        """Those that the list names, in its order.

        Raises:
            InputError: the list is empty; it names one that there is not, or one twice; all such lines are named.
        """
        path, format = self.path(root), format_of(Path(self.file), self.format)
        rows = ((number, text) for number, [text] in format.rows(path, [format.asked(self.column, names.what)]))
        return _members(path, rows, names)


class FoldFile(Config):
    """Which graph is in which fold: a table with a row for each graph; or, of each fold, a line with its graphs."""

    file: str
    """A table: .csv, .jsonl, .json, .parquet, .xlsx; anything else is tab-separated. Compressed or not."""
    format: FormatName | None = None
    """Of the file, as in "csv". Unset: what its suffix says."""
    graph: int | str = 0
    """Column of the graph's name or number: its number from 0, or its name. In objects the key is `graph`."""
    fold: int | str = 1
    """Column of the fold, which may be called anything. In objects the key is `fold`."""
    lines: bool = False
    """The file is no table: each line has the name of a fold and then its graphs, with spaces between."""

    @model_validator(mode="after")
    def _a_table_or_lines(self) -> "FoldFile":
        fields = type(self).model_fields
        if self.lines and (
            unread := [key for key in ("format", "graph", "fold") if getattr(self, key) != fields[key].default]
        ):
            raise ValueError(f"lines = true: {', '.join(unread)} is not read. Leave it out")
        return self

    def path(self, root: Path) -> Path:
        """The file, relative ones from `root`."""
        return located(root, self.file)

    def read(self, root: Path, names: NumberedNames) -> dict[str, list[ListedMember]]:
        """The graphs of each fold; folds in the order of their numbers, or else of their names.

        Raises:
            InputError: there are fewer than two folds; a graph is named that there is not, or one twice; all such
                lines are named.
        """
        rows = self._rows(root)
        members = _members(self.path(root), ((number, text) for number, text, _ in rows), names)
        found: dict[str, list[ListedMember]] = {fold: [] for fold in self._ordered(root, rows)}
        for member, (_, _, fold) in zip(members, rows, strict=True):
            found[fold].append(member)
        return found

    def folds(self, root: Path) -> list[str]:
        """The names of the folds, in the order of `read`. Raises InputError where there are fewer than two."""
        return self._ordered(root, self._rows(root))

    def _ordered(self, root: Path, rows: Sequence[FoldRow]) -> list[str]:
        folds = {fold for _, _, fold in rows}
        if len(folds) < 2:
            raise InputError(f"{self.path(root)}: expected two folds or more; got {len(folds)}.")
        return sorted(folds, key=int) if all(map(str.isdecimal, folds)) else sorted(folds)

    def _rows(self, root: Path) -> list[FoldRow]:
        path = self.path(root)
        if self.lines:
            return [*_lines_of_folds(path)]
        format = format_of(Path(self.file), self.format)
        keys = [format.asked(self.graph, "graph"), format.asked(self.fold, "fold")]
        return [(number, graph, fold.strip()) for number, [graph, fold] in format.rows(path, keys)]


Entry = MemberList | Sequence[ListedMember] | None
"""A part: the list that a recipe names; members that are known; None = all that have a label and are in no other."""


def read_parts(
    entries: Mapping[str, Entry], labels: Mapping[int, ListedMember], names: NumberedNames, root: Path
) -> dict[str, list[int]]:
    """The numbers in each part, in order. A part may be empty; `check_filled` refuses that.

    Args:
        labels: where each that has a label stands, by its number.

    Raises:
        InputError: what `MemberList.read` refuses; a list names one without a label, or one that is in another part
            too, where one of these is a list.
    """
    found: dict[str, Sequence[ListedMember]] = {}
    problems = list[str]()
    for part, entry in entries.items():
        found[part] = entry.read(root, names) if isinstance(entry, MemberList) else entry or ()
        lacking = [each for each in found[part] if each.number not in labels]
        problems += [
            f'{each.where}: {names.what} "{names.text(each.number)[:SHOWN]}" has no label. Leave it out.'
            for each in lacking
        ]
    refuse(problems, "lists")
    if any(isinstance(entry, MemberList) for entry in entries.values()):
        check_apart(found, names)
    taken = {each.number for members in found.values() for each in members}
    rest = [each for each in labels.values() if each.number not in taken]
    found |= {part: rest for part, entry in entries.items() if entry is None}
    return {part: sorted(each.number for each in members) for part, members in found.items()}


def drawn_from(
    train: Sequence[int], texts: Mapping[int, str], labels: Mapping[int, str], amounts: HoldOut, named: str
) -> tuple[dict[str, list[int]], str]:
    """What stays for training, and what is held out of it; how it was drawn, in a sentence.

    Args:
        texts: what decides whether one is drawn; the same text stays on one side. named: what the error begins with.

    Raises:
        InputError: there are too few.
    """
    examples = [(hash_of(texts[each]), labels[each]) for each in train]
    what = "examples, as each label keeps one for training"
    split = ExampleSplit(parts_of_files(named, [examples], amounts, what), "examples", "of each label in proportion")
    places = {"train": TRAIN, **split.held_out_parts}
    numbers = np.array(train)
    return {name: numbers[split.parts[0] == part].tolist() for name, part in places.items()}, split.report()


def root_of(path: Path, name: str) -> Path:
    """The folder from which a file is called `name`: a model file does not keep where its data lay."""
    parts = Path(name).parts
    above = list(path.parents)
    return above[min(len(parts), len(above)) - 1] if path.parts[-len(parts) :] == parts else path.parent


def check_filled(path: Path, parts: Mapping[str, Sequence[object]], what: str) -> None:
    """Raises InputError naming the parts that have none."""
    if empty := [part for part, members in parts.items() if not members]:
        raise InputError(f"{path}: {', '.join(empty)}: expected {what}s with labels; there are none for this.")


def check_apart(parts: Mapping[str, Sequence[ListedMember]], names: NumberedNames) -> None:
    """Raises InputError naming those that are in two parts."""
    seen: dict[int, tuple[str, str]] = {}
    problems = []
    for part, member in chain.from_iterable(((part, each) for each in members) for part, members in parts.items()):
        other, where = seen.setdefault(member.number, (part, member.where))
        if other != part:
            called = f'{names.what} "{names.text(member.number)[:SHOWN]}"'
            problems.append(f"{member.where}: {called} is for {part}, and for {other} in {where}. Leave it out of one.")
    refuse(problems, next(iter(parts), ""))


def _lines_of_folds(path: Path) -> Iterator[FoldRow]:
    for number, line in enumerate(text_lines(path), 1):
        fold, *graphs = line.split() or [""]
        yield from ((number, graph, fold) for graph in graphs)


def _members(path: Path, rows: Iterable[tuple[int, str]], names: NumberedNames) -> list[ListedMember]:
    found, first, problems = list[ListedMember](), dict[int, int](), list[str]()
    for line, text in rows:
        number = names.find(text)
        if number is None:
            came = text.strip()[:SHOWN]
            problems.append(f'{path}, line {line}: expected {names.wanted}; got "{came}".{names.hint(text)}')
        elif number in first:
            named = f'{names.what} "{names.text(number)[:SHOWN]}"'
            problems.append(f"{path}, line {line}: {named} was in line {first[number]} already. Leave it out.")
        else:
            first[number] = line
        found.append(ListedMember(-1 if number is None else number, f"{path}, line {line}"))
    if not found:
        problems.append(f"{path}: expected {names.what}s; there are none.")
    refuse(problems, str(path))
    return found
