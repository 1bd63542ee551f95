"""In which numbers the training step multiplies."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import torch

from transduce.kernels.cpu import bf16_is_faster, capabilities


def resolve_precision(precision: str, device: torch.device) -> Literal["fp32", "bf16"]:
    """`auto` becomes bf16 where the hardware multiplies it faster than fp32, and fp32 elsewhere; other values stay."""
    if precision == "fp32" or (precision == "auto" and not _bf16_is_faster(device)):
        return "fp32"
    return "bf16"


def autocast(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """Matrix products in bf16 inside, with fp32 weights, residual stream, norms, softmax and loss; or no change."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16)


def _bf16_is_faster(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    return device.type == "cpu" and bf16_is_faster(capabilities())
