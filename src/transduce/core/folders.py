"""Folders that a command makes: all at once, or to go on with. What others put into one is never overwritten."""

import os
import secrets
import shutil
import stat
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path

from transduce.core.destination import NO_FILES
from transduce.core.errors import InputError
from transduce.core.printable import NAMED

RESOLVED = "recipe.toml"  # in a run directory


def check_folder(folder: Path, own: Container[str] = (), why: str = "", option: str = "--run") -> None:
    """Refuses a folder with files that are not ours; one that is missing or empty is nobody's.

    Args:
        folder: where a command is about to write.
        own: names in it that belong to the command. Hidden files, such as a lock, are no reason either.
        why: what is missing that would make the folder ours, for the message.
        option: which option names another folder.

    Raises:
        InputError: which files are there.
    """
    try:
        others = sorted(each.name for each in folder.iterdir() if each.name[0] != "." and each.name not in own)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise InputError(f"{folder}: cannot be read: {error.strerror}. Choose another folder with {option}.") from error
    if others:
        more = ", .." if len(others) > NAMED else ""
        raise InputError(
            f"{folder}: this folder holds other files ({', '.join(others[:NAMED])}{more}){why}, and nothing in it is "
            f"overwritten. Choose another folder with {option}."
        )


def check_inside(folder: Path, data: Container[str] = (), option: str = "--run") -> None:
    """Refuses a folder where a write may reach what lies elsewhere, or wait for somebody who reads it.

    Args:
        folder: where a command is about to write; it may itself be reached through a link.
        data: names in it of what is only read, and may hold links.
        option: which option names another folder.

    Raises:
        InputError: a link, at any depth, leads out of the folder, whether anything is there or not; or something is
            neither a file nor a folder.
    """
    around = os.path.realpath(folder)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            if problem := _problem(Path(parent, name), around):
                raise InputError(f"{Path(parent, name)}: {problem} Delete it, or choose another folder with {option}.")
        if Path(parent) == folder:
            folders[:] = [name for name in folders if name not in data]


def _problem(path: Path, around: str) -> str:
    """Why nothing may be written at `path`, in the folder `around`; empty where it may."""
    if not path.is_symlink():
        kind = NO_FILES.get(stat.S_IFMT(path.lstat().st_mode))
        return f"this is {kind}; expected a file." if kind else ""
    end = os.path.realpath(path)
    if Path(end).is_relative_to(around):
        return ""
    return f"this is a link to {end}, which would be overwritten."


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """An empty folder beside `path`, which gets that name when the block ends. If anything fails, it is removed.

    Raises:
        InputError: there is something at `path` already, or nothing can be written there.
    """
    if path.exists() or path.is_symlink():
        raise InputError(f"{path}: this is there already. Delete it, or choose another name.")
    staged = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        staged.mkdir()
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}: {path.parent}.") from error
    try:
        yield staged
        staged.rename(path)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
