"""Texts longer than a model can read, cut into pieces: at sentence ends, else at spaces, else anywhere."""

import re
from collections.abc import Callable
from typing import Literal

from transduce.data.tokenizer import Tokenizer

LongText = Literal["split", "truncate", "refuse"]
BREAKS = (re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])"), re.compile(r"(?<=[,;:])\s+|(?<=[，；：、])"), re.compile(r"\s+"))


def shorten(text: str, tokenizer: Tokenizer, limit: int, how: LongText, prompt: bool) -> tuple[list[str], str]:
    """`text` in parts of at most `limit` tokens, and what was done in words.

    Args:
        how: "truncate" keeps the beginning, anything else all of it, in pieces.
        prompt: the text is to be continued: its end is kept, whatever `how`.
    """

    def length(part: str) -> int:
        return len(tokenizer.encode([part])[0])

    if prompt:
        return [_end(text, tokenizer, length, limit)], f"only its last {limit} are seen"
    if how == "truncate":
        return [_beginning(text, tokenizer, length, limit)], f"cut off after {limit}"
    pieces = split_to_fit(text, length, limit)
    return pieces, f"translated in {len(pieces)} pieces"


def split_to_fit(text: str, length: Callable[[str], int], limit: int) -> list[str]:
    """`text` in as few pieces as its best breaks allow, each of at most `limit` tokens.

    Args:
        length: how many tokens a text has; must not shrink when text is added.
    """
    if length(text) <= limit:
        return [text]
    for breaks in BREAKS:
        parts = [part for part in breaks.split(text) if part]
        if len(parts) > 1:
            return [piece for joined in _join(parts, length, limit) for piece in split_to_fit(joined, length, limit)]
    half = len(text) // 2
    if half == 0:
        return [text]
    return split_to_fit(text[:half], length, limit) + split_to_fit(text[half:], length, limit)


def _join(parts: list[str], length: Callable[[str], int], limit: int) -> list[str]:
    """Neighbours put together while they fit; never all of them, since the whole did not fit."""
    joined = [parts[0]]
    for part in parts[1:]:
        longer = f"{joined[-1]} {part}"
        if length(longer) <= limit:
            joined[-1] = longer
        else:
            joined.append(part)
    return joined if len(joined) > 1 else parts


def _beginning(text: str, tokenizer: Tokenizer, length: Callable[[str], int], limit: int) -> str:
    """The longest beginning of whole characters and at most `limit` tokens."""
    end = tokenizer.offsets(text)[limit - 1][1]
    while length(text[:end]) > limit:  # a token may end within a character, or be another one at the end
        end -= 1
    return text[:end]


def _end(text: str, tokenizer: Tokenizer, length: Callable[[str], int], limit: int) -> str:
    """The longest end of whole characters and at most `limit` tokens."""
    start = tokenizer.offsets(text)[-limit][0]
    while length(text[start:]) > limit:
        start += 1
    return text[start:]
