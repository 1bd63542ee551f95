"""Which files, and which languages, somebody means who names a source and perhaps a target."""

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, count, islice
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.core.languages import matching
from transduce.data.corpus import read_pairs
from transduce.data.files import (
    PACKERS,
    TABLES,
    archived_names,
    lasting_file,
    read_blocks,
    read_lines,
    suffix_of,
    text_lines,
)
from transduce.data.pair_files import PairFiles
from transduce.data.rows import csv_header, csv_rows
from transduce.data.tmx import tmx_languages
from transduce.planning.languages import (
    TWO_LETTERS,
    language_of,
    languages_of_columns,
    plain_code,
)
from transduce.training.run_directory import RESOLVED

BARS = " ||| "  # between source and target, as fast_align has them
LOOKED_AT = 200  # rows of a .csv
HEADINGS = {"source", "target", "src", "tgt", "trg", "input", "output", *TWO_LETTERS.values()}
PARTS = {"validation": ("validation", "valid", "val", "dev"), "test": ("test",), "train": ("train",)}


@dataclass(frozen=True)
class Named:
    """What was named: on the command line, or in a call of `transduce.train`.

    columns: of the source in one file; target_column: of the target. source_separator: between several columns of the
    source. separator: between source and target on a line of one file.
    """

    source: Path
    target: Path | None = None
    columns: tuple[int | str, ...] = ()
    target_column: int | str | None = None
    source_separator: str | None = None
    separator: str | None = None
    languages: tuple[str, str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """For JSON, to tell whether a command is the same."""
        target = None if self.target is None else str(self.target)
        return {**self.__dict__, "source": str(self.source), "target": target}


@dataclass(frozen=True)
class Inputs:
    """Files as entries of a recipe's [data]; name: of the training. notes: what to tell of them, in sentences."""

    name: str
    train: dict[str, Any]
    languages: tuple[str, str] = ("", "")
    validation: dict[str, Any] | None = None
    tests: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def is_data(path: Path) -> bool:
    """Whether a file that is named where a recipe may be is data: by its suffix."""
    return suffix_of(path) in (*TABLES, ".zip")


def looks_like_data(path: Path, separator: str | None = None) -> bool:
    """Whether what lies at a path, where a recipe may be named, is pairs: of a known kind, in columns, or a folder.

    separator: what is said to stand between source and target on a line.
    """
    if path.is_dir():
        files = (each for each in path.iterdir() if each.is_file())
        return not (path / RESOLVED).exists() and any(language_of(each) for each in files)
    if not path.is_file() or path.suffix == ".toml":
        return False
    first = next(read_blocks(path), b"").partition(b"\n")[0]
    return separator is not None or is_data(path) or b"\t" in first or BARS.encode() in first


def names_data(path: Path, separator: str | None = None) -> bool:
    """The same, and of a file that is not there, whether its name is that of pairs."""
    return looks_like_data(path, separator) or (is_data(path) and not path.exists())


def resolve_inputs(named: Named) -> Inputs:
    """The files that are meant, all of which are read once.

    Raises:
        InputError: files that are missing, empty, or do not fit together, or no target is named. All at once.
    """
    inputs = named_inputs(named)
    problems = list[str]()
    for files in (inputs.train, inputs.validation, *inputs.tests.values()):
        problems += _problems(files) if files else []
    if problems:
        raise InputError(problems)
    return inputs


def named_inputs(named: Named) -> Inputs:
    """The same, of which only what says how they are meant is read: names, headers, a first line.

    Raises:
        InputError: files that are missing, or no target is named.
    """
    return _two_files(named) if named.target is not None else _one(named)


def pair_files(files: dict[str, Any]) -> PairFiles:
    """An entry of `Inputs`, as a recipe has it. Raises InputError for what cannot be one."""
    try:
        return PairFiles.model_validate(files)
    except ValueError as error:
        reason = str(error).split("Value error, ")[-1].split(" [type")[0]
        raise InputError(f"{', '.join(str(value) for value in files.values())}: {reason}") from error


def _problems(files: dict[str, Any]) -> list[str]:
    try:
        parsed = pair_files(files)
    except InputError as error:
        return error.problems
    problems = list[str]()
    for path in parsed.paths(Path()):
        try:
            if next(iter(read_lines(path)), None) is None:
                problems.append(f"{path}: the file is empty; expected lines of text.")
        except InputError as error:
            problems += error.problems
    if problems:
        return problems
    try:
        for _ in read_pairs(parsed, Path()):
            pass
    except InputError as error:
        return error.problems
    return []


def _two_files(named: Named) -> Inputs:
    source, target = named.source, named.target
    assert target is not None
    problems = list[str]()
    for path in (source, target):
        try:
            lasting_file(path)
        except InputError as error:
            problems += error.problems
    if source == target:
        problems.append(f"{source}: named as source and target; expected two files, or one with columns as --source.")
    if named.columns or any(
        each is not None for each in (named.target_column, named.source_separator, named.separator)
    ):
        problems.append(
            "--source-column, --target-column, --source-separator and --separator are for one file with columns; leave "
            "them out."
        )
    if problems:
        raise InputError(problems)
    languages = named.languages or (language_of(source), language_of(target))
    return Inputs(_name(source, languages), {"source": str(source), "target": str(target)}, languages)


def _one(named: Named) -> Inputs:
    path, kind = named.source, suffix_of(named.source)
    if path.is_dir():
        return _parallel(named, [each for each in sorted(path.iterdir()) if each.is_file()])
    if kind == ".zip" and path.is_file():
        return _parallel(named, [path / name for name in archived_names(path)])
    if not path.exists() and path.parent.is_dir():
        beside = [each for each in sorted(path.parent.iterdir()) if each.name.startswith(f"{path.name}.")]
        if any(language_of(each) for each in beside):
            return _parallel(named, [each for each in beside if each.is_file()])
    lasting_file(path)
    if kind in TABLES:
        return _memory(named) if kind == ".tmx" else _table(named, kind[1:])
    first = next(iter(read_lines(path)), "")
    if named.separator or "\t" in first:
        return _table(named, "tsv")
    if BARS in first:
        return _table(replace(named, separator=BARS), "tsv")
    if kind == ".json":
        raise InputError(f'{path}: expected an object a line ({{"source": .., "target": ..}}) in a .jsonl.')
    raise InputError(
        f"{path}: the target is missing. Name its file with --target; or name one file with both sides: tab-separated "
        "(or with another --separator), .csv, .jsonl, .tmx or a .zip of OPUS."
    )


def _table(named: Named, kind: str) -> Inputs:
    files: dict[str, Any] = {kind: str(named.source)}
    notes = list[str]()
    columns: Sequence[object] = (*named.columns, named.target_column)
    if not named.columns and named.target_column is None:
        if kind == "csv":
            files |= _csv_columns(named.source, notes)
            columns = csv_header(named.source)
        elif kind == "tsv":
            _tell_columns(named.source, named.separator or "\t", notes)
    if named.columns:
        files["source_column"] = named.columns[0] if len(named.columns) == 1 else list(named.columns)
    if named.target_column is not None:
        files["target_column"] = named.target_column
    if named.source_separator is not None:
        files["source_separator"] = named.source_separator
    if named.separator is not None:
        files["separator"] = named.separator
    languages = named.languages or languages_of_columns(columns)
    return Inputs(_name(named.source, ("", "")), files, languages, notes=tuple(notes))


def _memory(named: Named) -> Inputs:
    """A translation memory, whose columns are languages: those that are named, or the only two."""
    path, found = named.source, tmx_languages(named.source)
    wanted = (*named.columns, named.target_column) if named.columns else named.languages or (*found,)
    if len(wanted) != 2 or None in wanted:
        raise InputError(f"{path}: has units in {', '.join(found)}; say which are meant, as --languages en-sw.")
    source, target = (matching(str(each), found) for each in wanted)
    languages = named.languages or (plain_code(source), plain_code(target))
    files = {"tmx": str(path), "source_column": source, "target_column": target}
    return Inputs(_name(path, languages), files, languages)


def _csv_columns(path: Path, notes: list[str]) -> dict[str, Any]:
    """Those called source and target, or the only two. Raises InputError where it cannot be known which are meant."""
    header = csv_header(path)
    if {"source", "target"} <= {*header}:
        return {"source_column": "source", "target_column": "target"}
    if len(header) > 2:
        source, target = (shlex.quote(header[place]) for place in _likely_columns(path, len(header)))
        raise InputError(
            f"{path}: has {len(header)} columns ({', '.join(header)}); say which are meant: --source-column "
            f"{source} --target-column {target}, for example."
        )
    names = " and ".join(f'"{name[:40]}"' for name in header)
    notes.append(
        f"{path}: its columns {names} are the source and the target. The first line is a header and not learnt from."
    )
    return {}


def _likely_columns(path: Path, columns: int) -> list[int]:
    """The two that hold most different texts with letters; of such the longest."""
    rows = [row for _, row in islice(csv_rows(path, range(columns)), LOOKED_AT)]
    found = list[tuple[int, int, int]]()
    for place in range(columns):
        texts = {row[place] for row in rows if any(map(str.isalpha, row[place]))}
        found.append((len(texts), sum(map(len, texts)), place))
    return sorted(place for *_, place in sorted(found)[-2:])


def _tell_columns(path: Path, separator: str, notes: list[str]) -> None:
    """Of a file with columns: those that are not used, and a first line that looks like a header."""
    first = next(text_lines(path), "").split(separator)
    if len(first) > 2:
        notes.append(
            f"{path}: the first of its {len(first)} columns is the source, the second the target; the others are not "
            "used. To choose: --source-column and --target-column, counted from 0."
        )
    if len(first) > 1 and all(cell.strip().lower() in HEADINGS for cell in first[:2]):
        notes.append(f"{path}, line 1: looks like a header, but is learnt as a pair. Delete it if it is one.")


def _parallel(named: Named, paths: Sequence[Path]) -> Inputs:
    """Files whose names differ in the language alone: train.en and train.sw, and so on."""
    stems: dict[str, dict[str, list[Path]]] = {}
    for path in paths:
        if (language := language_of(path)) and not path.name.startswith("."):  # ._train.en is of macOS
            stems.setdefault(_stem(path), {}).setdefault(language, []).append(path)
    both = {stem: found for stem, found in stems.items() if len(found) > 1}
    if not both:
        there = ", ".join(path.name for path in paths[:5]) or "nothing"
        raise InputError(
            f"{named.source}: expected two files whose names end in their languages, such as train.en and train.sw; "
            f"found {there}."
        )
    one, other = named.languages or _languages(named, both)
    chosen = {stem: found for stem, found in both.items() if {one, other} <= found.keys()}
    train = [stem for stem in chosen if _part(stem) in ("train", "")]
    if len(train) != 1:
        names = ", ".join(sorted(train or both))
        raise InputError(f"{named.source}: expected one pair of files in {one} and {other} to train on; found {names}.")
    _check_single(named.source, [each for found in chosen.values() for each in (found[one], found[other])])
    files = {
        stem: {"source": str(found[one][0]), "target": str(found[other][0])} for stem, found in sorted(chosen.items())
    }
    validation = sorted((stem for stem in files if _part(stem) == "validation"), key=_usual_validation)
    tests = [stem for stem in files if _part(stem) == "test"]
    name = _name(Path(named.source.name if train[0] == "train" else train[0]), (one, other))
    return Inputs(
        name,
        files[train[0]],
        (one, other),
        files[validation[0]] if validation else None,
        {name: files[stem] for name, stem in _by_name(tests).items()},
        (_of_several(named.source, *validation),) if len(validation) > 1 else (),
    )


def _check_single(folder: Path, sides: Iterable[list[Path]]) -> None:
    """Raises InputError where a name and a language are those of several files: which belong together is not known."""
    several = [" and ".join(str(path.relative_to(folder.parent)) for path in side) for side in sides if len(side) > 1]
    if several:
        raise InputError(
            f"{folder}: expected one file of each name and language; found {'; '.join(several)}. Keep one of each, or "
            "name two files with --source and --target."
        )


def _usual_validation(stem: str) -> int:
    """The place of its beginning among the names of validations."""
    return next(place for place, name in enumerate(PARTS["validation"]) if stem.lower().startswith(name))


def _of_several(folder: Path, chosen: str, *others: str) -> str:
    return (
        f"{folder}: {chosen} is the validation; {' and '.join(others)} {'is' if len(others) == 1 else 'are'} not used. "
        'To take another: data.validation=\'{ source = "..", target = ".." }\'.'
    )


def _by_name(stems: Iterable[str]) -> dict[str, str]:
    """By names for a recipe. Where test.a is beside test_a, which has its name already, it is test_a_2."""
    named = dict[str, str]()
    for plain, stem in sorted(
        ((re.sub(r"\W+", "_", stem), stem) for stem in stems), key=lambda each: each[0] != each[1]
    ):
        further = (f"{plain}_{number}" for number in count(2))
        named[next(name for name in chain([plain], further) if name not in named)] = stem
    return named


def _languages(named: Named, stems: dict[str, dict[str, list[Path]]]) -> tuple[str, str]:
    """Where there are only two; their order in the name, as in en-sw, or the alphabet's."""
    pairs = {tuple(sorted(each)) for found in stems.values() for each in combinations(found, 2)}
    if len(pairs) > 1:
        known = ", ".join(sorted("-".join(pair) for pair in pairs))
        raise InputError(
            f"{named.source}: there are files in several languages ({known}); say which, as --languages en-sw."
        )
    one, other = next(iter(pairs))
    texts: Iterable[str] = (named.source.name, *stems)
    turned = any(re.search(rf"(?<![a-z]){other}[-_]{one}(?![a-z])", text) for text in texts)
    return (other, one) if turned else (one, other)


def _part(stem: str) -> str:
    """train, validation or test by the beginning of the name; "" = none of them."""
    return next((part for part, names in PARTS.items() if stem.lower().startswith(names)), "")


def _stem(path: Path) -> str:
    """The name without the language, and without what it is packed with."""
    name = path.name
    for packer in PACKERS:
        name = name.removesuffix(packer)
    return name.rpartition(".")[0]


def _name(path: Path, languages: tuple[str, str]) -> str:
    """Of a training: that of its file and its languages."""
    name = path.name
    while (suffix := Path(name).suffix) and (
        suffix.lower() in (*PACKERS, *TABLES, ".zip", ".txt") or language_of(Path(name))
    ):
        name = name.removesuffix(suffix)
    pair = "-".join(language for language in languages if language)
    return name if not pair or pair in name else f"{name}-{pair}"
