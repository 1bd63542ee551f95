"""QANet (Yu et al. 2018): convolutions and self-attention in the place of recurrence, with attention flow between.

    block(x) = x + position;  n times x + conv(norm(x));  x + attention(norm(x));  x + feed-forward(norm(x))
    c = block(embed(text)),  q = block(embed(question)),  g = flow(c, q)
    m_0 = blocks(W g),  m_1 = blocks(m_0),  m_2 = blocks(m_1)      the same blocks three times
    start_t = w_1 . [m_0; m_1]_t,  end_t = w_2 . [m_0; m_2]_t

A convolution is depthwise separable: each feature by itself over the neighbours, then a product over the features. In
training, sublayer l of L is left out with probability layer_dropout l / L (Huang et al. 2016).

The last position of a text is its end token, which says that the text holds no answer.

Shapes: B batch, T positions, S positions of the text, Q positions of the question, D width.
"""

from collections.abc import Callable, Iterable
from typing import Literal

import torch
from pydantic import Field, field_validator, model_validator
from torch import Tensor, nn

from transduce.attention.dropout import Dropout
from transduce.attention.heads import MultiHeadAttention
from transduce.attention.masks import padding
from transduce.attention.positions import sinusoidal
from transduce.core.config import Config
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.data.columns.question_context import Passage, check_passage
from transduce.layers.attention_flow import AttentionFlow, SpanPointer
from transduce.layers.embedding import Embedding
from transduce.layers.norms import LayerNorm
from transduce.layers.recomputation import Recomputable, recomputable
from transduce.layers.shared_ngrams import shared_ngrams, with_shared
from transduce.layers.word_embedding import WordEmbedding


