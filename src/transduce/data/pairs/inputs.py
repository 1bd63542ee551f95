"""Which files, and which languages, somebody means who names a source and perhaps a target."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, combinations, count
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.core.folders import RESOLVED
from transduce.core.foreign_files import told_of_foreign
from transduce.core.languages import matching
from transduce.core.model_file import refuse_url
from transduce.data.corpus import read_pairs
from transduce.data.files import (
    PACKERS,
    archived_names,
    lasting_file,
    read_blocks,
    read_lines,
    suffix_of,
)
from transduce.data.formats import format_name, format_of, is_table, suffixes
from transduce.data.pairs.guessed_columns import guessed_columns
from transduce.data.pairs.languages import (
    language_of,
    languages_of_columns,
    plain_code,
)
from transduce.data.pairs.pair_files import FILES, PairFiles
from transduce.data.remote import url_of

PARTS = {"validation": ("validation", "valid", "val", "dev"), "test": ("test",), "train": ("train",)}

BARS = " ||| "  # between source and target, as fast_align has them
HELD_OUT = ("validation", "test")
HELD_OUT_FILES = ("validation", "validation_target", "test", "test_target")  # of `Named`


@dataclass(frozen=True)
class Named:
    """What was named: on the command line, or in a call of `transduce.train`.

    columns: of the source in one file; target_column: of the target. source_separator: between several columns of the
    source. separator: between source and target on a line of one file. validation, test: held-out files of the same
    columns; validation_target, test_target: their other side, where that is a file of its own. root: the folder that
    the recipe names them relative to; None: the working directory. part: of a held-out file, "validation" or "test".
    task: the kind of task that somebody named, "translation" or "classification"; None: what the files look like.
    """

    source: Path
    target: Path | None = None
    columns: tuple[int | str, ...] = ()
    target_column: int | str | None = None
    source_separator: str | None = None
    separator: str | None = None
    languages: tuple[str, str] | None = None
    validation: Path | None = None
    validation_target: Path | None = None
    test: Path | None = None
    test_target: Path | None = None
    root: Path | None = None
    part: str = ""
    task: str | None = None

    @property
    def target_option(self) -> str:
        """The option that names the file of the targets."""
        return f"--{self.part}-target" if self.part else "--target"

    def to_dict(self) -> dict[str, Any]:
        """For JSON, to tell whether a command is the same."""
        given = {key: value for key, value in self.__dict__.items() if key not in ("root", "part")}
        return {key: str(value) if isinstance(value, Path) else value for key, value in given.items()}

    def held_out(self, part: str) -> "Named | None":
        """The files of "validation" or "test" by themselves, with the same columns."""
        source, target = getattr(self, part), getattr(self, f"{part}_target")
        if source is None:
            return None
        if target is not None:
            return Named(source, target, languages=self.languages, part=part)
        columns = self.columns, self.target_column, self.source_separator, self.separator
        return Named(source, None, *columns, self.languages, part=part)


@dataclass(frozen=True)
class Inputs:
    """Files as entries of a recipe's [data].

    name: of the training. notes: what to tell of the files, in sentences. named: which held-out parts were named, and
    not found beside the training files. root: the folder that files are named relative to; None: the working directory.
    """

    name: str
    train: dict[str, Any]
    languages: tuple[str, str] = ("", "")
    validation: dict[str, Any] | None = None
    tests: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    root: Path | None = None

    def below(self, root: Path | None) -> "Inputs":
        """The same, of which the training files are named relative to `root`, in which they lie."""
        if root is None:
            return self
        train = {key: str(Path(each).relative_to(root)) if key in FILES else each for key, each in self.train.items()}
        return replace(self, train=train, root=root)


def is_data(path: Path) -> bool:
    """Whether a file that is named where a recipe may be is data: by its suffix."""
    return is_table(path) or suffix_of(path) == ".zip"


def looks_like_data(path: Path, separator: str | None = None) -> bool:
    """Whether what lies at a path, where a recipe may be named, is pairs: of a known kind, in columns, or a folder.

    separator: what is said to stand between source and target on a line.
    """
    if path.is_dir():
        files = [each for each in path.iterdir() if each.is_file()]
        return not (path / RESOLVED).exists() and (any(map(language_of, files)) or bool(training_tables(files)))
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
    # Raises InputError for the second side of held-out files without the first.
    alone = [part for part in HELD_OUT if getattr(named, f"{part}_target") and not getattr(named, part)]
    if alone:
        raise InputError(f"--{part}-target: expected its source as --{part}." for part in alone)
    inputs = _two_files(named) if named.target is not None else _one(named)
    for part in HELD_OUT:
        if (held_out := named.held_out(part)) is not None:
            inputs = _with_held_out(inputs, part, held_out)
    return inputs


def _with_held_out(inputs: Inputs, part: str, named: Named) -> Inputs:
    """With files for validation or test; what was guessed of the training file's columns holds for them, too."""
    found = _like_training(inputs, named) or (_two_files(named) if named.target is not None else _one(named))
    inputs = replace(inputs, named=(*inputs.named, part), notes=(*inputs.notes, *found.notes))
    if part == "validation":
        return replace(inputs, validation=found.train)
    return replace(inputs, tests={"test": found.train})


