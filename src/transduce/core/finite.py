"""Whether weights are numbers at all, with torch or with NumPy alone."""

import math
from collections.abc import Mapping
from typing import Any

from transduce.core.errors import InputError


def check_finite(weights: Mapping[str, Any]) -> None:
    """Checks that all weights, tensors or arrays, are finite. Otherwise a model's output would be meaningless.

    Raises:
        InputError: some weights contain NaN or infinities; the message names all of them.
    """
    counts = {name: _not_finite(weight) for name, weight in weights.items()}
    problems = [
        f'weight "{name}": {wrong:,} of its {math.prod(weights[name].shape):,} numbers are NaN or infinite.'
        for name, wrong in counts.items()
        if wrong
    ]
    if problems:
        raise InputError([*problems, "the training that wrote this file failed, or the file was changed since."])


def _not_finite(weight: Any) -> int:
    """How many numbers of a tensor, or an array, are NaN or infinite. A sum that is finite tells at once."""
    if hasattr(weight, "data_ptr"):
        import torch

        if not weight.is_floating_point() or torch.isfinite(weight.sum()):
            return 0
        return int((~torch.isfinite(weight)).sum())
    import numpy as np

    with np.errstate(over="ignore", invalid="ignore"):
        if weight.dtype.kind != "f" or np.isfinite(weight.sum()):
            return 0
    return int((~np.isfinite(weight)).sum())
