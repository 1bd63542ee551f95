"""Columns learnt once from the same data with the same settings, then found in the cache."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from transduce.core.atomic import write_text
from transduce.core.errors import InputError
from transduce.data.columns import Columns
from transduce.data.columns.packed import Packed, pack, unpack
from transduce.data.files import fingerprint
from transduce.data.store import cache_key
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.tasks.base import Task

NOT_LEARNT_FROM = {"root", "validation", "test", "filters", "workers"}  # the rest says which columns of which files


def cached_columns(cache: Path, task: type[Task], config: TokenizerConfig, data: Any) -> Columns:
    """What `task.learn_columns` gives, kept under a key of the files' content, their columns and the settings."""
    files = [fingerprint(path) for path in task.training_files(data)]
    if config.files:
        return task.learn_columns(config, data)
    kind = {"task": task.__name__, "version": task.columns_version}
    parts = {**kind, "config": config.model_dump(), "data": data.model_dump(exclude=NOT_LEARNT_FROM)}
    path = cache / f"columns-{cache_key({**parts, 'files': files})}.json"
    if found := _read(path):
        with suppress(InputError):  # a column of one's own, whose code nobody has allowed: it is learnt again
            return unpack(*found)
    columns = task.learn_columns(config, data)
    cache.mkdir(parents=True, exist_ok=True)
    packed = pack(columns)
    write_text(path, json.dumps({"checksum": _checksum(packed), "columns": packed}))
    return columns


def _read(path: Path) -> Packed | None:
    """What was written; None where there is no such file, or a damaged one, which is learnt again."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        noted = json.loads(path.read_text(encoding="utf-8"))
        texts, tables = noted["columns"]
        return (texts, tables) if noted["checksum"] == _checksum((texts, tables)) else None
    return None


def _checksum(packed: Packed) -> str:
    return hashlib.sha256(json.dumps(packed, sort_keys=True).encode()).hexdigest()
