"""Files of others, whose size is looked at before they are read."""

from pathlib import Path

from transduce.core.errors import InputError


def bounded_bytes(path: Path, most: int) -> bytes:
    """The content of a file.

    Raises:
        InputError: it cannot be read, or has more than `most` bytes.
    """
    try:
        size = path.stat().st_size
        if size > most:
            raise InputError(f"{path}: {size:,} bytes; expected at most {most:,}.")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from error


def bounded_text(path: Path, most: int) -> str:
    """The same of a text in UTF-8, with lines that end as they do anywhere."""
    try:
        return bounded_bytes(path, most).decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8: {error}.") from error
