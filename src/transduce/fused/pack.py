"""Preparing a model for prediction: packs its weights and attaches fused kernels to its stacks."""

from torch import nn

from transduce.fused.stack import FusedBlocks
from transduce.kernels.matmul import PacksOwnWeight, Precision, pack_products
from transduce.layers.ssru_stack import SsruStack
from transduce.layers.stack import Stack


def pack_all(model: nn.Module, precision: Precision = "fp32") -> None:
    """Pack all weights of a model that can be packed. The model should then only be used for prediction.

    Raises:
        InputError: this machine has no int8 products.
    """
    pack_products(model, precision)
    _attach_kernels(model)


def pack_again(model: nn.Module) -> None:
    """Pack all weights that are packed, each in its precision, as they are now."""
    for module in model.modules():
        if isinstance(module, PacksOwnWeight) and module.packed is not None:
            module.pack_again()
    _attach_kernels(model)


def _attach_kernels(model: nn.Module) -> None:
    for module in model.modules():
        if isinstance(module, Stack | SsruStack):
            module.fused = FusedBlocks()
