"""Where the outputs of two engines part: how much likelier our token was than theirs, by our model.

Next to nothing is a tie, which rounding decides; more is a difference between the engines.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from transduce.core.errors import InputError

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline


@torch.inference_mode()
def margin(pipeline: "Pipeline", source: str, ours: Sequence[str], theirs: Sequence[str]) -> float:
    """log p(our token) - log p(their token) behind the tokens that both outputs begin with, in nats.

    Infinity where theirs has a token that is none of ours.

    Args:
        ours, theirs: different outputs, as tokens without start and end; the end is a token like others here.
    """
    columns: Any = pipeline.task.columns
    reads, writes = columns["source"], columns["target"]
    try:
        one, other = ([*writes.ids(tokens), writes.end] for tokens in (ours, theirs))
    except InputError:
        return math.inf
    place = next(place for place, (mine, yours) in enumerate(zip(one, other, strict=False)) if mine != yours)
    before = [writes.start, *writes.opening, *one[:place]]
    inputs = (
        column.inputs([ids]) for column, ids in ((reads, reads.closed(*reads.encode([source]))), (writes, before))
    )
    logits_V = pipeline.model(*(each.to(pipeline.device) for each in inputs))[0, -1]
    return float(logits_V[one[place]] - logits_V[other[place]])
