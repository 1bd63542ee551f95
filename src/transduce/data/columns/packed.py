"""Columns as a model file, and a cache, hold them: the texts of their tokenizers, and what else each is."""

from collections.abc import Mapping
from typing import Any

from transduce.core.errors import InputError
from transduce.core.registry import resolve
from transduce.data.columns.protocols import Column, Columns
from transduce.data.columns.tokens import Tokens
from transduce.data.tokenizers.text_ids import Tokenizer, read_tokenizers

Packed = tuple[dict[str, str], dict[str, dict[str, Any]]]


def tokenizers_of(columns: Columns) -> dict[str, Tokenizer]:
    """Of those columns that are text."""
    return {side: column.tokenizer for side, column in columns.items() if isinstance(column, Tokens)}


def one_vocabulary(columns: Columns) -> bool | None:
    """Whether each id of the source is the same token in the target; None where a side is no text."""
    tokenizers = tokenizers_of(columns)
    if len(tokenizers) < 2:
        return None
    source, target = tokenizers["source"], tokenizers["target"]
    if source is target or source.size != target.size:
        return source is target
    return source.tokens(range(source.size)) == target.tokens(range(target.size))


def pack(columns: Columns) -> Packed:
    """The tokenizers, one text where both sides share one; and the columns."""
    texts = {side: tokenizer.to_json() for side, tokenizer in tokenizers_of(columns).items()}
    if len(texts) > 1 and len(set(texts.values())) == 1:
        texts = {"joint": next(iter(texts.values()))}
    return texts, {side: {"kind": column.kind, **column.to_dict()} for side, column in columns.items()}


def unpack(texts: Mapping[str, str], tables: Mapping[str, Mapping[str, Any]]) -> Columns:
    """What `pack` packed.

    Raises:
        InputError: an unknown kind of column, or one that lacks something.
    """
    tokenizers = read_tokenizers(texts)
    columns: dict[str, Column] = {}
    for side, table in tables.items():
        kind = resolve("data.columns", str(table.get("kind")))
        tokenizer = tokenizers.get("joint", tokenizers.get(side))
        if issubclass(kind, Tokens) and tokenizer is None:
            raise InputError(f"the model file has no {side} tokenizer, which its task needs.")
        columns[side] = kind.from_dict(table, tokenizer)
    return columns
