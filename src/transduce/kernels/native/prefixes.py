"""The likeliest outputs of CTC, as one call for all rows (`prefixes.h`).

Shapes: B rows, P places, K tokens of a place, N outputs.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transduce.kernels.native import kernel, kernels
from transduce.kernels.native.call import Struct


def can_find(value_BPK: Tensor) -> bool:
    """Whether `ctc_prefixes` takes these."""
    return value_BPK.numel() > 0 and kernels() is not None


def ctc_prefixes(
    value_BPK: Tensor,
    token_BPK: Tensor,
    blank_BP: Tensor,
    places_B: Tensor,
    vocabulary: int,
    blank: int,
    beam: int,
    model: Struct | None = None,
) -> list[list[tuple[int, ...]]]:
    """For each row the `beam` likeliest outputs, or all that there are: best first, of equal ones the lower ids.

    Args:
        value_BPK, token_BPK: the tokens considered at each place, with their log-probabilities; blank_BP: the blank's.
        places_B: how many places each row has. All of them may be on any device.
        model: n-grams, see `packed_ngrams`, whose log-probabilities are added; None = there are none.
    """
    rows, places, count = value_BPK.shape
    output_BNP = torch.empty(rows, beam, places, dtype=torch.int64)
    length_BN = torch.empty(rows, beam, dtype=torch.int64)
    types = torch.float64, torch.int64, torch.float64, torch.int64
    given = zip((value_BPK, token_BPK, blank_BP, places_B), types, strict=True)
    arrays = (each.to("cpu", kind).contiguous() for each, kind in given)
    kernel("ctc_prefixes")(*arrays, rows, places, count, vocabulary, blank, beam, model, output_BNP, length_BN)
    lengths, outputs = length_BN.tolist(), output_BNP.numpy()
    return [
        [tuple(outputs[row, place, :length].tolist()) for place, length in enumerate(each) if length >= 0]
        for row, each in enumerate(lengths)
    ]


def packed_ngrams(
    levels: Sequence[tuple[Any, Any, Any]], vocabulary: int, end: int, root: float, weight: float
) -> Struct:
    """The fields of `transduce.data.kneser_ney.KneserNey`, and the weight of its log-probabilities."""
    key, share, rest = (np.concatenate(each) for each in zip(*levels, strict=True))
    first = np.cumsum([0, *(len(keys) for keys, _, _ in levels)])
    return Struct(key, first, share, rest, np.array([root]), np.array([weight]), len(levels), vocabulary, end)
