"""Texts longer than a model can read, cut into pieces: at sentence ends, else at spaces, else anywhere."""

import re
from collections.abc import Callable

BREAKS = (re.compile(r"(?<=[.!?…])\s+|(?<=[。！？])"), re.compile(r"(?<=[,;:])\s+|(?<=[，；：、])"), re.compile(r"\s+"))


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
