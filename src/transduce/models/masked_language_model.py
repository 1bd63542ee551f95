"""Predicts hidden words from those on both sides (Devlin et al. 2019, BERT).

    h_1 .. h_S = encoder(x),   z_s = norm(gelu(W h_s + b)),   p(x_s | the others) = softmax(E z_s + c)

E are the token embeddings, which read as well.

Shapes: B batch, S positions, N hidden positions, V vocabulary, E width of embeddings.
"""

from typing import Literal

import torch
import torch.nn.functional as F
from pydantic import Field
from torch import Tensor, nn

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.norms import make_norm
from transduce.layers.text_encoder import TextEncoder, TextEncoderConfig


class MaskedLanguageModelConfig(TextEncoderConfig):
    """What reads. By default a Transformer, as each word is predicted from all others."""

    kind: Literal["masked_language_model"] = "masked_language_model"
    encoder: Literal["transformer", "recurrent", "convolution", "linear", "none"] = "transformer"
    """What reads the text. linear: a Transformer with linear attention. none: nothing."""
    layers: int = Field(default=4, ge=1)
    """Of the encoder."""


class MaskedLanguageModel(TextEncoder):
    """Predicts hidden tokens (see `PredictsMasked` in `transduce.models.protocols`).

    Raises:
        InputError: the columns are not a text of which words are hidden.
    """

    Config = MaskedLanguageModelConfig

    def __init__(self, config: MaskedLanguageModelConfig, specs: Specs) -> None:
        if specs.source is None or specs.source.kind != "masked_text":
            raise InputError(
                '[model] kind = "masked_language_model": expected task.kind = "masked_language_modelling"; '
                "got another one."
            )
        super().__init__(config, specs.source)
        self.prediction = MaskedPrediction(config, specs.source.size)

    def encode(self, source: Padded) -> Padded:
        """Ids (B, S), or `WordsOfText` -> states (B, S, H)."""
        return super().encode(getattr(source, "pieces", source))

    def predict_masked(self, inputs: Padded, hidden_BS: Tensor) -> Tensor:
        """Ids (B, S), and which of them are hidden -> logits (N, V) of those."""
        states_NH = self.encode(inputs).values[hidden_BS]
        vectors_NE = self.prediction(states_NH)
        return self.source_embedding.logits(vectors_NE) + self.prediction.bias


class MaskedPrediction(nn.Module):
    """What stands between a hidden position's state and its logits, and a bias for each token."""

    def __init__(self, config: TextEncoderConfig, vocabulary: int) -> None:
        super().__init__()
        width = config.embedding_width or config.d_model
        self.dense = nn.Linear(config.width, width)
        self.norm = make_norm("layer", width, epsilon=config.norm_epsilon)
        self.bias = nn.Parameter(torch.zeros(vocabulary))

    def forward(self, states: Tensor) -> Tensor:
        """(.., H) -> (.., E)."""
        vectors: Tensor = self.norm(F.gelu(self.dense(states)))
        return vectors
