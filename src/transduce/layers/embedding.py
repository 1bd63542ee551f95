"""Token embeddings and output layers.

Shapes: B batch, T positions, D model width, V vocabulary.
"""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.core.errors import InputError
from transduce.data.columns.protocols import Specs
from transduce.kernels.matmul import PacksOwnWeight, linear, predicts

Tied = Literal["all", "output", "input", "none"]


class Embedding(PacksOwnWeight):
    """One vector per token, multiplied by sqrt(D) when embedded (Vaswani et al. 2017, section 3.4).

    The same matrix can also serve as output layer (Press & Wolf 2017). Vectors are initialized from N(0, 1/D), so that
    embeddings have unit variance and logits start small.

    Args:
        vocabulary: V.
        width: D.
        scaled: whether vectors are multiplied by sqrt(D).
    """

    def __init__(self, vocabulary: int, width: int, scaled: bool = True) -> None:
        super().__init__()
        self.scaled = scaled
        self.weight = nn.Parameter(torch.empty(vocabulary, width))
        nn.init.normal_(self.weight, std=width**-0.5)

    def forward(self, token_BT: Tensor) -> Tensor:
        """(B, T) ids -> (B, T, D)."""
        vectors_BTD = F.embedding(token_BT, self.weight)
        return vectors_BTD * self.weight.shape[1] ** 0.5 if self.scaled else vectors_BTD

    def add_bias(self) -> None:
        """Give each token a bias, which is added to its logit."""
        self.bias = nn.Parameter(torch.zeros(len(self.weight)))

    def logits(self, hidden: Tensor) -> Tensor:
        """Hidden states (.., D) -> logits (.., V)."""
        packed = self.up_to_date() if predicts(hidden) else None
        return linear(hidden, self.weight, getattr(self, "bias", None)) if packed is None else packed(hidden)


def begin_with_zeros(embedded_BTD: Tensor, before: int | Tensor) -> Tensor:
    """Embeddings (B, T, D), the first of each sequence 0.

    before: how many came earlier; (B, 1) for each row.
    """
    later = torch.arange(embedded_BTD.shape[1], device=embedded_BTD.device) + before > 0
    return embedded_BTD * later[..., None]


def hide_words(embedded: Tensor, rate: float) -> Tensor:
    """Embeddings (.., D), of which this share is 0."""
    return embedded * (torch.rand(*embedded.shape[:-1], 1, device=embedded.device) >= rate) if rate else embedded


def make_embeddings(
    specs: Specs, width: int, tied: Tied, make: Callable[[int, int], Embedding] = Embedding
) -> tuple[Embedding, Embedding, Embedding]:
    """The target, source and output embeddings of an encoder-decoder; tied ones are the same object.

    Args:
        specs: both sides are tokens. The source shares no matrix where it has a vocabulary of its own.
        width: D.
        tied: which embeddings share a matrix: all, target and output, source and target ("input"), or none.
        make: called with (vocabulary, width), returns an embedding.

    Raises:
        InputError: there is no source.
    """
    source, target = specs.sizes
    if source is None:
        raise InputError(
            "[model] kind: this model writes a target for a source, and the task has no source; expected a model that "
            'continues texts, such as "transformer_decoder" or "rnn_decoder".'
        )
    target_embedding = make(target, width)
    one_input = tied in ("all", "input") and specs.one_vocabulary
    source_embedding = target_embedding if one_input else make(source, width)
    return target_embedding, source_embedding, make(target, width) if tied in ("input", "none") else target_embedding
