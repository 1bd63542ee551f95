"""Preparing a model for prediction: packs its weights and attaches fused kernels to its stacks."""

from torch import nn

from transduce.fused.stack import FusedBlocks
from transduce.kernels.matmul import Precision, pack_products
from transduce.layers.stack import Stack


def pack_all(model: nn.Module, precision: Precision = "fp32") -> None:
    """Pack all weights of a model that can be packed. The model should then only be used for prediction.

    Raises:
        InputError: this machine has no int8 products.
    """
    pack_products(model, precision)
    for module in model.modules():
        if isinstance(module, Stack):
            module.fused = FusedBlocks()
