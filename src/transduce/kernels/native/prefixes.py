"""The likeliest outputs of CTC, as one call for all rows (`prefixes.h`).

Shapes: B rows, P places, K tokens of a place, N outputs.
"""

import torch
from torch import Tensor

from transduce.kernels.native import kernel, kernels


def can_find(value_BPK: Tensor) -> bool:
    """Whether `ctc_prefixes` takes these."""
    return value_BPK.numel() > 0 and kernels() is not None


def ctc_prefixes(
    value_BPK: Tensor, token_BPK: Tensor, blank_BP: Tensor, places_B: Tensor, vocabulary: int, blank: int, beam: int
) -> list[list[tuple[int, ...]]]:
    """For each row the `beam` likeliest outputs, or all that there are: best first, of equal ones the lower ids.

    Args:
        value_BPK, token_BPK: the tokens considered at each place, with their log-probabilities; blank_BP: the blank's.
        places_B: how many places each row has. All of them may be on any device.
    """
    rows, places, count = value_BPK.shape
    output_BNP = torch.empty(rows, beam, places, dtype=torch.int64)
    length_BN = torch.empty(rows, beam, dtype=torch.int64)
    types = torch.float64, torch.int64, torch.float64, torch.int64
    given = zip((value_BPK, token_BPK, blank_BP, places_B), types, strict=True)
    arrays = (each.to("cpu", kind).contiguous() for each, kind in given)
    kernel("ctc_prefixes")(*arrays, rows, places, count, vocabulary, blank, beam, output_BNP, length_BN)
    lengths, outputs = length_BN.tolist(), output_BNP.numpy()
    return [
        [tuple(outputs[row, place, :length].tolist()) for place, length in enumerate(each) if length >= 0]
        for row, each in enumerate(lengths)
    ]
