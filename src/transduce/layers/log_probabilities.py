"""Logits to log-probabilities, for a search.

Shapes: N hypotheses, V vocabulary.
"""

import torch
from torch import Tensor

from transduce.kernels.native import top as native


def log_probabilities(logits_NV: Tensor) -> Tensor:
    """log softmax in fp32, (N, V). Where no gradient is wanted the logits may be changed into it."""
    if not torch.is_grad_enabled() and native.can_rank(logits_NV):
        return native.log_softmax_(logits_NV)
    return logits_NV.log_softmax(-1, dtype=torch.float32)