class QanetConfig(Config):
    """The sizes."""

    kind: Literal["qanet"] = "qanet"
    d_model: int = Field(default=128, ge=2, multiple_of=2)
    """Width of the blocks, and of a token's embedding."""
    character_width: int = Field(default=64, ge=1)
    """Width of a character's embedding."""
    character_filters: int = Field(default=128, ge=0)
    """Filters over the characters of a token; 0 = tokens alone."""
    character_kernel: int = Field(default=5, ge=1)
    """How many characters a filter sees; an odd number."""
    shared_ngrams: int = Field(default=0, ge=0)
    """Tell each token whether it is part of an n-gram that text and question share, for n up to this; 0 = do not."""
    heads: int = Field(default=8, ge=1)
    """Of self-attention."""
    encoder_convolutions: int = Field(default=4, ge=0)
    """Convolutions in the block that reads text and question."""
    encoder_kernel: int = Field(default=7, ge=1)
    """How many tokens they see; an odd number."""
    blocks: int = Field(default=7, ge=1)
    """Blocks behind the attention between text and question; they are gone through three times."""
    convolutions: int = Field(default=2, ge=0)
    """Convolutions in each of these."""
    kernel: int = Field(default=5, ge=1)
    """How many tokens they see; an odd number."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Of embeddings and sublayers."""
    inner_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Of attention weights. 0 lets training use kernels that keep no weights: several times as fast for long texts."""
    layer_dropout: float = Field(default=0.1, ge=0, lt=1)
    """How often training leaves the last sublayer of a block out; those before it less often."""

    @field_validator("character_kernel", "encoder_kernel", "kernel")
    @classmethod
    def _is_odd(cls, kernel: int) -> int:
        if kernel % 2 == 0:
            raise ValueError(f"expected an odd number, which has a middle; got {kernel}")
        return kernel

    @model_validator(mode="after")
    def _heads_fit(self) -> "QanetConfig":
        if self.d_model % self.heads:
            raise ValueError(f"heads must divide d_model: {self.heads} does not divide {self.d_model}")
        return self


class SeparableConvolution(nn.Module):
    """relu(W (k_d * x_d for each feature d) + b), with padding as zeros."""

    def __init__(self, width: int, kernel: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width, bias=False)
        self.pointwise = nn.Linear(width, width)

    def forward(self, x_BTD: Tensor, real_BT: Tensor) -> Tensor:
        """(B, T, D)."""
        kept_BTD = x_BTD * real_BT[..., None]
        seen_BTD = self.depthwise(kept_BTD.transpose(1, 2)).transpose(1, 2)
        return self.pointwise(seen_BTD).relu()


class QanetBlock(Recomputable):
    """Convolutions, self-attention and feed-forward, each behind a norm and beside a residual connection."""

    def __init__(self, config: QanetConfig, convolutions: int, kernel: int) -> None:
        super().__init__()
        width, self.rate = config.d_model, config.layer_dropout
        self.convolutions: Iterable[SeparableConvolution] = nn.ModuleList(  # type: ignore[assignment]
            SeparableConvolution(width, kernel) for _ in range(convolutions)
        )
        self.attention = MultiHeadAttention(width, config.heads, config.inner_dropout, role="self", side="encoder")
        self.feed_forward = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))
        self.norms = nn.ModuleList(LayerNorm(width) for _ in range(convolutions + 2))
        self.dropout = Dropout(config.dropout)

    @recomputable
    def forward(self, x_BTD: Tensor, real_BT: Tensor) -> Tensor:
        """(B, T, D)."""
        x_BTD = x_BTD + sinusoidal(x_BTD.shape[1], x_BTD.shape[2], device=x_BTD.device)
        convolved = [lambda x, each=each: each(x, real_BT) for each in self.convolutions]
        allowed = padding(real_BT)
        sublayers: list[Callable[[Tensor], Tensor]] = [
            *convolved,
            lambda x: self.attention(x, self.attention.keys_values(x), allowed),
            self.feed_forward,
        ]
        for number, (norm, sublayer) in enumerate(zip(self.norms, sublayers, strict=True), 1):
            if self.training and self.rate and float(torch.rand(())) < self.rate * number / len(sublayers):
                continue
            x_BTD = x_BTD + self.dropout(sublayer(norm(x_BTD)))
        return x_BTD


class Qanet(nn.Module):
    """Points into a text (see `transduce.models.protocols`).

    Raises:
        InputError: the columns are not questions with texts, and spans.
    """

    Config = QanetConfig

    def __init__(self, config: QanetConfig, specs: Specs) -> None:
        super().__init__()
        source = check_passage(specs.source, specs.target, "qanet")
        width = config.d_model
        self.source_embedding = Embedding(source.size, width)
        characters = config.character_width, config.character_filters, config.character_kernel
        self.embed = WordEmbedding(self.source_embedding, source.characters, *characters, config.dropout)
        self.orders = config.shared_ngrams
        self.narrow = nn.Linear(self.embed.width + self.orders, width)
        self.encoder = QanetBlock(config, config.encoder_convolutions, config.encoder_kernel)
        self.flow = AttentionFlow(width, "each")
        self.join = nn.Linear(4 * width, width)
        self.blocks: Iterable[QanetBlock] = nn.ModuleList(  # type: ignore[assignment]
            QanetBlock(config, config.convolutions, config.kernel) for _ in range(config.blocks)
        )
        self.pointer = SpanPointer(2 * width)
        self.dropout = Dropout(config.dropout)

    def point(self, inputs: Passage) -> tuple[Tensor, Tensor]:
        """Logits (B, S) of the first and the last token."""
        shared_BSN, shared_BQN = shared_ngrams(inputs, self.orders) if self.orders else (None, None)
        context_BSD = self._read(inputs.context, inputs.context_characters, shared_BSN)
        question_BQD = self._read(inputs.question, inputs.question_characters, shared_BQN)
        state_BSD: Tensor = self.join(self.flow(context_BSD, question_BQD, inputs))
        real_BS, passes = inputs.context.mask(), []
        for _ in range(3):
            for block in self.blocks:
                state_BSD = block(state_BSD, real_BS)
            passes.append(state_BSD)
            state_BSD = self.dropout(state_BSD)
        seen = (torch.cat((passes[0], each_BSD), -1) for each_BSD in passes[1:])
        return self.pointer(*seen, inputs)

    def _read(self, tokens: Padded, characters: Padded, shared_BTN: Tensor | None) -> Tensor:
        embedded_BTD = with_shared(self.embed(tokens, characters), shared_BTN)
        return self.encoder(self.narrow(embedded_BTD), tokens.mask())
