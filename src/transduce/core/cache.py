"""The folder where what was fetched or computed once is kept, and what is known of files by their state on disk."""

import json
import os
import time
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from transduce.core.atomic import write_json

_read: dict[Path, Any] = {}  # notes that this process has read
SETTLED = 2.0  # seconds since the last change, before which a file may change again within the clock's step


def cache_folder() -> Path:
    """`TRANSDUCE_CACHE`, or a folder of the user's."""
    return Path(os.environ.get("TRANSDUCE_CACHE", Path.home() / ".cache" / "transduce"))


def state_of(path: Path) -> list[int]:
    """What changes whenever a file's content does: size, inode, times of change of content and of entry."""
    found = path.stat()
    return [found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns]


def recall(kind: str, path: Path) -> Any:
    """What `remember` noted of a file, if it has not changed since; else None."""
    note = _note(kind, path)
    try:
        known = _read[note] if note in _read else json.loads(note.read_text(encoding="utf-8"))
        if known["state"] != state_of(path):
            return None
        _read[note] = known
        return known["value"]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remember(kind: str, path: Path, value: Any, state: list[int]) -> None:
    """Note a value (for JSON) that was computed from a file's content.

    Args:
        state: `state_of` the file before it was read. Nothing is noted of a file that has changed since, or that has
            changed so lately that the clock could not tell one more change.
    """
    if state != state_of(path) or time.time() - max(state[2:]) / 1e9 < SETTLED:
        return
    note = _note(kind, path)
    note.parent.mkdir(parents=True, exist_ok=True)
    _read.pop(note, None)
    write_json(note, {"path": str(path), "state": state, "value": value})


def kept(note: Path, is_right: Callable[[Any], bool], make: Callable[[], Any]) -> Any:
    """What a note of the cache says, for JSON; it is made, and noted, where there is none or a damaged one."""
    try:
        found = json.loads(note.read_text(encoding="utf-8"))
        if is_right(found):
            return found
    except (OSError, ValueError, RecursionError):
        pass
    found = make()
    note.parent.mkdir(parents=True, exist_ok=True)
    write_json(note, found)
    return found


def _note(kind: str, path: Path) -> Path:
    return cache_folder() / kind / f"{sha256(str(path.absolute()).encode()).hexdigest()}.json"
