"""From scores to weights: who is read, and how much of each.

    softmax   alpha = exp(e) / sum exp(e)

A recipe names a weighing as above, and your own class as `my_file:MyWeighing`: a subclass of `Weighing`.

Shapes: B batch, H heads, T queries, S keys, E width of a query.
"""

import torch
from torch import Tensor, nn


class Weighing(nn.Module):
    """What every weighing is.

    Args:
        query_width: E, for those that look at the query itself.
    """

    sequential = False
    """True: a query's weights depend on those of the query before it, so that queries go one at a time."""

    def __init__(self, query_width: int) -> None:
        super().__init__()

    def forward(
        self,
        scores_BHTS: Tensor,
        allowed: Tensor | None,
        query_BHTE: Tensor,
        position_BT: Tensor,
        previous_BHTS: Tensor | None = None,
    ) -> Tensor:
        """alpha (B, H, T, S) in fp32 at least: none negative, 0 where not allowed, summing to 1 (or to less).

        Args:
            allowed: bool, broadcastable to (B, H, T, S), True = may attend; None = all may.
            query_BHTE: the queries.
            position_BT: int64, (B, T) or (1, T): where in its sequence each query stands, counted from 0.
            previous_BHTS: the weights of the query before each one, for a sequential weighing; None before the first.
        """
        raise NotImplementedError


class Softmax(Weighing):
    """alpha = exp(e) / sum exp(e): soft attention, the expectation of hard attention (Bahdanau et al. 2015)."""

    def forward(
        self,
        scores_BHTS: Tensor,
        allowed: Tensor | None,
        query_BHTE: Tensor,
        position_BT: Tensor,
        previous_BHTS: Tensor | None = None,
    ) -> Tensor:
        """(B, H, T, S)."""
        return softmax(scores_BHTS, allowed)


def softmax(scores_BHTS: Tensor, allowed: Tensor | None) -> Tensor:
    """Softmax over the allowed keys, in fp32, or in fp64 for fp64 scores. Every query must be allowed some key."""
    if allowed is not None:
        scores_BHTS = scores_BHTS.masked_fill(~allowed, -torch.inf)
    return scores_BHTS.softmax(-1, dtype=torch.promote_types(scores_BHTS.dtype, torch.float32))
