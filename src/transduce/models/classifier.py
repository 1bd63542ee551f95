"""A text encoder, what it says of the whole text, and a label: recurrent or Transformer, under any pooling.

    h_1 .. h_S = encoder(x),   m = pool(h),   logits = W dropout(m) + b

Pooling by attention is the structured self-attentive embedding (Lin et al. 2017, equations 5 to 7): R hops, each a
learned query over keys tanh(W_1 h), whose weights say which words decided: the end token, in whose state a recurrent
encoder could gather everything, is not among them.

Shapes: B batch, S positions, D width of embeddings, H width of states, R hops, C labels.
"""

from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor, nn

from transduce.attention.dropout import Dropout
from transduce.attention.pooling import AttentionPooling
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.layers.embedding import Embedding
from transduce.layers.recurrent_stack import Direction, RecurrentEncoder
from transduce.layers.stack import NoncausalStackConfig, Stack, StackConfig

Pooling = Literal["attention", "mean", "max", "last"]


class ClassifierConfig(NoncausalStackConfig):
    """What reads, how it is pooled, and the sizes and parts of `StackConfig`, which are a Transformer's."""

    kind: Literal["classifier"] = "classifier"
    encoder: Literal["transformer", "recurrent"] = "recurrent"
    """What reads the text."""
    layers: int = Field(default=1, ge=1)
    """Of the encoder."""
    cell: str = "lstm"
    """Of a recurrent encoder: a cell of transduce.layers.recurrent, or your own as my_file:MyCell."""
    hidden: int = Field(default=256, ge=1)
    """Width of a recurrent encoder's states."""
    direction: Direction = "both"
    """In which order a recurrent encoder reads: forward, backward, or both, each in half the width."""
    pooling: Pooling = "attention"
    """How the states of a text become one: by attention, their mean, their maximum, or the last one."""
    hops: int = Field(default=1, ge=1)
    """Queries of attention pooling; what each reads stands side by side."""
    word_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Whole words that training hides."""

    @model_validator(mode="after")
    def _only_what_is_read(self) -> Self:
        """A setting of the other encoder means nothing."""
        defaults = {name: field.default for name, field in type(self).model_fields.items()}
        recurrent = {"cell", "hidden", "direction"}
        others = set(StackConfig.model_fields) - {"d_model", "dropout"} if self.encoder == "recurrent" else recurrent
        others |= set() if self.pooling == "attention" else {"hops"}
        if unread := sorted(name for name in others if getattr(self, name) != defaults[name]):
            raise ValueError(f"{', '.join(unread)}: not read with this encoder and pooling. Leave it out")
        return self

    @model_validator(mode="after")
    def _halves(self) -> Self:
        if self.encoder == "recurrent" and self.direction == "both" and self.hidden % 2:
            raise ValueError(f'direction = "both" halves hidden, which must be even, not {self.hidden}')
        return self


class Classifier(nn.Module):
    """Encodes and classifies (see `transduce.models.protocols`).

    Raises:
        InputError: the columns are not text and a label.
    """

    Config = ClassifierConfig

    def __init__(self, config: ClassifierConfig, specs: Specs) -> None:
        super().__init__()
        if specs.source is None or specs.target.kind != "label":
            raise InputError('[model] kind = "classifier": expected a task with a text and a label; got another one.')
        self.source_embedding = Embedding(specs.source.size, config.d_model)
        self.word_dropout = config.word_dropout
        self.dropout = Dropout(config.dropout)
        self.encoder = (
            _recurrent(config) if config.encoder == "recurrent" else Stack(config, config.layers, side="encoder")
        )
        width = config.hidden if config.encoder == "recurrent" else config.d_model
        self.pooling = config.pooling
        attends = config.pooling == "attention"
        self.key = nn.Linear(width, width, bias=False) if attends else None
        self.pool = AttentionPooling("dot", "softmax", width, config.hops, "decoder") if attends else None
        if self.pool is not None:
            self.pool.role = "cross"  # it reads the text for the label
        self.output = nn.Linear(width * (config.hops if attends else 1), specs.target.size)

    def encode(self, source: Padded) -> Padded:
        """Ids (B, S) -> states (B, S, H)."""
        embedded_BSD: Tensor = self.source_embedding(source.values)
        if self.training and self.word_dropout:
            kept_BS1 = torch.rand(*source.values.shape, 1, device=embedded_BSD.device) >= self.word_dropout
            embedded_BSD = embedded_BSD * kept_BS1
        if isinstance(self.encoder, Stack):
            return Padded(self.encoder.encode(embedded_BSD, source.mask()), source.lengths)
        states_BSH, _ = self.encoder(self.dropout(embedded_BSD), source.lengths)
        return Padded(states_BSH, source.lengths)

    def classify(self, inputs: Padded) -> Tensor:
        """Logits (B, C)."""
        logits_BC: Tensor = self.output(self.dropout(self._pooled(self.encode(inputs))))
        return logits_BC

    def _pooled(self, states: Padded) -> Tensor:
        """(B, H), or with several hops (B, R H)."""
        states_BSH, real_BS1 = states.values, states.mask()[..., None]
        if self.pool is not None and self.key is not None:
            words = Padded(states_BSH, (states.lengths - 1).clamp(min=1))
            read_BRH: Tensor = self.pool(states_BSH, words.mask(), self.key(states_BSH).tanh())
            return read_BRH.flatten(1)
        if self.pooling == "mean":
            return (states_BSH * real_BS1).sum(1) / states.lengths[:, None]
        if self.pooling == "max":
            return states_BSH.masked_fill(~real_BS1, -torch.inf).amax(1)
        return states_BSH[torch.arange(len(states_BSH)), states.lengths - 1]


def _recurrent(config: ClassifierConfig) -> RecurrentEncoder:
    sizes = config.d_model, config.hidden, config.layers
    return RecurrentEncoder(config.cell, *sizes, residual=False, dropout=config.dropout, direction=config.direction)
