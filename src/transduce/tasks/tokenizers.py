"""Tokenizers learnt once for the same text and settings, then found in the cache."""

import hashlib
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from transduce.core.atomic import write_text
from transduce.data.files import fingerprint
from transduce.data.store import cache_key
from transduce.data.tokenizer import Tokenizer, TokenizerConfig
from transduce.tasks.protocols import Task, Tokenizers

NOT_LEARNT_FROM = {"root", "validation", "test", "filters"}  # the rest says which columns of which files


def cached_tokenizers(cache: Path, task: type[Task], config: TokenizerConfig, data: Any) -> Tokenizers:
    """What `task.learn_tokenizers` gives, kept under a key of the files' content, their columns and the settings."""
    files = [fingerprint(path) for path in task.training_files(data)]
    if config.file is not None:
        return task.learn_tokenizers(config, data)
    parts = {"task": task.__name__, "config": config.model_dump(), "data": data.model_dump(exclude=NOT_LEARNT_FROM)}
    path = cache / f"tokenizers-{cache_key({**parts, 'files': files})}.json"
    if texts := _read(path):
        return {side: Tokenizer.from_json(text, str(path)) for side, text in texts.items()}
    tokenizers = task.learn_tokenizers(config, data)
    cache.mkdir(parents=True, exist_ok=True)
    texts = {side: tokenizer.to_json() for side, tokenizer in tokenizers.items()}
    write_text(path, json.dumps({"checksum": _checksum(texts), "tokenizers": texts}))
    return tokenizers


def _read(path: Path) -> dict[str, str] | None:
    """The texts as they were written; None where there is no such file, or a damaged one, which is learnt again."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        noted = json.loads(path.read_text(encoding="utf-8"))
        texts: dict[str, str] = noted["tokenizers"]
        return texts if noted["checksum"] == _checksum(texts) else None
    return None


def _checksum(texts: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()
