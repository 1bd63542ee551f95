"""`training.activation_checkpointing`: which modules compute their activations again in the backward pass."""

from torch import nn

from transduce.core.errors import InputError
from transduce.layers.recomputation import Recomputable


def recompute_blocks(model: nn.Module) -> None:
    """Let every block of the model keep its inputs alone in training, see `transduce.layers.recomputation`.

    Raises:
        InputError: the model has no blocks that can.
    """
    blocks = [each for each in model.modules() if isinstance(each, Recomputable)]
    if not blocks:
        raise InputError(
            f"training.activation_checkpointing: {type(model).__name__} has no blocks whose activations could be "
            "computed again, as Transformers, convolutions and their kin have: leave the key out."
        )
    for each in blocks:
        each.recomputes = True
