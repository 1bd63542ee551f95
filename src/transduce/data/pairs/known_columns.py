"""A file of pairs where inputs are read, to translate or to compare outputs with its targets: new.csv, new.jsonl, ..

Its columns are those of the recipe's file at this path, or of one of this name, or of one of this kind that fits.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.core.languages import base_of, matching, name_of
from transduce.core.printable import listed
from transduce.data.files import existing_file, text_lines
from transduce.data.formats import Format, Key, format_name, format_of, is_table, suffixes
from transduce.data.input_file import InputFile
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.source_columns import separator_of
from transduce.data.speech.inputs import read_recording_inputs

ALONE: dict[str, Any] = {"pairs": None, "weight": 1.0, "to": None, "tag": None}  # what only the recipe's file has
TWO_FILES = "Write its sources and targets to two files, a text a line."


@dataclass(frozen=True)
class AskedColumns:
    """The columns that somebody names for a file: of the source, one or several, and of the target, or None."""

    source: tuple[Key, ...] = ()
    target: Key | None = None


@dataclass(frozen=True)
class Known:
    """What a model's recipe says, and whoever names the file.

    files: the recipe's entries, with paths from `root`. languages: of source and target. asked: columns, which are
    read in place of the recipe's.
    """

    files: Sequence[PairFiles]
    root: Path
    languages: tuple[str, str]
    asked: AskedColumns | None = None

    @property
    def sources(self) -> tuple[int, str | None]:
        """How many columns sources have, and what stands between them."""
        found = ((len(each.sources), each.source_separator) for each in self.files)
        return max(found, key=lambda each: each[0], default=(1, None))


@dataclass(frozen=True)
class PairTable:
    """A file with columns, as its format calls them: names of a header, keys, languages, numbers."""

    path: Path
    kind: str
    format: Format
    columns: Sequence[Key]

    def has(self, key: Key) -> bool:
        return self.format.place(self.path, key, self.columns) is not None

    @property
    def named(self) -> bool:
        return not isinstance(self.columns, range)

    def __str__(self) -> str:
        return listed(self.columns) if self.named else f"{len(self.columns)} columns"


def read_pair_inputs(path: Path, known: Known) -> InputFile | None:
    """The sources of a file of pairs, with the targets if it has them; None: the file has a source a line.

    A tab-separated file has a source a line, unless some line has more columns than a source. Objects of .jsonl and
    units of .tmx may lack their targets.

    Raises:
        InputError: as `read_pairs`; the recipe and the names of columns do not say what is meant; it is a pipe.
    """
    if not is_table(path):
        if known.asked:
            raise InputError(f"{path}: expected a file with columns ({', '.join(suffixes())}), as columns are named.")
        return None
    _check_name(path)
    kind, local = format_name(path), existing_file(path)
    alike = _alike(path, kind, known)
    table = _table(local, kind, alike[0][0].separator if alike else None)
    found = [_asked(table, known, known.asked)] if known.asked else _fitting(alike, table)
    least = len(found[0].sources) if found else known.sources[0]
    if not table.named and not known.asked and len(table.columns) <= least:
        return None
    if len({(*each.sources, each.source_separator) for each in found}) > 1:
        raise InputError(f"{path}: the recipe reads such files in several ways. {TWO_FILES}")
    read = found[0].model_copy(update={"file": str(local), **ALONE}) if found else _guessed(table, known)
    targets = [*dict.fromkeys(each.keys[-1] for each in found or [read])]
    answered = len(targets) == 1 and table.has(targets[0])
    pairs = [*_pairs(read, table, answered)]
    sparse = table.format.sparse  # objects and units may lack a side; an empty cell is an empty text
    references = [[target] if answered and (target or not sparse) else [] for _, target in pairs]
    note, missing = _note(path, read, table, known), "" if answered else _missing(table, targets)
    return InputFile([], [source for source, _ in pairs], references, note=note, missing=missing)


def known_of(config: Mapping[str, Any]) -> Known:
    """What the recipe in a model file says. Raises InputError where its [data] is not of pairs."""
    data, task = config.get("data", {}), config.get("task", {})
    try:
        entries = [*data.get("test", {}).values(), data.get("validation"), *data.get("train", ())]
        files = [PairFiles.model_validate(each) for each in entries if each]
        return Known(files, Path(data.get("root", ".")), (task.get("source", ""), task.get("target", "")))
    except (AttributeError, TypeError, ValueError) as error:
        raise InputError(f"the model file: expected [data] of pairs in its recipe; {error}") from error


def read_asked(path: Path, config: Mapping[str, Any], asked: AskedColumns) -> InputFile | None:
    """`read_pair_inputs` by the recipe of a model, with columns that are named. Raises InputError as these."""
    kind = config.get("task", {}).get("kind", "translation")
    if kind == "speech_recognition":
        return read_recording_inputs(path, config.get("data", {}).get("words"), asked.source, asked.target)
    if kind != "translation":
        raise InputError(
            f"--source-column: columns are of pairs, and of recordings; the model's task is {kind}. Leave it out."
        )
    return read_pair_inputs(path, replace(known_of(config), asked=asked))


def _check_name(path: Path) -> None:
    """Raises InputError for a pipe, which cannot be read twice, and for a name that is no text."""
    if path.is_fifo():
        raise InputError(f"{path}: expected a file, which is read twice; got a pipe. Write its text to a file first.")
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise InputError(f"{str(path)!a}: its name is not UTF-8. Rename it.") from None


def _alike(path: Path, kind: str, known: Known) -> list[list[PairFiles]]:
    """The recipe's files of a kind, as far as there are any: this very one; of this name; all."""
    tables = [each for each in known.files if each.format_name == kind]
    same = [each for each in tables if (known.root / each.names["file"]).resolve() == path.resolve()]
    named = [each for each in tables if Path(each.names["file"]).name == path.name]
    return [group for group in (same, named, tables) if group]


