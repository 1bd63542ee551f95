"""Rows through a model in batches of like lengths, as every predictor does that does not search."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import torch

from transduce.core.padded import map_tree
from transduce.data.columns import Column
from transduce.data.columns.protocols import TextCut
from transduce.inference.batches import by_length
from transduce.inference.protocols import Advance

Row = TypeVar("Row")
Output = TypeVar("Output")
Done = Callable[[Sequence[int]], None]  # told the places of the rows of each batch


@torch.inference_mode()
def predict_in_batches(
    model: Any,
    rows: Sequence[Row],
    collate: Callable[[list[Row]], Any],
    run: Callable[[Any], Iterable[Output]],
    lengths: Iterable[int],
    batch_size: int,
    done: Done | None = None,
) -> list[Output]:
    """What `run` makes of each row, in their order.

    Args:
        collate: rows -> a batch, which goes to the model's device.
        run: the model, with a batch -> an output for each of its rows.
        lengths: of the rows.
    """
    device, found = next(model.parameters()).device, dict[int, Output]()
    model.eval()
    for places in by_length(lengths, batch_size):
        batch = map_tree(lambda leaf: leaf.to(device), collate([rows[place] for place in places]))
        found.update(zip(places, run(batch), strict=True))
        if done:
            done(places)
    return [found[place] for place in range(len(rows))]


def outputs_of(
    model: Any,
    reads: Column,
    texts: Sequence[str],
    run: Callable[[Any], Iterable[Output]],
    batch_size: int,
    advance: Advance | None,
) -> tuple[list[Output], list[TextCut | None]]:
    """What `run` makes of each text, as the column reads it, and what was read of each that is too long.

    Raises:
        InputError: texts that the column cannot read.
    """
    whole = [ids if isinstance(ids, np.ndarray) else np.asarray(ids, np.int32) for ids in reads.encode(texts)]
    rows, done = [reads.fitted(row) for row in whole], counting(advance)
    found = predict_in_batches(model, rows, reads.collate_texts, run, map(len, rows), batch_size, done)
    return found, [reads.cut_of(row) for row in whole]


def counting(advance: Advance | None) -> Done | None:
    """Tells `advance` how many rows are done."""
    return None if advance is None else lambda places: advance(len(places))
