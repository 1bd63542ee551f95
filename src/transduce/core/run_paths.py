"""Paths inside a run directory, as its own files name them: `{run}/data` stays right when the directory is moved."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

RUN = "{run}"  # at the beginning of a path, in a file of the run: the directory


def from_run(path: str, run: Path) -> str:
    """A path as a file of the run names it; one that lies elsewhere as it is."""
    base, place = (os.path.normpath(Path(each).absolute()) for each in (run, path))
    if place != base and not place.startswith(base + os.sep):
        return path
    return Path(RUN, os.path.relpath(place, base)).as_posix()


def in_run(value: Any, run: str | os.PathLike[str]) -> Any:
    """What a file of the run holds, in which all paths are those of the directory `run`."""

    def located(text: str) -> str:
        first, _, rest = text.partition("/")
        return Path(run, rest).as_posix() if first == RUN else text

    return _with_texts(value, located)


def _with_texts(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, dict):
        return {key: _with_texts(each, change) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_texts(each, change) for each in value]
    return change(value) if isinstance(value, str) else value
