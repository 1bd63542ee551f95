"""Tokenizers learnt once for the same text and settings, then found in the cache."""

import json
from pathlib import Path
from typing import Any

from transduce.atomic import write_text
from transduce.data.files import fingerprint
from transduce.data.store import cache_key
from transduce.data.tokenizer import Tokenizer, TokenizerConfig
from transduce.tasks.protocols import Task, Tokenizers


def cached_tokenizers(cache: Path, task: type[Task], config: TokenizerConfig, data: Any) -> Tokenizers:
    """What `task.learn_tokenizers` gives, kept under a key of the files' content and the settings."""
    files = [fingerprint(path) for path in task.training_files(data)]
    if config.file is not None:
        return task.learn_tokenizers(config, data)
    key = cache_key({"task": task.__name__, "config": config.model_dump(), "files": files})
    path = cache / f"tokenizers-{key}.json"
    if path.exists():
        texts = json.loads(path.read_text(encoding="utf-8"))
        return {side: Tokenizer.from_json(text, str(path)) for side, text in texts.items()}
    tokenizers = task.learn_tokenizers(config, data)
    cache.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps({side: tokenizer.to_json() for side, tokenizer in tokenizers.items()}))
    return tokenizers
