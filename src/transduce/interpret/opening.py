"""Where the explorer opens: the head and the word at which the attention of an example is best seen.

Only words count: rows and columns of special tokens and of punctuation marks are left out, and in self-attention a word
itself and its two neighbours, which are looked at for their place alone. With a_rc what row r attends to column c:

    one example     the head with the largest sum over c of max_r a_rc, divided by the number of rows: its rows look
                    sharply, and at different words. Of it the row with the largest weight.
    a pair of examples that differ in one word
                    the head and the row, the same word in both, with the largest min(max_c a_rc, max_c b_rc) of those
                    that look at different words in the two, neither of them the word that differs.

Cross-attention is taken where it attends between words, else that of the encoder, else that of the decoder; of a pair
the encoder's.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.interpret.attention import Attention, Layer
from transduce.interpret.layers import Axis, Kind
from transduce.interpret.token_spans import Side
from transduce.interpret.words import by_words

Array = NDArray[np.floating[Any]]
KINDS: tuple[Kind, ...] = ("cross", "encoder", "decoder")
NEAR = 1  # words beside a word


class Opening(NamedTuple):
    """Where the explorer opens.

    layer: name of the module. head: from 0. row: the place of the query's first token along the module's rows.
    """

    layer: str
    head: int
    row: int


class _Word(NamedTuple):
    text: str
    tokens: tuple[int, ...]


def opening(examples: Sequence[Attention]) -> Opening | None:
    """The head and the row for these examples: one of them, or two that may differ in a word; None where none is told.

    Args:
        examples: the attention of one example or of two, by one model.
    """
    if len(examples) == 2 and (found := _of_pair(*examples)):
        return found
    kinds = KINDS if examples else ()
    return next(filter(None, (_of_one(examples[0], kind) for kind in kinds)), None)


def _of_one(found: Attention, kind: Kind) -> Opening | None:
    best, told = None, 0.0
    for layer in found.of(kind):
        rows, columns = _words(found, layer.part.rows), _words(found, layer.part.columns)
        for head, weights_RC in enumerate(_between_words(layer, rows, columns)):
            if not weights_RC.size:
                continue
            sharp = float(weights_RC.max(0).sum()) / len(rows)
            if sharp > told:
                row = int(weights_RC.max(1).argmax())
                best, told = Opening(layer.name, head, rows[row].tokens[0]), sharp
    return best


def _of_pair(one: Attention, other: Attention) -> Opening | None:
    """Of two sources with as many words, of which one differs; None for any others."""
    first, second = _words(one, "source"), _words(other, "source")
    differ = [a.text != b.text for a, b in zip(first, second, strict=False)]
    if len(first) != len(second) or sum(differ) != 1:
        return None
    best, told = None, 0.0
    for layer, like in zip(one.of("encoder"), other.of("encoder"), strict=True):
        both = zip(_between_words(layer, first, first), _between_words(like, second, second), strict=True)
        for head, (a_RC, b_RC) in enumerate(both):
            here_R, there_R = a_RC.argmax(1), b_RC.argmax(1)
            changed_C = np.array(differ)
            moved_R = (here_R != there_R) & ~changed_C & ~changed_C[here_R] & ~changed_C[there_R]
            weight_R = np.where(moved_R, np.minimum(a_RC.max(1), b_RC.max(1)), 0)
            row = int(weight_R.argmax())
            if weight_R[row] > told:
                best, told = Opening(layer.name, head, first[row].tokens[0]), float(weight_R[row])
    return best


def _words(found: Attention, axis: Axis) -> list[_Word]:
    """The words along an axis that say something, with the places of their tokens; none where it has no words."""
    side: Side | None = {"source": found.source, "target": found.target, "decoder_input": found.target}.get(axis)
    shift = 1 if axis == "decoder_input" else 0
    words = [] if side is None else side.words
    telling = [each for each in words if each.end > each.start and any(map(str.isalnum, each.text))]
    return [_Word(each.text, tuple(place + shift for place in each.tokens)) for each in telling]


def _between_words(layer: Layer, rows: Sequence[_Word], columns: Sequence[_Word]) -> Array:
    """(H, R, C) weights between words; in self-attention 0 for a word itself and its neighbours."""
    weights_HTS: Array = layer.weights.double().numpy()
    *_, queries, keys = weights_HTS.shape
    fits = all(token < queries for each in rows for token in each.tokens)
    if not fits or any(token >= keys for each in columns for token in each.tokens):
        return np.zeros((0, len(rows), len(columns)))
    weights_HRS = by_words([each.tokens for each in rows], weights_HTS, "queries")
    weights_HRC = by_words([each.tokens for each in columns], weights_HRS)
    if layer.part.rows == layer.part.columns:
        near_RC = np.abs(np.subtract.outer(np.arange(len(rows)), np.arange(len(columns)))) <= NEAR
        weights_HRC = np.where(near_RC, 0, weights_HRC)
    return weights_HRC
