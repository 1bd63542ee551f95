"""Log-probabilities from logits, for search.

Shapes: N hypotheses, V vocabulary.
"""

import torch
from torch import Tensor

from transduce.kernels.native import top as native


def log_probabilities(logits_NV: Tensor) -> Tensor:
    """The log softmax (N, V) in fp32. If no gradient is needed, the logits may be overwritten."""
    if not torch.is_grad_enabled() and native.can_rank(logits_NV):
        return native.log_softmax_(logits_NV)
    return logits_NV.log_softmax(-1, dtype=torch.float32)
