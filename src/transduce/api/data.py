"""Data that a program holds becomes files of a run, which its training reads as any others.

So a run goes on after it was stopped only with the same data, and its model file names the data's fingerprints.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

from transduce.api.examples import (
    EXPECTED,
    KEYS,
    Columns,
    chosen_columns,
    write_examples,
    written_keys,
)
from transduce.core.atomic import write_json
from transduce.core.errors import InputError
from transduce.core.registry import resolve
from transduce.core.tables import columns_of
from transduce.data.files import fingerprint
from transduce.data.labelled import LabelledFile
from transduce.data.pairs.pair_files import PairFiles
from transduce.data.tagged import TaggedFile
from transduce.training.run_directory import NOTED, make_folder

FOLDER = "data"  # of a run, for the data that it was given
WRITTEN = ".written.json"  # what this wrote, by name, with its fingerprint
PARTS = ("train", "validation", "test")
Table = dict[str, Any]


def parts_of(data: Any) -> dict[str, Any]:
    """The data by part: train, and perhaps validation and test. What is no mapping is train.

    Raises:
        InputError: parts of other names, or none to train on.
    """
    if not isinstance(data, Mapping):
        return {"train": data}
    if unknown := [str(name) for name in data if name not in PARTS]:
        raise InputError(
            f"data: {EXPECTED}, or a mapping with train, and perhaps validation and test, of such; got a mapping with "
            f"{', '.join(unknown)}."
        )
    if "train" not in data:
        raise InputError(f"data: expected examples to train on, under train; got {', '.join(data) or 'none'}.")
    return {name: data[name] for name in PARTS if data.get(name) is not None}


def named_columns(parts: Mapping[str, Any], columns: Columns, tell: Callable[[str], None]) -> Columns:
    """The columns that were asked for; of a table to train on that has two with other names, these, which is told.

    Raises:
        InputError: it is a table, and nothing says which are meant.
    """
    names = columns_of(parts["train"])
    if names is not None and len(names) == 2 and columns is None and not any({*pair} == {*names} for pair in KEYS):
        tell(f'data.train: column "{names[0]}" is the input, "{names[1]}" the answer; columns=(..) says otherwise.')
        return names[0], names[1]
    chosen_columns(parts["train"], "data.train", columns)
    return columns


def with_data(table: Table, run: Path, parts: Mapping[str, Any], columns: Columns = None) -> Table:
    """A recipe's table that reads the files of these parts in `run`, and no others.

    Raises:
        InputError: its task does not read examples that a program could give.
    """
    entries = {name: entry_of(table, f"{name}.jsonl", columns) for name in parts}
    section = table.get("data", {})
    kept = {key: value for key, value in section.items() if key not in (*PARTS, "root")}
    files = {name: [entry] if name == "train" else entry for name, entry in entries.items()}
    return {**table, "data": {**kept, "root": (run / FOLDER).as_posix(), **files}}


def entry_of(table: Table, file: str, columns: Columns = None) -> Table:
    """A file of examples as an entry of [data]. Raises InputError as `with_data`."""
    task = table.get("task", {})
    kind = str(task.get("kind", "translation")) if isinstance(task, dict) else "translation"
    train = resolve("tasks", kind).Data.model_fields.get("train")
    reads = get_args(train.annotation)[:1] if train else ()
    if reads == (PairFiles,):
        return {"file": file, **pair_columns(columns)}
    if reads == (LabelledFile,):
        text, label = written_keys(columns)
        return {"file": file, "text": text, "label": label}
    if reads == (TaggedFile,):  # words, and labels, with spaces between
        word, label = written_keys(columns)
        return {"file": file, "word": word, "label": label}
    raise InputError(f'data: the task "{kind}" reads its examples from files: name them in the recipe\'s [data].')


def pair_columns(columns: Columns) -> Table:
    """The keys of a file of pairs that say which columns it has; none where they are called as usual."""
    source, target = written_keys(columns)
    return {} if (source, target) == KEYS[0] else {"source_column": source, "target_column": target}


@contextmanager
def staged(run: Path, parts: Mapping[str, Any], columns: Columns, problems: list[str]) -> Iterator[Path]:
    """Inside, all parts are files of a folder that vanishes; a run that was made for it alone vanishes with it."""
    new = [each for each in (run, run / FOLDER) if not each.exists()]
    make_folder(run / FOLDER)
    try:
        with TemporaryDirectory(prefix=".new-", dir=run / FOLDER) as folder:
            for name, given in parts.items():
                write_examples(Path(folder) / f"{name}.jsonl", given, f"data.{name}", columns, problems)
            yield Path(folder)
    finally:
        with suppress(OSError):  # not empty: it is needed
            for each in reversed(new):
                each.rmdir()


def adopt(run: Path, folder: Path) -> None:
    """Move staged files to their places in the run.

    Raises:
        InputError: the run began with other data, which stays; or files of others have these names.
    """
    files = sorted(folder.iterdir())
    changed = [each.name for each in files if not _is_there(run, each)]
    if changed and (run / NOTED).exists():
        raise InputError(
            f"{run}: its training began with other data; these differ: {', '.join(changed)}. Give the same data, name "
            "another run, or delete this one."
        )
    if foreign := [name for name in changed if not _is_ours(run / FOLDER / name)]:
        raise InputError(
            f"{run / FOLDER / foreign[0]}: this file is not of a run, and is not overwritten. Name another run."
        )
    for each in files:
        if each.name in changed:
            each.replace(run / FOLDER / each.name)
    places = [run / FOLDER / each.name for each in files]
    write_json(run / FOLDER / WRITTEN, {each.name: fingerprint(each) for each in places})


def _is_ours(path: Path) -> bool:
    """Whether nobody has a file there, or it is as an earlier call left it, whose training did not begin."""
    noted = path.with_name(WRITTEN)
    try:
        return not path.exists() or json.loads(noted.read_text(encoding="utf-8"))[path.name] == fingerprint(path)
    except (OSError, ValueError, LookupError, TypeError):
        return False


def _is_there(run: Path, file: Path) -> bool:
    there = run / FOLDER / file.name
    return there.is_file() and fingerprint(there) == fingerprint(file)
