"""Which of torch's tensors there are kernels for."""

import torch
from torch import Tensor

from transduce.kernels.native import kernels, multiplies_whole

TYPES = (torch.float32, torch.bfloat16)


def serves(*tensors: Tensor | None) -> bool:
    """Whether there are kernels for these tensors. None stands for an absent tensor."""
    there = [each for each in tensors if each is not None]
    return all(each.dtype in TYPES and each.device.type == "cpu" for each in there) and kernels() is not None


def can_pack(weight_OI: Tensor, whole: bool) -> bool:
    """Whether `transduce.kernels.native.linear.Packed` takes this weight.

    whole: in 8 bits, for which the processor must have the instruction.
    """
    fits = serves(weight_OI) and weight_OI.dtype is torch.float32
    return fits and (not whole or multiplies_whole())
