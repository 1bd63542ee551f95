"""Which of torch's tensors there are kernels for."""

import torch
from torch import Tensor

from transduce.kernels.native import kernels, multiplies_int8

TYPES = (torch.float32, torch.bfloat16)


def serves(*tensors: Tensor | None) -> bool:
    """Whether there are kernels for these tensors. None stands for an absent tensor."""
    there = [each for each in tensors if each is not None]
    return all(each.dtype in TYPES and each.device.type == "cpu" for each in there) and kernels() is not None


def can_pack(weight_OI: Tensor, int8: bool) -> bool:
    """Whether `transduce.kernels.native.linear.Packed` takes this weight.

    int8: in 8 bits, for which the processor must have the instruction.
    """
    fits = serves(weight_OI) and weight_OI.dtype is torch.float32
    return fits and (not int8 or multiplies_int8())