def _like_training(inputs: Inputs, named: Named) -> Inputs | None:
    """One file of the training file's kind, whose columns it has; None: it is of another kind."""
    there = named.source.is_file() or url_of(named.source)
    if named.target is not None or "file" not in inputs.train or not there:
        return None
    if format_name(named.source) != pair_files(inputs.train).format_name:
        return None
    lasting_file(named.source)
    columns = {key: value for key, value in inputs.train.items() if key not in FILES}
    return Inputs(inputs.name, {"file": str(named.source), **columns}, inputs.languages)


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
    paths = parsed.paths(Path())
    try:
        empty = [path for path in paths if next(read_blocks(path), None) is None]
        empty = empty or ([] if sum(1 for _ in read_pairs(parsed, Path())) else paths)
    except InputError as error:
        return error.problems
    return [f"{path}: the file is empty; expected lines of text." for path in empty]


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
        option = f"--{named.part or 'source'}"
        problems.append(f"{source}: named as source and target; expected two files, or one with columns as {option}.")
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
    return Inputs(training_name(source, languages), {"source": str(source), "target": str(target)}, languages)


def _one(named: Named) -> Inputs:
    path, kind = named.source, suffix_of(named.source)
    if path.is_dir():
        files = [each for each in sorted(path.iterdir()) if each.is_file()]
        tables = training_tables(files) and not by_language(files)
        return _tables(named, files) if tables else _parallel(named, files)
    if kind == ".zip":
        refuse_url(path, "archives")
    if kind == ".zip" and path.is_file():
        return _parallel(named, [path / name for name in archived_names(path)])
    if not path.exists() and path.parent.is_dir():
        beside = [each for each in sorted(path.parent.iterdir()) if each.name.startswith(f"{path.name}.")]
        if any(language_of(each) for each in beside):
            return _parallel(named, [each for each in beside if each.is_file()])
    lasting_file(path)
    if is_table(path):
        return _of_languages(named) if format_of(path).languages else _table(named)
    first = next(iter(read_lines(path)), "")
    if named.separator or "\t" in first:
        return _table(named)
    if BARS in first:
        return _table(replace(named, separator=BARS))
    raise InputError(
        f"{path}: the target is missing. Name its file with {named.target_option}; or name one file with both sides: "
        "tab-separated (or with another --separator), .csv, .jsonl, .json, .parquet, .xlsx, .tmx, .xlf, .po or a .zip "
        f"of OPUS.{told_of_foreign(path.name)}"
    )


