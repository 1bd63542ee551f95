"""An encoder's pass in one call, if the kernel supports its blocks (`transduce.kernels.native.decoder`).

Nothing is computed for padding: the products process the concatenated real positions of all sources.

Shapes: B sources, S source positions, N real positions of all sources, D model width.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from transduce.attention.capture import active_record
from transduce.fused.spec import Parts, in_kernel, plain_blocks
from transduce.kernels.matmul import predicts
from transduce.layers.block import Block


class OnePass:
    """All blocks of an encoder as one kernel, made from the current packed blocks."""

    def __init__(self, blocks: Sequence[Block], around: nn.Module) -> None:
        self._blocks = in_kernel(blocks)
        self.parts = Parts(blocks, around)

    def serves(self, x_BSD: Tensor) -> bool:
        """Whether it can run: there is no capture, hook or gradient."""
        return predicts(x_BSD) and active_record() is None and self.parts.are_untouched()

    def __call__(self, x_BSD: Tensor, real_BS: Tensor) -> Tensor:
        """The output (B, S, D) of the last block at real positions, which come first in each source; 0 for padding."""
        length_B = real_BS.sum(1)
        if int(length_B.min()) == x_BSD.shape[1]:
            return self._blocks.encode(x_BSD.flatten(0, 1), length_B).view_as(x_BSD)
        encoded_BSD = x_BSD.new_zeros(x_BSD.shape)
        encoded_BSD[real_BS] = self._blocks.encode(x_BSD[real_BS], length_B)
        return encoded_BSD


def in_one_pass(blocks: Sequence[nn.Module], around: nn.Module) -> OnePass | None:
    """The `blocks` of the module `around` as one kernel; None if a part is unsupported or not packed."""
    plain = plain_blocks(blocks)
    return OnePass(plain, around) if plain and not any(block.cross_attention for block in plain) else None
