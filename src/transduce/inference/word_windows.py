"""What a model says of each word of a text, read in windows where the text is longer than the model reads at once.

Windows overlap by half; of a word counts the window in which it is farthest from the edges within the text.

Shapes: N words, H numbers for each.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.data.columns import Columns
from transduce.inference.batch_predictor import predict_in_batches
from transduce.inference.protocols import Advance

Ids = NDArray[np.int32]


class WordWindow(NamedTuple):
    """The words [start, end) of a text, which are read at once; `row` is their part of its row."""

    text: int
    start: int
    end: int
    row: Ids


def read_windows(
    model: Any,
    columns: Columns,
    texts: Sequence[str],
    read: Callable[[Any], Tensor],
    longest: int,
    batch_size: int,
    advance: Advance | None,
    width: int = 0,
) -> list[Tensor]:
    """(N, H) for each text, in fp64, on the processor.

    Args:
        read: inputs -> (B, N, H).
        longest: the most pieces that are read at once.
        width: H where no text has a word.
    """
    reads, size = columns["source"], columns["source"].spec.size
    rows = [np.asarray(ids, np.int32) for ids in reads.encode(texts)]
    listed = [each for place, row in enumerate(rows) for each in windows(place, row, size, longest)]

    def run(inputs: Any) -> list[Tensor]:
        return [*read(inputs).double().cpu()]

    given = [each.row for each in listed]
    each_NH = predict_in_batches(model, given, reads.collate_texts, run, map(len, given), batch_size)
    if advance:
        advance(len(texts))
    return _joined(rows, size, listed, each_NH, each_NH[0].shape[1] if each_NH else width)


def windows(text: int, row: Ids, size: int, longest: int) -> list[WordWindow]:
    """What of a row is read at once: all of it, or as many words as have `longest` pieces, from every half of these on.

    A word of more pieces is read from its first ones.

    Args:
        size: of the vocabulary, from which on ids are first pieces.
    """
    firsts = np.flatnonzero(row >= size).tolist()
    if len(row) <= longest:
        return [WordWindow(text, 0, len(firsts), row)] if firsts else []
    bounds, found, start = [*firsts, len(row)], list[WordWindow](), 0
    while True:
        end = start + 1
        while end < len(firsts) and bounds[end + 1] - bounds[start] <= longest:
            end += 1
        found.append(WordWindow(text, start, end, row[bounds[start] : bounds[end]][:longest]))
        if end == len(firsts):
            return found
        start += max(1, (end - start) // 2)


def _joined(
    rows: Sequence[Ids], size: int, listed: Sequence[WordWindow], each_NH: Sequence[Tensor], width: int
) -> list[Tensor]:
    """(N, H) of each text from its windows."""
    counts = [int((row >= size).sum()) for row in rows]
    found = [torch.zeros(count, width, dtype=torch.float64) for count in counts]
    nearest = [torch.full((count,), -1) for count in counts]
    for window, read_NH in zip(listed, each_NH, strict=True):
        words = torch.arange(window.start, window.end)
        left = words - window.start if window.start else torch.full_like(words, 1 << 30)
        right = window.end - 1 - words if window.end < counts[window.text] else torch.full_like(words, 1 << 30)
        far = torch.minimum(left, right)
        better = far > nearest[window.text][words]
        nearest[window.text][words[better]] = far[better]
        found[window.text][words[better]] = read_NH[: len(words)][better]
    return found
