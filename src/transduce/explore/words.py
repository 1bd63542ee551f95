"""Attention over sub-word tokens -> attention over words, which is what people read.

A token begins a word if it begins with "▁" (U+2581, the Metaspace mark), if it is special (<s>), or if it
follows a special one.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from transduce.errors import InputError

WORD_START = "▁"

Array = NDArray[np.floating[Any]]


def words_from_tokens(
    tokens: Sequence[str], weights: Array, axis: Literal["keys", "queries"] = "keys"
) -> tuple[list[str], Array]:
    """The words of `tokens`, and the weights of the words.

    A word receives what its tokens receive, so key columns are summed; it attends as its tokens do on
    average, so query rows are averaged. Either way a row that summed to 1 still does. For both, call twice.

    Args:
        tokens: as long as the merged axis.
        weights: (..., T, S), or (S,) for one query. Keys are the last axis, queries the one before.

    Raises:
        InputError: the number of tokens is not the length of the axis.
    """
    weights = np.asarray(weights)
    position = -1 if axis == "keys" else -2
    if weights.ndim < -position or weights.shape[position] != len(tokens):
        raise InputError(
            f"weights of shape {weights.shape} do not fit {len(tokens)} tokens as {axis}: "
            f"wanted {'(..., S)' if axis == 'keys' else '(..., T, S)'}, one entry a token on axis {position}."
        )
    starts = [i for i in range(len(tokens)) if _begins_word(tokens, i)]
    groups = np.split(np.arange(len(tokens)), starts[1:])
    words = ["".join(tokens[i] for i in group).replace(WORD_START, " ").strip() for group in groups]
    if not len(tokens):
        return [], weights
    merged = np.add.reduceat(weights, starts, axis=position)
    if axis == "queries":
        merged = merged / np.array([len(group) for group in groups])[:, None]
    return [word or WORD_START for word in words], merged


def _begins_word(tokens: Sequence[str], i: int) -> bool:
    return i == 0 or tokens[i].startswith(WORD_START) or _special(tokens[i]) or _special(tokens[i - 1])


def _special(token: str) -> bool:
    """Whether the token stands for no text: <s>, </s>, <pad>, <unk>."""
    return len(token) > 2 and token.startswith("<") and token.endswith(">")
