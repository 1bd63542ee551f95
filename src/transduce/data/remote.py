"""Files by URL (s3://, gs://, hf://, https:// ..): read through a copy in the cache, and written in one go.

`fsspec` reaches them, with the library that each protocol needs. A copy is fetched again when the size, tag or date
that the server tells has changed, so that a file's fingerprint is that of what is there. A server is asked once in the
life of a process.

A URL may come as a path, which has made `//` into `/`.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO

from transduce.core.atomic import human_size, write_json, writing
from transduce.core.cache import cache_folder
from transduce.core.errors import InputError, TransduceError
from transduce.core.extras import installing, library
from transduce.data.limits import BoundedStream

URL = re.compile(r"([a-z][a-z0-9+.-]+):/+(.*)", re.DOTALL)  # not C:/, a drive
HERE = ("file", "local")  # protocols of this machine, whose URLs have paths from its root alone
LIBRARIES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "hf": "huggingface_hub", "http": "aiohttp"}
LIBRARIES |= {"https": "aiohttp", "abfs": "adlfs", "az": "adlfs"}
CHUNK = 1 << 20
LONGEST_NAME = 100  # characters


def url_of(path: str | Path) -> str | None:
    """The URL that a path stands for; None: it is a file of this machine."""
    found = URL.fullmatch(path.as_posix() if isinstance(path, Path) else path)
    if found is None:
        return None
    return f"{found[1]}:{'///' if found[1] in HERE else '//'}{found[2]}"


def located(root: Path, name: str) -> Path:
    """A file that a recipe names: below `root`, or a URL's copy.

    Raises:
        InputError: see `local_copy`.
    """
    url = url_of(name)
    return local_copy(url) if url else root / name


@lru_cache(maxsize=100_000)
def local_copy(url: str) -> Path:
    """The file of this machine that holds what is at the URL now.

    Raises:
        InputError: there is nothing; its library is not installed; it needs rights or a server that are not there.
        TransduceError: the disk is too small.
    """
    system, name = _system(url)
    if _protocol(url) in HERE:
        return Path(name)
    with _as_our_errors(url):
        info = system.info(name)
    if info.get("type") == "directory":
        raise InputError(f"{url}: expected a file, but this is a folder.")
    state = json.loads(json.dumps(info, default=str, sort_keys=True))
    path = _place(url)
    note = path.parent.with_suffix(".json")  # beside the folder, where no file's name can be its own
    if path.exists() and _read(note) == state:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    _check_room(url, info.get("size"), path.parent)
    with _as_our_errors(url), system.open(name, "rb") as remote, writing(path) as file:
        stream = BoundedStream(url, remote, sized=isinstance(info.get("size"), int))
        while block := stream.read(CHUNK):
            file.write(block)
    write_json(note, state)
    return path


def matching_urls(pattern: str) -> list[str]:
    """The URLs of the files that a pattern with * or ? matches, in order. Raises InputError as `local_copy`."""
    system, name = _system(pattern)
    with _as_our_errors(pattern):
        return sorted(f"{_protocol(pattern)}://{str(each).lstrip('/')}" for each in map(_bare, system.glob(name)))


@contextmanager
def writing_url(url: str) -> Iterator[BinaryIO]:
    """A file whose content is sent to the URL when the block ends; if anything fails, nothing is.

    Raises:
        InputError: see `local_copy`.
    """
    system, name = _system(url)
    with TemporaryDirectory(prefix="transduce-") as folder:
        path = Path(folder) / "content"
        with path.open("wb") as file:
            yield file
        with _as_our_errors(url):
            parent = name.rpartition("/")[0]
            if parent:
                system.makedirs(parent, exist_ok=True)
            system.put_file(str(path), name)


def _system(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the name there. Raises InputError."""
    fsspec = library("fsspec", url, "remote")
    try:
        system, name = fsspec.core.url_to_fs(url)
    except ImportError as error:
        needed = LIBRARIES.get(_protocol(url))
        advice = f"{installing('remote')} {needed or ''}".strip()
        raise InputError(f"{url}: {needed or 'another library'} is not installed ({error}): {advice}") from None
    except Exception as error:  # each protocol has its own: github:// without an owner, for one, is a TypeError
        raise InputError(f"{url}: {error}. Expected a file, or a URL such as s3://bucket/file.") from None
    return system, str(name)


def _protocol(url: str) -> str:
    return url.partition("://")[0]


def _bare(name: Any) -> str:
    """A name as `glob` gives it, without a protocol."""
    return str(name).partition("://")[2] if "://" in str(name) else str(name)


def _place(url: str) -> Path:
    """Where its copy lies: the name is kept, as suffixes say how a file is compressed."""
    name = PurePosixPath(url.partition("?")[0]).name[-LONGEST_NAME:]
    name = "file" if name in ("", ".", "..") else name
    return cache_folder() / "remote" / hashlib.sha256(url.encode()).hexdigest()[:32] / name


def _read(note: Path) -> Any:
    try:
        return json.loads(note.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _check_room(url: str, size: Any, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if isinstance(size, int) and size > free:
        raise TransduceError(
            f"{url}: needs {human_size(size)}, and {human_size(free)} is free in {folder}. Set TRANSDUCE_CACHE to a "
            "folder with more room."
        )


@contextmanager
def _as_our_errors(url: str) -> Iterator[None]:
    """What file systems raise, as errors of ours: each has classes of its own."""
    try:
        yield
    except (InputError, TransduceError):
        raise
    except FileNotFoundError:
        raise InputError(f"{url}: no such file, or the server cannot be reached.") from None
    except PermissionError as error:
        raise InputError(f"{url}: may not be read or written ({error}). Check your credentials for it.") from None
    except Exception as error:
        raise InputError(f"{url}: {type(error).__name__}: {error}.") from error
