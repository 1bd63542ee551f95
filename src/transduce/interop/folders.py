"""Folders that come to be all at once, or not at all."""

import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from transduce.core.errors import InputError


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """An empty folder beside `path`, which gets that name when the block ends. If anything fails, it is removed.

    Raises:
        InputError: there is something at `path` already, or nothing can be written there.
    """
    if path.exists() or path.is_symlink():
        raise InputError(f"{path}: this is there already. Delete it, or choose another folder with --output.")
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
