"""A fused implementation of a whole stack, used if its blocks are plain and packed, without captures and hooks.

Shapes: B batch, T positions, S source positions, D model width.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from torch import Tensor, nn

from transduce.fused.beam_search import FusedBeamSearch, search_of
from transduce.fused.decoder_step import OneToken, in_one_call
from transduce.fused.encoder import OnePass, in_one_pass
from transduce.fused.spec import hooks_of, is_exactly
from transduce.kernels.matmul import Product
from transduce.layers.embedding import Embedding
from transduce.layers.stack import Sources, Stack, State

Kernel = TypeVar("Kernel", OneToken, OnePass)


class FusedBlocks:
    """The kernels for one stack's blocks; see `transduce.layers.stack.FusedStack`."""

    def __init__(self) -> None:
        self._kernels: dict[Callable[..., Any], tuple[Product, Any]] = {}

    def encode(self, stack: Stack, embedded_BSD: Tensor, real_BS: Tensor) -> Tensor | None:
        """The result of `Stack.encode`; None if the stack must compute it itself."""
        kernel = self._kernel(stack, in_one_pass)
        if kernel is None or not kernel.serves(embedded_BSD) or any(hooks_of((stack, stack.dropout))):
            return None
        encoded_BSD: Tensor = stack.norm(kernel(stack.positions(embedded_BSD), real_BS))
        return encoded_BSD

    def step(
        self, stack: Stack, embedded_B1D: Tensor, past: State | None, sources: Sources | None
    ) -> tuple[Tensor, State] | None:
        """The result of `Stack.extend_causally` with one token; None if the stack must compute it itself."""
        if not past or not sources:
            return None
        kernel = self.decoder(stack, begun=past[0].length > 0)
        if kernel is None or not kernel.serves(embedded_B1D, past, sources):
            return None
        x_B1D, state = kernel.step(stack.positions(embedded_B1D, past[0].length), past, sources)
        return stack.norm(x_B1D), state

    def search(
        self, stack: Stack, embedding: Embedding, output: Embedding, sources: Sources, longest: int
    ) -> FusedBeamSearch | None:
        """A search for outputs of up to `longest` tokens in one call; None if it must go step by step."""
        kernel = self.decoder(stack)
        return None if kernel is None else search_of(kernel, stack, embedding, output, sources, longest)

    def decoder(self, stack: Stack, begun: bool = False) -> OneToken | None:
        """All blocks in one call, if they are packed and plain, and each token attends to all earlier ones; else None.

        begun: a search is running, during which weights do not change.
        """
        return self._kernel(stack, in_one_call, begun) if stack.pattern == "full" else None

    def _kernel(
        self,
        stack: Stack,
        make: Callable[[Sequence[nn.Module], nn.Module], Kernel | None],
        unchanged: bool = False,
    ) -> Kernel | None:
        """The result of `make` for the packed blocks, cached until they change.

        unchanged: the blocks are known to be unchanged.
        """
        query = getattr(getattr(next(iter(stack.blocks)), "self_attention", None), "query", None)
        packed = getattr(query, "packed", None)
        if query is None or packed is None:
            return None
        made_of, kernel = self._kernels.get(make, (None, None))
        stale = kernel is not None and not unchanged and not kernel.parts.are_unchanged()
        if stale or made_of is not packed:
            kernel = make(list(stack.blocks), stack) if _is_plain(stack) else None  # which packs again what changed
            self._kernels[make] = query.packed, kernel
        made: Kernel | None = kernel
        return made


def _is_plain(stack: Stack) -> bool:
    """Whether the stack has no parts besides those of `Stack`."""
    return is_exactly(stack, Stack, "positions dropout blocks norm") and "extend" not in vars(stack)
