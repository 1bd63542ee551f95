"""A decoder's next token in one call, if the kernel supports its blocks (`transduce.kernels.native.decoder`).

Shapes: N hypotheses, B sources, S source positions, D model width.
"""

from collections.abc import Sequence
from typing import cast

from torch import Tensor, nn

from transduce.attention import KeyValue
from transduce.attention.capture import active_record
from transduce.attention.shared_kv_cache import Branch, Shared
from transduce.fused.spec import Parts, in_kernel, plain_blocks
from transduce.kernels.matmul import predicts
from transduce.kernels.native import decoder as native
from transduce.layers.block import Block


class OneToken:
    """All blocks of a decoder as one kernel, made from the current packed blocks."""

    def __init__(self, blocks: Sequence[Block], around: nn.Module) -> None:
        self.decoder = in_kernel(blocks)
        self.parts = Parts(blocks, around)
        self.stands_in: tuple[object, ...] = ()
        """What fused search found out about the parts around the blocks; see `transduce.fused.stack`."""

    def serves(self, x_N1D: Tensor, past: Sequence[KeyValue | Branch], sources: Sequence[KeyValue | Shared]) -> bool:
        """Whether it can run: hypotheses share caches, and there is no capture, hook or gradient."""
        return isinstance(past[0], Branch) and self.reads(x_N1D, sources)

    def reads(self, x: Tensor, sources: Sequence[KeyValue | Shared]) -> bool:
        """Whether it can run, judged by the sources only."""
        shared = isinstance(sources[0], Shared)
        return shared and predicts(x) and active_record() is None and self.parts.are_untouched()

    def step(
        self, x_N1D: Tensor, past: Sequence[KeyValue | Branch], sources: Sequence[KeyValue | Shared]
    ) -> tuple[Tensor, tuple[Branch, ...]]:
        """`Stack.extend_causally` with one token: the output of the last block (N, 1, D), and the new state."""
        past, sources = cast(Sequence[Branch], past), cast(Sequence[Shared], sources)
        before = past[0].family
        stores = [branch.store.grown(before.columns, before.groups.widest) for branch in past]
        said = native.Said(
            [store.room for store in stores], before.groups.source_N, before.groups.rank_N, before.past_NC
        )
        x_ND = self.decoder.step(x_N1D[:, 0], said, read_from(sources))
        return x_ND[:, None], tuple(Branch(store, before.grown) for store in stores)


def read_from(sources: Sequence[Shared]) -> native.NativeRead:
    """The shared sources in the form that the kernel takes."""
    first = sources[0]
    real_BS = first.allowed_B11S[:, 0, 0]
    return native.NativeRead([shared.source for shared in sources], first.family.groups.source_N, real_BS)


def in_one_call(blocks: Sequence[nn.Module], around: nn.Module) -> OneToken | None:
    """The `blocks` of the module `around` as one kernel; None if a part is unsupported or not packed."""
    plain = plain_blocks(blocks)
    return OneToken(plain, around) if plain and all(block.cross_attention for block in plain) else None
