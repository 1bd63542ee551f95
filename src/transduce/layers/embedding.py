"""Token embeddings and output layers.

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
    """One vector per token, multiplied by sqrt(D) when embedded (Vaswani et al. 2017, section 3.4).

    The same matrix can also serve as output layer (Press & Wolf 2017). Vectors are initialized from N(0, 1/D), so that
    embeddings have unit variance and logits start small.
    """

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary, width))
        nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, token_BT: Tensor) -> Tensor:
        """(B, T) ids -> (B, T, D)."""
        return F.embedding(token_BT, self.weight) * self.weight.shape[1] ** 0.5

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states (.., D) -> logits (.., V)."""
        packed = self.up_to_date() if predicts(hidden) else None
        return linear(hidden, self.weight) if packed is None else packed(hidden)


def hide_words(embedded: Tensor, rate: float) -> Tensor:
    """Embeddings (.., D), of which this share is 0."""
    return embedded * (torch.rand(*embedded.shape[:-1], 1, device=embedded.device) >= rate) if rate else embedded


def make_embeddings(
    source: int | None, target: int, width: int, tied: Tied, make: Callable[[int, int], Embedding] = Embedding
) -> tuple[Embedding, Embedding, Embedding]:
    """The target, source and output embeddings of an encoder-decoder; tied ones are the same object.

    Args:
        source: size of the source vocabulary; a model without a source does not use this function.
        target: size of the target vocabulary.
        width: D.
        tied: which embeddings share a matrix.
        make: called with (vocabulary, width), returns an embedding.
    """
    assert source is not None
    target_embedding = make(target, width)
    source_embedding = target_embedding if tied == "all" and source == target else make(source, width)
    return target_embedding, source_embedding, make(target, width) if tied == "none" else target_embedding
