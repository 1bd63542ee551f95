"""A model made ready to predict: its products laid out, and kernels attached that stand in for whole stacks."""

from torch import nn

from transduce.fused.stack import FusedBlocks
from transduce.kernels.matmul import Precision, pack_products
from transduce.layers.stack import Stack


def pack_all(model: nn.Module, precision: Precision = "fp32") -> None:
    """Pack everything in the model that can be: from now on it predicts and does nothing else.

    Raises:
        InputError: no 8-bit products on this machine.
    """
    pack_products(model, precision)
    for module in model.modules():
        if isinstance(module, Stack):
            module.fused = FusedBlocks()
