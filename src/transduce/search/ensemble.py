"""Ensembles: several models as one, whose predictions are averaged at each step.

    probability       p = (1 / M) sum_m p_m, by log-mean-exp: possible if any member finds it possible
    log_probability   p ~ exp((1 / M) sum_m log p_m), normalized: impossible if any member finds it impossible

Shapes: B batch, S source positions, T target positions, V vocabulary, M models.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from transduce.core.padded import Padded
from transduce.layers.fused_search import FusedSearch, Mean
from transduce.models.protocols import HasFusedSearch, Tree, stands_in


class Ensemble(nn.Module):
    """Implements `Predicts` and `Steps` (see `transduce.models.protocols`). Memory and state are tuples.

    Members may have different architectures, but must share their target vocabulary. They read the same source (B, S),
    or each reads its own column of (B, S, M), in which shorter sources are padded with -1. For models without a source,
    it is None. Frames (B, S, F) are read by all.
    """

    def __init__(self, members: Sequence[nn.Module], mean: Mean = "probability") -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.mean = mean

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        """Log-probabilities (B, T, V) of the token after each target position, which can be used as logits."""
        return self._mean([member(read, target) for member, read in self._read(source)])

    def start(self, source: Padded | None, rows: int) -> tuple[Tree, Tree]:
        """The members' memories and states."""
        started = [member.start(read, rows) for member, read in self._read(source)]  # type: ignore[operator]
        return tuple(memory for memory, _ in started), tuple(state for _, state in started)

    def step(self, token: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        """Log-probabilities (B, V) in fp32 of the token after `token`."""
        trees = zip(self.members, memory, state, strict=True)
        stepped = [member.step(token, *own) for member, *own in trees]  # type: ignore[operator]
        return self._mean([each for each, _ in stepped]), tuple(following for _, following in stepped)

    def fused_search(self, memory: Tree, longest: int) -> FusedSearch | None:
        """See `transduce.models.protocols.HasFusedSearch`; None if any member has no fused search."""
        each: list[FusedSearch] = []
        for member, own in zip(self.members, memory, strict=True):
            if not isinstance(member, HasFusedSearch) or not stands_in(member, "fused_search", "step"):
                return None
            searches = member.fused_search(own, longest)
            if searches is None or searches.members > 1:
                return None
            each.append(searches)
        return each[0].joined(each[1:], self.mean)

    def _read(self, source: Padded | None) -> list[tuple[nn.Module, Padded | None]]:
        if source is None or source.values.ndim == 2 or source.values.is_floating_point():
            return [(member, source) for member in self.members]
        columns = source.values.unbind(-1)
        return [(member, _column(ids_BS)) for member, ids_BS in zip(self.members, columns, strict=True)]

    def _mean(self, logits: list[Tensor]) -> Tensor:
        normed_MBV = torch.stack([logits_BV.log_softmax(-1, dtype=torch.float32) for logits_BV in logits])
        if self.mean == "probability":
            return normed_MBV.logsumexp(0) - math.log(len(logits))
        return normed_MBV.mean(0).log_softmax(-1)


def _column(ids_BS: Tensor) -> Padded:
    """A padded batch from ids with -1 as padding, as long as its longest row."""
    length_B = (ids_BS >= 0).sum(1)
    return Padded(ids_BS[:, : int(length_B.max())].clamp(min=0), length_B)