def _table(named: Named) -> Inputs:
    files: dict[str, Any] = {"file": str(named.source)}
    notes: tuple[str, ...] = ()
    columns: Sequence[object] = (*named.columns, named.target_column)
    if not named.columns and named.target_column is None:
        guessed = guessed_columns(named.source, format_of(named.source, separator=named.separator))
        files, columns, notes = {**files, **guessed.keys}, guessed.names, guessed.notes
    if named.columns:
        files["source_column"] = named.columns[0] if len(named.columns) == 1 else list(named.columns)
    if named.target_column is not None:
        files["target_column"] = named.target_column
    if named.source_separator is not None:
        files["source_separator"] = named.source_separator
    if named.separator is not None:
        files["separator"] = named.separator
    notes = (*notes, *format_of(named.source, separator=named.separator).notes(named.source))
    languages = named.languages or languages_of_columns(columns)
    return Inputs(training_name(named.source, ("", "")), files, languages, notes=notes)


def _of_languages(named: Named) -> Inputs:
    """A translation memory, whose columns are languages: those that are named, or the only two."""
    path = named.source
    found = [*map(str, format_of(path).columns(path))]
    wanted = (*named.columns, named.target_column) if named.columns else named.languages or found
    if len(wanted) != 2 or None in wanted:
        raise InputError(f"{path}: has units in {', '.join(found)}; say which are meant, as --languages en-sw.")
    source, target = (matching(str(each), found) for each in wanted)  # en, where there is en-US and en-GB
    languages = named.languages or (plain_code(source), plain_code(target))
    files = {"file": str(path), "source_column": source, "target_column": target}
    return Inputs(training_name(path, languages), files, languages, notes=tuple(format_of(path).notes(path)))


def _parallel(named: Named, paths: Sequence[Path]) -> Inputs:
    """Files whose names differ in the language alone: train.en and train.sw, and so on."""
    both = by_language(paths)
    if not both:
        there = ", ".join(path.name for path in paths[:5]) or "nothing"
        raise InputError(
            f"{named.source}: expected two files whose names end in their languages, such as train.en and train.sw; "
            f"found {there}."
        )
    one, other = named.languages or _languages(named, both)
    direction = () if named.languages else (_of_direction(named.source, one, other),)
    chosen = {stem: found for stem, found in both.items() if {one, other} <= found.keys()}
    train = [stem for stem in chosen if part_of(stem) in ("train", "")]
    if len(train) != 1:
        names = ", ".join(sorted(train or both))
        raise InputError(f"{named.source}: expected one pair of files in {one} and {other} to train on; found {names}.")
    _check_single(named.source, [each for found in chosen.values() for each in (found[one], found[other])])
    files = {
        stem: {"source": str(found[one][0]), "target": str(found[other][0])} for stem, found in sorted(chosen.items())
    }
    validation = sorted((stem for stem in files if part_of(stem) == "validation"), key=usual_validation)
    tests = [stem for stem in files if part_of(stem) == "test"]
    name = training_name(Path(named.source.name if train[0] == "train" else train[0]), (one, other))
    return Inputs(
        name,
        files[train[0]],
        (one, other),
        files[validation[0]] if validation else None,
        {name: files[stem] for name, stem in by_name(tests).items()},
        (*direction, *((of_several(named.source, *validation),) if len(validation) > 1 else ())),
    )


def _tables(named: Named, paths: Sequence[Path]) -> Inputs:
    """Tables of one kind, named by their parts: train.tsv, dev.tsv, test.tsv."""
    train = training_tables(paths)
    if len(train) > 1:
        names = ", ".join(path.name for path in train)
        raise InputError(f"{named.source}: expected one file to train on; found {names}. Name one with --source.")
    inputs = _one(replace(named, source=train[0]))
    alike = {stem_of(path): path for path in paths if suffix_of(path) == suffix_of(train[0])}
    files = {stem: _held_out_table(inputs, named, path) for stem, path in alike.items() if path != train[0]}
    validation = sorted((stem for stem in files if part_of(stem) == "validation"), key=usual_validation)
    tests = [stem for stem in files if part_of(stem) == "test"]
    several = (of_several(named.source, *validation),) if len(validation) > 1 else ()
    return replace(
        inputs,
        name=training_name(named.source, inputs.languages),
        validation=files[validation[0]] if validation else None,
        tests={name: files[stem] for name, stem in by_name(tests).items()},
        notes=(*inputs.notes, *several),
    )


