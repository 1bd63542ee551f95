"""A text encoder whose pooled states are one vector for the whole text (Reimers and Gurevych 2019, Sentence-BERT).

    h_1 .. h_S = encoder(x),   v = pool(h) / |pool(h)|

Shapes: B batch, S positions, H width of states.
"""

from typing import Literal

import torch.nn.functional as F
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.text_encoder import TextEncoder, TextEncoderConfig, pooled


class SentenceEncoderConfig(TextEncoderConfig):
    """What reads, and how its states become one vector."""

    kind: Literal["sentence_encoder"] = "sentence_encoder"
    pooling: Literal["mean", "max", "first"] = "mean"
    """The mean or the maximum of all states, or the first one."""
    normalize: bool = True
    """Divide each vector by its length, so that the product of two is the cosine of their angle."""


class SentenceEncoder(TextEncoder):
    """Embeds texts (see `transduce.models.protocols`).

    Raises:
        InputError: the columns are not a text and its vector.
    """

    Config = SentenceEncoderConfig

    def __init__(self, config: SentenceEncoderConfig, specs: Specs) -> None:
        if specs.source is None or specs.target.kind != "text_vector":
            raise InputError(
                '[model] kind = "sentence_encoder": expected task.kind = "text_encoding"; got another one.'
            )
        super().__init__(config, specs.source)
        self.pooling, self.normalize = config.pooling, config.normalize

    def embed_text(self, inputs: Padded) -> Tensor:
        """(B, H)."""
        pooled_BH = pooled(self.encode(inputs), self.pooling)
        return F.normalize(pooled_BH, dim=-1) if self.normalize else pooled_BH
