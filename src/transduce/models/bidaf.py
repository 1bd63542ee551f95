"""Bidirectional attention flow (Seo et al. 2017): where in a text the answer to a question stands.

    c = LSTM(embed(text)),  q = LSTM(embed(question)),  g = flow(c, q)
    m = LSTM(g),  start_t = w_1 . [g_t; m_t],  end_t = w_2 . [g_t; LSTM(m)_t]

The last position of a text is its end token, which says that the text holds no answer.

Shapes: B batch, S positions of the text, Q positions of the question, D width of embeddings, H width of states.
"""

from typing import Literal

import torch
from pydantic import Field, field_validator
from torch import Tensor, nn

from transduce.attention.dropout import Dropout
from transduce.core.config import Config
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.data.columns.question_context import Passage, check_passage
from transduce.layers.attention_flow import AttentionFlow, SpanPointer
from transduce.layers.embedding import Embedding
from transduce.layers.recurrent_stack import RecurrentEncoder
from transduce.layers.shared_ngrams import shared_ngrams, with_shared
from transduce.layers.word_embedding import WordEmbedding


class BidafConfig(Config):
    """The sizes."""

    kind: Literal["bidaf"] = "bidaf"
    d_model: int = Field(default=100, ge=1)
    """Width of a token's embedding."""
    character_width: int = Field(default=16, ge=1)
    """Width of a character's embedding."""
    character_filters: int = Field(default=100, ge=0)
    """Filters over the characters of a token; 0 = tokens alone."""
    character_kernel: int = Field(default=5, ge=1)
    """How many characters a filter sees; an odd number."""
    shared_ngrams: int = Field(default=0, ge=0)
    """Tell each token whether it is part of an n-gram that text and question share, for n up to this; 0 = do not."""
    cell: str = "lstm"
    """Of what reads: a cell of transduce.layers.recurrent, or your own as my_file:MyCell."""
    hidden: int = Field(default=200, ge=2, multiple_of=2)
    """Width of the states, both directions together."""
    modeling_layers: int = Field(default=2, ge=1)
    """Recurrent layers behind the attention."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Of embeddings, and in front of every layer."""

    @field_validator("character_kernel")
    @classmethod
    def _is_odd(cls, kernel: int) -> int:
        if kernel % 2 == 0:
            raise ValueError(f"expected an odd number, which has a middle; got {kernel}")
        return kernel


class Bidaf(nn.Module):
    """Points into a text (see `transduce.models.protocols`).

    Raises:
        InputError: the columns are not questions with texts, and spans.
    """

    Config = BidafConfig

    def __init__(self, config: BidafConfig, specs: Specs) -> None:
        super().__init__()
        source = check_passage(specs.source, specs.target, "bidaf")
        self.source_embedding = Embedding(source.size, config.d_model)
        characters = config.character_width, config.character_filters, config.character_kernel
        self.embed = WordEmbedding(self.source_embedding, source.characters, *characters, config.dropout)
        self.orders = config.shared_ngrams
        self.encoder = _recurrent(config, self.embed.width + self.orders, 1)
        self.flow = AttentionFlow(config.hidden, "max")
        self.modeling = _recurrent(config, 4 * config.hidden, config.modeling_layers)
        self.ending = _recurrent(config, config.hidden, 1)
        self.pointer = SpanPointer(5 * config.hidden)
        self.dropout = Dropout(config.dropout)

    def point(self, inputs: Passage) -> tuple[Tensor, Tensor]:
        """Logits (B, S) of the first and the last token."""
        shared_BSN, shared_BQN = shared_ngrams(inputs, self.orders) if self.orders else (None, None)
        context_BSH = self._read(inputs.context, inputs.context_characters, shared_BSN)
        question_BQH = self._read(inputs.question, inputs.question_characters, shared_BQN)
        flow_BSG = self.flow(context_BSH, question_BQH, inputs)
        lengths_B = inputs.context.lengths
        first_BSH = self.modeling.states(self.dropout(flow_BSG), lengths_B)
        last_BSH = self.ending.states(self.dropout(first_BSH), lengths_B)
        seen = (self.dropout(torch.cat((flow_BSG, each_BSH), -1)) for each_BSH in (first_BSH, last_BSH))
        return self.pointer(*seen, inputs)

    def _read(self, tokens: Padded, characters: Padded, shared_BTN: Tensor | None) -> Tensor:
        embedded_BTD = with_shared(self.embed(tokens, characters), shared_BTN)
        return self.encoder.states(embedded_BTD, tokens.lengths)


def _recurrent(config: BidafConfig, width: int, layers: int) -> RecurrentEncoder:
    return RecurrentEncoder(config.cell, width, config.hidden, layers, False, config.dropout, "both")