def _table(path: Path, kind: str, separator: str | None) -> PairTable:
    format = format_of(path, kind, separator)
    columns = format.columns(path)
    if isinstance(columns, range):  # a source alone may stand before sources with targets
        between = separator or "\t"
        columns = range(max((line.count(between) + 1 for line in text_lines(path)), default=0))
    return PairTable(path, kind, format, columns)


def _fitting(alike: Sequence[Sequence[PairFiles]], table: PairTable) -> Sequence[PairFiles]:
    """Of the first group with any, those whose sources the table has; else the first, to say what is missing."""
    for group in alike:
        if found := [each for each in group if all(map(table.has, each.keys[:-1]))]:
            return found
    return alike[0][:1] if alike else []


def _asked(table: PairTable, known: Known, asked: AskedColumns) -> PairFiles:
    """The columns that are asked for; one that is not named is the other of two, or that which the names say."""
    named = [*asked.source, *([] if asked.target is None else [asked.target])]
    if missing := [str(each) for each in named if not table.has(each)]:
        raise InputError(f"{table.path}: expected columns {', '.join(missing)}; it has {table}.")
    source, *more = asked.source or [_other(table, known, "source", named)]
    target = _other(table, known, "target", named) if asked.target is None else asked.target
    if source is None:
        raise InputError(f"{table.path}: which column is the source? Name it with --source-column; it has {table}.")
    absent = "target" if table.named else len(table.columns)
    columns = {"source_column": (source, *more), "target_column": absent if target is None else target}
    return _entry(table, known.sources[1], **columns)


def _other(table: PairTable, known: Known, side: str, named: Sequence[Key]) -> Key | None:
    """The column of the side that is not named, by its name or as the other of two; None where it is not known."""
    left = [each for each in table.columns if each not in named]
    if (called := _called(table, side, known.languages[side == "target"])) in left:
        return called
    return left[0] if len(table.columns) == 2 and len(left) == 1 else None


