"""The tokenizer of a decoder of Hugging Face, what its special tokens are for, and what a text begins with.

| `add_bos_token`, or else the template of `tokenizer.json` | a text begins with |
|---|---|
| puts a token before a text, as for Llama and Gemma | that token |
| does not, as for GPT-2 and Qwen | `<|endoftext|>`, which stood between documents in training; else the end token |
"""

from dataclasses import replace
from typing import Any

from transduce.core.errors import InputError
from transduce.data.columns.tokens import Tokens
from transduce.data.tokenizers.text_ids import ABSENT
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.interop.foreign_folder import ForeignFolder
from transduce.interop.import_columns import HOW, never_of
from transduce.interop.import_tokenizer import json_of, of_bytes, tokenizer_file

BETWEEN = "<|endoftext|>"
ROLES = {"start": "bos_token", "end": "eos_token", "pad": "pad_token", "mask": "mask_token"}
"""What a token is for, by our name and by theirs."""


def column_of(folder: ForeignFolder, size: int) -> tuple[Tokens, list[str]]:
    """The column of a folder's model, whose embedding has `size` rows; and what is to be told of it.

    Raises:
        InputError: there is no tokenizer that can be read, or it has no token for the end of a text.
    """
    tokenizer = _tokenizer(folder, size)
    vocabulary = tokenizer._inner.get_vocab(with_added_tokens=True)
    roles = {role: name for role in ROLES if (name := _named(folder, role, tokenizer)) in vocabulary}
    roles = {**roles, "unknown": _unknown(tokenizer), **_ends(folder, tokenizer, roles)}
    if not roles.get("end"):
        raise InputError(f"{folder.path}: eos_token: expected the token that ends a text; there is none.")
    begins = _begins(folder, tokenizer, roles.get("start", ""))
    roles["start"] = begins or (BETWEEN if BETWEEN in vocabulary else roles["end"])
    tokenizer = tokenizer.with_roles(roles)
    column = Tokens(tokenizer, starts=tokenizer.start != tokenizer.end, stream=True)
    never = {*column.unwritten, *tokenizer.ids(never_of(folder, tokenizer)), *_unused(tokenizer)} - {tokenizer.end}
    ends = tokenizer.tokens(sorted(_end_ids(folder) - {tokenizer.end}))
    notes = [f"a text ends at {roles['end']} only; the original also ends it at {', '.join(ends)}."] if ends else []
    return replace(column, never=tuple(tokenizer.tokens(sorted(never)))), notes


def _tokenizer(folder: ForeignFolder, size: int) -> Tokenizer:
    path = folder.path
    if (path / "tokenizer.json").is_file():
        return tokenizer_file(path / "tokenizer.json", size)
    if folder.get("model_type", str) == "gpt2" and (path / "merges.txt").is_file():
        return of_bytes(path, size)
    raise InputError(f"{path}: there is no tokenizer that can be read. {HOW.format(folder=path)}")


def _named(folder: ForeignFolder, role: str, tokenizer: Tokenizer) -> str:
    """The name of the token for `role`; "" where no file says it."""
    theirs = ROLES[role]
    if name := _written(folder, theirs):
        return name
    index = folder.token(f"{theirs}_id")
    return tokenizer.tokens([index])[0] if index is not None and index < tokenizer.size else ""


def _written(folder: ForeignFolder, key: str) -> str:
    """A token's name in tokenizer_config.json or special_tokens_map.json: a text, or a table with its content."""
    others = folder.path / "special_tokens_map.json"
    tables = [folder.tokenizer, json_of(others) if others.is_file() else {}]
    found = [table.get(key) for table in tables if isinstance(table, dict)]
    names = [each.get("content") if isinstance(each, dict) else each for each in found]
    return next((name for name in names if isinstance(name, str) and name), "")


def _unknown(tokenizer: Tokenizer) -> str:
    """What its model has for characters that it lacks; the name in other files stands for nothing in one over bytes."""
    model: Any = tokenizer._inner.model
    if type(model).__name__ == "Unigram":
        return tokenizer.tokens([tokenizer.unknown])[0] if tokenizer.unknown != ABSENT else ""
    name = model.unk_token
    return name if name is not None and tokenizer._inner.token_to_id(name) is not None else ""


def _end_ids(folder: ForeignFolder) -> set[int]:
    """Of the tokens at which the original ends a text."""
    value = folder.generated("eos_token_id")
    listed = value if isinstance(value, list) else [value]
    return {each for each in listed if type(each) is int and each >= 0}


def _ends(folder: ForeignFolder, tokenizer: Tokenizer, roles: dict[str, str]) -> dict[str, str]:
    """The end token: the tokenizer's, where the original ends a text at it, or else the first that it ends at."""
    known, first = _end_ids(folder), folder.token("eos_token_id")
    if first is None or (roles.get("end") and tokenizer.ids([roles["end"]])[0] in known):
        return {}
    if first >= tokenizer.size:
        raise InputError(f"{folder.path}: eos_token_id = {first}, but there are {tokenizer.size:,} tokens.")
    return {"end": tokenizer.tokens([first])[0]}


def _begins(folder: ForeignFolder, tokenizer: Tokenizer, named: str) -> str:
    """The token that the original's tokenizer puts before a text; "" = none."""
    added = folder.tokenizer.get("add_bos_token")
    if isinstance(added, bool):
        return named if added else ""
    inner: Any = tokenizer._inner
    plain, framed = (inner.encode("a", add_special_tokens=each).tokens for each in (False, True))
    before = framed[: len(framed) - len(plain)] if framed[len(framed) - len(plain) :] == plain else framed[:1]
    return str(before[0]) if before and before[0] not in plain else ""


def _unused(tokenizer: Tokenizer) -> list[int]:
    """The ids of rows of the embedding that no token has."""
    names = tokenizer.tokens(range(tokenizer.size))
    return [index for index, name in enumerate(names) if name == f"<unused {index}>"]
