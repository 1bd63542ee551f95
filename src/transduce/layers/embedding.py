"""Tokens to vectors and back.

Shapes: B batch, T positions, D model width, V vocabulary.
"""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.kernels.matmul import PacksOwnWeight, linear, predicts

Tied = Literal["all", "output", "none"]


class Embedding(PacksOwnWeight):
    """One vector a token, scaled by sqrt(D) on the way in; the same matrix can read the output (Press & Wolf 2017).

    Vectors start as N(0, 1/D), so that they enter with unit variance and logits from them start small.
    """

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, width))
        nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, token_BT: Tensor) -> Tensor:
        """(B, T) ids -> (B, T, D)."""
        return F.embedding(token_BT, self.weight) * self.weight.shape[1] ** 0.5

    def logits(self, hidden: Tensor) -> Tensor:
        """(.., D) -> (.., V): how well each token's vector fits each hidden state."""
        packed = self.up_to_date() if predicts(hidden) else None
        return linear(hidden, self.weight) if packed is None else packed(hidden)


def make_embeddings(
    source: int | None, target: int, width: int, tied: Tied, make: Callable[[int, int], Embedding] = Embedding
) -> tuple[Embedding, Embedding, Embedding]:
    """Those of an encoder-decoder: for the target, the source and the output, one and the same where they are tied.

    Args:
        source, target: how many ids each vocabulary has; a model that reads none has no use for this.
        make: an embedding of (vocabulary, width).
    """
    assert source is not None
    target_embedding = make(target, width)
    source_embedding = target_embedding if tied == "all" and source == target else make(source, width)
    return target_embedding, source_embedding, make(target, width) if tied == "none" else target_embedding
