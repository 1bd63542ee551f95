"""What `transduce info` shows of a model file, read without torch."""

import json
import math
import os
from collections import Counter
from typing import Any

from transduce.core.model_file import FORMAT, LEXICON, NGRAMS, find_model_file, is_weight, naming, parsed_tables
from transduce.core.tensor_file import Header, read_header
from transduce.core.trust import foreign_code

MANY = 1_000_000  # lists in a tokenizer that is looked at


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What `transduce info` shows. Reads the header alone: no torch, no weights, no checksum.

    Raises:
        InputError: not a model file, newer than this Transduce, incomplete or truncated.
    """
    path = find_model_file(path)
    header = read_header(path)
    tables = parsed_tables(path, header.metadata)
    weights = {name: info for name, info in sorted(header.tensors.items()) if is_weight(name)}
    return {
        "file": str(path),
        "bytes": path.stat().st_size,
        "format": FORMAT,
        "format_version": int(header.metadata["format_version"]),
        "checksum": header.checksum,
        "config": tables["config"],
        "foreign_code": foreign_code(naming(tables)),
        "tokenizers": {side: _tokenizer(text) for side, text in sorted(tables["tokenizer"].items())},
        "columns": tables["columns"],
        "provenance": tables["provenance"],
        "metrics": tables["metrics"],
        "parameters": sum(math.prod(info.shape) for info in weights.values()),
        "dtypes": dict(sorted(Counter(info.dtype for info in weights.values()).items())),
        "tied": tables["tied"],
        "lexicon": _described_lexicon(header),
        "ngrams": _described_ngrams(header),
        "tensors": [{"name": name, "dtype": info.dtype, "shape": list(info.shape)} for name, info in weights.items()],
    }


def _described_lexicon(header: Header) -> dict[str, int] | None:
    """How many candidates it has for each of how many source tokens, and frequent tokens; None where there is none."""
    infos = [header.tensors.get(name) for name in LEXICON]
    shape = [size for info in infos if info for size in info.shape]
    if len(shape) != 3:
        return None
    size = sum(info.end - info.start for info in infos if info)
    return {"source_tokens": shape[0], "candidates": shape[1], "frequent": shape[2], "bytes": size}


def _described_ngrams(header: Header) -> dict[str, int] | None:
    """The most tokens of an n-gram of its language model, how many there are, and bytes; None where there is none."""
    infos = {name: info for name, info in header.tensors.items() if name.startswith(NGRAMS)}
    keys = [info for name, info in infos.items() if name.endswith(".key")]
    if not keys:
        return None
    size = sum(info.end - info.start for info in infos.values())
    return {"order": len(keys), "ngrams": sum(math.prod(info.shape) for info in keys), "bytes": size}


def _tokenizer(text: str) -> dict[str, Any]:
    """Kind (BPE, Unigram, WordLevel, ...) and number of entries of a tokenizer.json."""
    try:
        if text.count("[") + text.count("{") > MANY:
            raise ValueError("objects would take up too much room")
        parsed = json.loads(text)
        model, added = parsed["model"], parsed.get("added_tokens", [])
        pieces = {entry[0] if isinstance(entry, list) else entry for entry in model["vocab"]}
        return {"kind": model["type"], "size": len(pieces | {token["content"] for token in added})}
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
        return {"kind": "unknown", "size": None}
