"""Data that a program holds becomes files of a run, which its training reads as any others.

So a run goes on after it was stopped only with the same data, and its model file names the data's fingerprints.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

from transduce.api.examples import EXPECTED, Columns, write_examples
from transduce.core.errors import InputError
from transduce.core.registry import resolve
from transduce.data.files import fingerprint
from transduce.data.labelled import LabelledFile
from transduce.data.pair_files import PairFiles
from transduce.training.run_directory import NOTED, make_directory

FOLDER = "data"  # of a run, for the data that it was given
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


def with_data(table: Table, run: Path, parts: Mapping[str, Any]) -> Table:
    """A recipe's table that reads the files of these parts in `run`, and no others.

    Raises:
        InputError: its task does not read examples that a program could give.
    """
    entries = {name: entry_of(table, f"{name}.jsonl") for name in parts}
    section = table.get("data", {})
    kept = {key: value for key, value in section.items() if key not in (*PARTS, "root")}
    files = {name: [entry] if name == "train" else entry for name, entry in entries.items()}
    return {**table, "data": {**kept, "root": (run / FOLDER).as_posix(), **files}}


def entry_of(table: Table, file: str) -> Table:
    """A file of examples as an entry of [data]. Raises InputError as `with_data`."""
    task = table.get("task", {})
    kind = str(task.get("kind", "translation")) if isinstance(task, dict) else "translation"
    train = resolve("tasks", kind).Data.model_fields.get("train")
    reads = get_args(train.annotation)[:1] if train else ()
    if reads == (PairFiles,):
        return {"jsonl": file}
    if reads == (LabelledFile,):
        return {"file": file, "text": "source", "label": "target"}
    raise InputError(f'data: the task "{kind}" reads its examples from files: name them in the recipe\'s [data].')


@contextmanager
def staged(run: Path, parts: Mapping[str, Any], columns: Columns, problems: list[str]) -> Iterator[Path]:
    """Inside, all parts are files of a folder that vanishes; a run that was made for it alone vanishes with it."""
    new = [each for each in (run, run / FOLDER) if not each.exists()]
    make_directory(run / FOLDER)
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
        InputError: the run began with other data, which stays.
    """
    files = sorted(folder.iterdir())
    changed = [each.name for each in files if not _is_there(run, each)]
    if changed and (run / NOTED).exists():
        raise InputError(
            f"{run}: its training began with other data; these differ: {', '.join(changed)}. Give the same data, name "
            "another run, or delete this one."
        )
    for each in files:
        if each.name in changed:
            each.replace(run / FOLDER / each.name)


def _is_there(run: Path, file: Path) -> bool:
    there = run / FOLDER / file.name
    return there.is_file() and fingerprint(there) == fingerprint(file)