def _held_out_table(inputs: Inputs, named: Named, path: Path) -> dict[str, Any]:
    held_out = _like_training(inputs, replace(named, source=path))
    assert held_out is not None
    return held_out.train


def _of_direction(folder: Path, one: str, other: str) -> str:
    return f"{folder}: learnt from {one} to {other}. The other direction: --languages {other}-{one}."


def _check_single(folder: Path, sides: Iterable[list[Path]]) -> None:
    """Raises InputError where a name and a language are those of several files: which belong together is not known."""
    several = [" and ".join(str(path.relative_to(folder.parent)) for path in side) for side in sides if len(side) > 1]
    if several:
        raise InputError(
            f"{folder}: expected one file of each name and language; found {'; '.join(several)}. Keep one of each, or "
            "name two files with --source and --target."
        )


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


def training_name(path: Path, languages: tuple[str, str]) -> str:
    """Of a training: that of its file and its languages."""
    name = path.name
    while (suffix := Path(name).suffix) and (
        suffix.lower() in (*PACKERS, *suffixes(), ".zip", ".txt") or language_of(Path(name))
    ):
        name = name.removesuffix(suffix)
    pair = "-".join(language for language in languages if language)
    return name if not pair or pair in name else f"{name}-{pair}"


def part_of(stem: str) -> str:
    """train, validation or test by the beginning of the name; "" = none of them."""
    return next((part for part, names in PARTS.items() if stem.lower().startswith(names)), "")


def stem_of(path: Path) -> str:
    """The name without the language, and without what it is packed with."""
    name = path.name
    for packer in PACKERS:
        name = name.removesuffix(packer)
    return name.rpartition(".")[0]


def usual_validation(stem: str) -> int:
    """The place of its beginning among the names of validations."""
    return next(place for place, name in enumerate(PARTS["validation"]) if stem.lower().startswith(name))


def of_several(folder: Path, chosen: str, *others: str) -> str:
    return (
        f"{folder}: {chosen} is the validation; {' and '.join(others)} {'is' if len(others) == 1 else 'are'} not used. "
        "To take another: --validation FILE."
    )


def by_name(stems: Iterable[str]) -> dict[str, str]:
    """By names for a recipe. Where test.a is beside test_a, which has its name already, it is test_a_2."""
    named = dict[str, str]()
    for plain, stem in sorted(
        ((re.sub(r"\W+", "_", stem), stem) for stem in stems), key=lambda each: each[0] != each[1]
    ):
        further = (f"{plain}_{number}" for number in count(2))
        named[next(name for name in chain([plain], further) if name not in named)] = stem
    return named


def by_language(paths: Sequence[Path]) -> dict[str, dict[str, list[Path]]]:
    """The files whose names, but for their languages, are those of others: by this name, and by language."""
    stems: dict[str, dict[str, list[Path]]] = {}
    for path in paths:
        if (language := language_of(path)) and not path.name.startswith("."):  # ._train.en is of macOS
            stems.setdefault(stem_of(path), {}).setdefault(language, []).append(path)
    return {stem: found for stem, found in stems.items() if len(found) > 1}


def training_tables(paths: Sequence[Path]) -> list[Path]:
    """train.tsv and its like."""
    tables = (path for path in paths if is_table(path) and not path.name.startswith("."))
    return [path for path in tables if part_of(path.name) == "train"]