def _guessed(table: PairTable, known: Known) -> PairFiles:
    """Of a kind that the recipe has none of: columns called source and target, or by languages; or the first ones.

    Raises:
        InputError: there are more, and they are called otherwise.
    """
    number, between = known.sources
    if (keys := _named_alike(table, known)) is not None:
        return _entry(table, between, source_column=keys[:-1], target_column=keys[-1])
    source, target = (_called(table, *each) for each in zip(("source", "target"), known.languages, strict=True))
    two = number == 1 and len(table.columns) == 2 and table.named
    if two and not table.format.languages and source is None:
        source = next((str(each) for each in table.columns if each != target), None) if target else None
    if source is not None and table.named:
        return _entry(table, between, source_column=source, target_column=target or "target")
    if table.format.counted and (not table.named or len(table.columns) <= number + 1):
        return _entry(table, between, source_column=tuple(range(number)), target_column=number)
    if two and table.format.keyed() and not target:
        first, second = table.columns
        return _entry(table, between, source_column=first, target_column=second)
    if table.format.keyed():
        return _entry(table, between)
    names = " or ".join(each for each in ("source" if table.format.counted else "", known.languages[0]) if each)
    wanted = f"column {names}" if names else "the language that the model reads, which its recipe does not say"
    raise InputError(f"{table.path}: expected the source in {wanted}; it has {table}.")


def _entry(table: PairTable, between: str | None, **columns: Any) -> PairFiles:
    """The table as an entry of a recipe."""
    place = {"file": str(table.path), "format": table.kind, "source_separator": between}
    return PairFiles.model_validate({**place, **columns})


def _named_alike(table: PairTable, known: Known) -> tuple[Key, ...] | None:
    """The columns of a file of another kind in the recipe, if this table has its sources under these names."""
    if not table.named or table.format.languages:
        return None
    named = [each.keys for each in known.files if each.file is not None and not each.kind.languages]
    named = [keys for keys in named if all(isinstance(key, str) for key in keys)]
    return next((keys for keys in named if all(map(table.has, keys[:-1]))), None)


def _called(table: PairTable, side: str, language: str) -> str | None:
    """The column that is called by a side, a language's name or its code; None: there is none, or there are several."""
    names = {side, name_of(base_of(language)).lower()} if language else {side}
    columns = [each for each in table.columns if isinstance(each, str)]
    if found := [each for each in columns if each.strip().lower() in names]:
        return found[0]
    return alike if language and (alike := matching(language, columns)) in columns else None


def _pairs(files: PairFiles, table: PairTable, answered: bool) -> Iterator[tuple[str, str]]:
    """Each with its target, "" where there is none."""
    *sources, target = files.keys
    keys, optional = ([*sources, target], [target]) if answered else (sources, [])
    between = separator_of(files.source_separator)
    rows = table.format.rows(table.path, keys, optional)
    return ((between.join(row[: len(sources)]), row[-1] if answered else "") for _, row in rows)


def _missing(table: PairTable, targets: Sequence[Key]) -> str:
    if len(targets) > 1:
        return f"the recipe has several columns of targets: {', '.join(map(str, targets))}. {TWO_FILES}"
    counted = " (counted from 0)" if isinstance(targets[0], int) else ""
    return f"expected the target in column {targets[0]}{counted}; it has {table}."


def _note(path: Path, files: PairFiles, table: PairTable, known: Known) -> str:
    """Which columns were read, where neither the recipe nor their names say it."""
    if known.asked or any(table.kind == each.format_name for each in known.files):
        return ""
    sides = zip(("source", "target"), known.languages, strict=True)
    called = any(_called(table, *each) for each in sides)
    if isinstance(files.keys[0], str) and (not table.format.keyed() or called or not table.has(files.keys[0])):
        return ""
    number = len(files.sources)
    columns = "the first column was" if number == 1 else f"the first {number} columns were"
    target = ", the next as the target" if table.has(number if table.format.counted else files.keys[-1]) else ""
    names = f" ({table})" if table.named else ""
    return f"{path}: {columns} read as the source{target}{names}; the recipe has no .{table.kind} to go by."
