"""Examples in one file, or in a folder with train.conll and its like: which file, and which are held out beside it."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.core.folders import RESOLVED
from transduce.data.files import lasting_file, suffix_of
from transduce.data.pairs.inputs import (
    HELD_OUT,
    Inputs,
    Named,
    by_language,
    by_name,
    of_several,
    part_of,
    stem_of,
    usual_validation,
)

Entry = TypeVar("Entry", bound=Config)


def training_file(source: Path, fits: Callable[[Path], bool]) -> Path | None:
    """The file that is trained on: the one that is named, or train.conll and its like in a folder.

    Args:
        fits: whether a file may hold such examples, by its name.
    """
    if source.is_dir():
        there = [] if (source / RESOLVED).exists() else sorted(source.iterdir())
        files = [each for each in there if each.is_file() and not each.name.startswith(".")]
        found = [] if by_language(files) else [each for each in files if part_of(each.name) == "train" and fits(each)]
        return found[0] if len(found) == 1 else None
    return source if source.is_file() and fits(source) else None


def with_held_out(inputs: Inputs, named: Named, train: Path, key: str = "file") -> Inputs:
    """With the validation and the tests that lie beside the training file in a folder, and with those that were named.

    Args:
        key: under which an entry of [data] names its file.

    Raises:
        InputError: named files are missing, or are of pairs.
    """
    return _with_named(_beside(inputs, named.source, train, key), named, key)


def entry_as(model: type[Entry], entry: dict[str, Any]) -> Entry:
    """An entry of [data] as its task reads it. Raises InputError for what cannot be one."""
    try:
        return model.model_validate(entry)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise InputError(f"{entry.get('file', '')}: {reason}.") from error


def refuse_options(named: Named, task: str, what: str, columns: bool = False) -> None:
    """Raises InputError for options of pairs.

    Args:
        what: there is to say of one file, in words.
        columns: whether its columns may be named.
    """
    given = named.target or named.source_separator or named.separator or named.languages
    if given or (not columns and (named.columns or named.target_column is not None)):
        more = "" if columns else ", --source-column, --target-column"
        raise InputError(
            f"--task {task}: --target, --source-separator, --separator{more} and --languages are for pairs of texts. "
            f"{what}"
        )


def _beside(inputs: Inputs, folder: Path, train: Path, key: str) -> Inputs:
    """With the validation and the tests that lie in a folder beside the training file."""
    if not folder.is_dir():
        return inputs
    alike = [each for each in sorted(folder.iterdir()) if each != train and suffix_of(each) == suffix_of(train)]
    files = {stem_of(each): {**inputs.train, key: str(each)} for each in alike if each.is_file()}
    validation = sorted((stem for stem in files if part_of(stem) == "validation"), key=usual_validation)
    tests = by_name(stem for stem in files if part_of(stem) == "test")
    several = (of_several(folder, *validation),) if len(validation) > 1 else ()
    return replace(
        inputs,
        validation=files[validation[0]] if validation else None,
        tests={name: files[stem] for name, stem in tests.items()},
        notes=(*inputs.notes, *several),
    )


def _with_named(inputs: Inputs, named: Named, key: str) -> Inputs:
    """With the held-out files that were named, which are read as the training file is."""
    for part in HELD_OUT:
        if getattr(named, f"{part}_target") is not None:
            raise InputError(f"--{part}-target: is for pairs of texts; name one file as --{part}.")
        path = getattr(named, part)
        if path is None:
            continue
        lasting_file(path)
        entry = {**inputs.train, key: str(path)}
        held_out: dict[str, Any] = {"validation": entry} if part == "validation" else {"tests": {part: entry}}
        inputs = replace(inputs, named=(*inputs.named, part), **held_out)
    return inputs
