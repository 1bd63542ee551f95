"""A conditional masked language model: writes all words at once, then refines them (Ghazvininejad et al. 2019).

    P(n, y | x) = P(n | x) prod_t P(y_t | n, x)                          all words hidden: one pass
    P(y_hidden | y_visible, n, x) = prod_t P(y_t | y_visible, n, x)      some words known: refinement

Words that are predicted at the same time do not depend on each other, so several good translations get mixed ("Danke"
-> "thank thanks"). Gu et al. 2018 describe this multimodality problem and two remedies, both used here: training on a
teacher's translations, which vary less (`transduce distill`), and trying several outputs. The search is
`transduce.search.mask_predict`.

Shapes: B batch, S source positions, T target positions, N hidden words, L lengths, C length classes, D width, V
vocabulary.
"""

import math
from typing import Literal, NamedTuple

import torch
from pydantic import Field
from torch import Tensor, nn

from transduce.attention import masks
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.embedding import Embedding, Tied, make_embeddings
from transduce.layers.stack import NoncausalStackConfig, Sources, Stack


class NonAutoregressiveConfig(NoncausalStackConfig):
    """The settings of `StackConfig`, the numbers of layers, and the prediction of lengths."""

    kind: Literal["non_autoregressive"] = "non_autoregressive"
    encoder_layers: int = Field(default=3, ge=1)
    """Number of encoder layers."""
    decoder_layers: int = Field(default=3, ge=1)
    """Number of decoder layers."""
    tied: Tied = Field(default="all")
    """Which share a matrix. all: source, target and output, if the vocabulary is joint. output: target and output."""
    reach: int = Field(default=32, ge=1)
    """Length differences (target minus source) from -reach to reach are classes; beyond, each token halves the
    probability."""


class SourceMemory(NamedTuple):
    """The source, as the decoder uses it.

    sources: each block's keys and values.
    allowed: mask of real positions.
    length_class: (B, C), logits of target minus source length.
    length: (B,), source lengths.
    """

    sources: Sources
    allowed: Tensor
    length_class: Tensor
    length: Tensor


class NonAutoregressive(nn.Module):
    """Implements `Encodes` and `Fills` (see `transduce.models.protocols`).

    A length token is put before the source, and the length is predicted from its state. All hidden words have the same
    learned vector.
    """

    Config = NonAutoregressiveConfig

    def __init__(self, config: NonAutoregressiveConfig, specs: Specs) -> None:
        super().__init__()
        self.reach = config.reach
        embeddings = make_embeddings(specs, config.d_model, config.tied)
        self.target_embedding, self.source_embedding, self.output = embeddings
        self.length_token = nn.Parameter(torch.randn(config.d_model))
        self.hidden_word = nn.Parameter(torch.randn(config.d_model))
        self.length_embedding = Embedding(2 * config.reach + 1, config.d_model)
        self.encoder = Stack(config, config.encoder_layers, side="encoder")
        self.decoder = Stack(config, config.decoder_layers, cross=True, side="decoder")

    def encode(self, source: Padded) -> Padded:
        """Source ids (B, S) -> states (B, S, D)."""
        return Padded(self._encode(source)[:, 1:], source.lengths)

    def remember(self, source: Padded) -> SourceMemory:
        """The source's keys and values for every decoder block, and the logits of the target's length."""
        encoded_BSD = self._encode(source)
        length_class_BC = self.length_embedding.logits(encoded_BSD[:, 0])
        sources = self.decoder.keys_values(encoded_BSD[:, 1:])
        return SourceMemory(sources, masks.padding(source.mask()), length_class_BC, source.lengths)

    def lengths(self, memory: SourceMemory, longest: int) -> Tensor:
        """(B, 1 + longest) log-probabilities in fp32 of outputs of 0 .. longest tokens.

        The length classes are extended to a distribution over all lengths from 0. Beyond the last class, the
        probability halves with each token, so all lengths beyond a column together are as likely as that column.
        """
        columns = max(longest, memory.allowed.shape[-1] + self.reach)
        difference_BL = torch.arange(1 + columns, device=memory.length.device) - memory.length[:, None]
        class_BL = difference_BL.clamp(-self.reach, self.reach)
        halvings_BL = (difference_BL - class_BL).abs()
        logit_BL = memory.length_class.float().gather(1, class_BL + self.reach) - math.log(2) * halvings_BL
        beyond_B1 = logit_BL[:, -1:]
        return (logit_BL - torch.cat([logit_BL, beyond_B1], 1).logsumexp(1, keepdim=True))[:, : 1 + longest]

    def fill(self, target: Padded, hidden_BT: Tensor, memory: SourceMemory) -> Tensor:
        """Logits (N, V) of the hidden words, row by row, given the source and all words that are not hidden."""
        embedded_BTD = self.target_embedding(target.values)
        embedded_BTD = torch.where(hidden_BT[..., None], self.hidden_word, embedded_BTD)
        real_BT = target.mask()
        seen = masks.padding(real_BT)
        decoded_BTD, _ = self.decoder.extend(embedded_BTD, None, memory.sources, memory.allowed, seen, real_BT)
        return self.output.logits(decoded_BTD[hidden_BT])

    def _encode(self, source: Padded) -> Tensor:
        """(B, 1 + S, D): the state of the length token, then those of the source."""
        rows = len(source.lengths)
        before_B1D = self.length_token.expand(rows, 1, -1)
        embedded_BSD = torch.cat([before_B1D, self.source_embedding(source.values)], 1)
        real_BS = torch.cat([source.mask().new_ones(rows, 1), source.mask()], 1)
        return self.encoder.encode(embedded_BSD, real_BS)
