"""Recurrent decoders, which differ in how they use the source.

    NoAttention   s_t = cell([e_t; u], s_{t-1}),   r_t = readout([s_t; e_t; u])
    Bahdanau      c_t = read(s_{t-1}),   s_t = cell([e_t; c_t], s_{t-1}),   r_t = readout([s_t; e_t; c_t])
    Luong         s_t = cell([e_t; r_{t-1}], s_{t-1}),   c_t = read(s_t),   r_t = readout([c_t; s_t])

e_t is the embedding of the token at t, where the first one is the start token. u is the encoder's last state or, with
pooling, the result of learned queries over all its states (Lin et al. 2017). c_t is the context that attention reads.
r_t is the vector from which the next token is predicted.

A matrix times a concatenation is the sum of two products. The product with the embeddings, which are known in training,
is computed for all positions at once.

Shapes: B batch, T target positions, S source positions, D width of the embeddings and of r, H width of the states,
U width of u (H, or H per query), G = gates times H, A attention heads in (B, A, T, S), P = H times all parts of all
layers.
"""

from typing import ClassVar, Literal, NamedTuple, Self

import torch
from pydantic import Field, ValidationInfo, field_validator, model_validator
from torch import Tensor, nn

from transduce.attention import masks
from transduce.attention.cache import KeyValue
from transduce.attention.cross_attention import CrossAttention
from transduce.attention.dropout import Dropout
from transduce.attention.pooling import AttentionPooling
from transduce.core.config import Config
from transduce.core.registry import check
from transduce.kernels.matmul import Linear
from transduce.layers.recurrent_stack import RecurrentStack, StackParts, StackState


class DecoderConfig(Config):
    """The settings of a recurrent decoder. The defaults are a small Bahdanau et al. 2015 with tied output."""

    cell: str = "gru"
    """lstm, gru, tanh, lstmn (attends to its own past), ntm (an LSTM with an external memory), or your own (see
    `transduce.layers.recurrent`)."""
    d_model: int = Field(default=256, ge=1)
    """Width of the embeddings, and of the vector from which the next token is predicted."""
    hidden: int = Field(default=512, ge=1)
    """Width of the states. For a bidirectional encoder, the width of both directions together."""
    decoder_layers: int = Field(default=1, ge=1)
    """Number of decoder layers."""
    residual: bool = False
    """Add each layer's input to its output, from the second layer on."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout rate on embeddings, between layers, on encoder states and on the vector that predicts the next token."""
    bridge: Literal["tanh", "copy"] = "tanh"
    """Initial state. tanh: tanh(W u), u the encoder's last state. copy: the last state of each encoder layer."""
    pooling: int = Field(default=0, ge=0)
    """0: u is the encoder's last state. n > 0: u is read from all states by n learned queries (attention pooling)."""
    attention: Literal["none", "bahdanau", "luong"] = "bahdanau"
    """none: the decoder only sees u. bahdanau: attention before each step, as its input. luong: attention after it."""
    feeding: bool = True
    """With none: u is an input of every step. With luong: input feeding of the previous step's attentional vector."""
    score: str = "additive"
    """Attention score: dot, scaled_dot, cosine, bilinear, additive, location_aware, or your own as my_file:MyScore."""
    normalizer: str = "softmax"
    """Normalizer, from scores to weights: a name in `transduce.attention.normalizers`, or your own class."""
    heads: int = Field(default=1, ge=1)
    """Number of attention heads; must divide hidden."""
    readout: Literal["tanh", "maxout"] = "tanh"
    """Layer between the states and the output. tanh: tanh(W x). maxout: the maximum of each pair of elements of W x."""

    _rooms: ClassVar = {"cell": "layers.recurrent", "score": "attention.scores", "normalizer": "attention.normalizers"}

    @field_validator("cell", "score", "normalizer")
    @classmethod
    def _known(cls, name: str, info: ValidationInfo) -> str:
        return check(cls._rooms[str(info.field_name)], name)

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if self.hidden % self.heads:
            raise ValueError(f"hidden ({self.hidden}) must be a multiple of heads ({self.heads})")
        if self.attention == "bahdanau" and not self.feeding:
            raise ValueError('feeding cannot be off with attention = "bahdanau": its context enters every step')
        if self.pooling and self.bridge == "copy":
            raise ValueError(
                f'pooling = {self.pooling} computes u, but bridge = "copy" starts the decoder without it: choose "tanh"'
            )
        return self

    @property
    def vector_width(self) -> int:
        """U."""
        return self.hidden * max(self.pooling, 1)


class RecurrentMemory(NamedTuple):
    """The source, as a decoder uses it.

    vector: u, (B, U).
    keys_values: what attention reads; None without attention.
    allowed: (B, 1, 1, S) bool, True = a real position; None without attention.
    """

    vector: Tensor
    keys_values: KeyValue | None
    allowed: Tensor | None


class RecurrentState(NamedTuple):
    """The state of a hypothesis.

    cells: the state of every layer.
    position: (B,) int64, the number of tokens read so far.
    fed: (B, 1, D), r of the previous step, with Luong's input feeding.
    alpha: (B, A, 1, S), the weights of the previous step, for sequential attention; None before the first step.
    """

    cells: StackState
    position: Tensor
    fed: Tensor | None = None
    alpha: Tensor | None = None


class Bridge(nn.Module):
    """The initial decoder state tanh(W u + b), with one matrix for each of its parts (Bahdanau et al. 2015, A.2.2).

    Args:
        vector_width: U.
        width: H.
        layers: number of decoder layers.
        parts: number of parts of each layer's state.
    """

    def __init__(self, vector_width: int, width: int, layers: int, parts: int) -> None:
        super().__init__()
        self.width, self.layers = width, layers
        self.linear = Linear(vector_width, width * layers * parts)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, vector_BU: Tensor) -> StackParts:
        """u (B, U) -> the parts of each layer's state, each (B, H)."""
        start_BP = self.linear(vector_BU).tanh().to(self.linear.weight.dtype)
        return tuple(layer_BP.split(self.width, -1) for layer_BP in start_BP.chunk(self.layers, -1))


class Readout(nn.Module):
    """The vector from which the next token is predicted: r = tanh(W x + b), or max(W x + b, W' x + b').

    x is the concatenation of several vectors. r has the width of an embedding, so that the output can be tied. tanh is
    the attentional state of Luong et al. 2015, equation 5. Maxout (Goodfellow et al. 2013) is the deep output of
    Bahdanau et al. 2015, A.2.2.
    """

    def __init__(self, given_width: int, width: int, kind: Literal["tanh", "maxout"], dropout: float) -> None:
        super().__init__()
        self.maxout = kind == "maxout"
        self.linear = Linear(given_width, 2 * width if self.maxout else width)
        nn.init.xavier_uniform_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)
        self.dropout = Dropout(dropout)

    def forward(self, *given: Tensor) -> Tensor:
        """Vectors (.., any width) -> (.., D)."""
        x = self.linear(torch.cat(given, -1))
        return self.dropout(x.unflatten(-1, (-1, 2)).amax(-1) if self.maxout else x.tanh())


class RecurrentDecoder(nn.Module):
    """Base class of the three decoders: a stack of cells, their initial state, and a readout.

    Args:
        config: the settings.
        given_width: width of the readout's input.
        fed_width: width of the first cell's input besides the embedding; 0 = none.
    """

    def __init__(self, config: DecoderConfig, given_width: int, fed_width: int) -> None:
        super().__init__()
        width, layers = config.hidden, config.decoder_layers
        self.stack = RecurrentStack(config.cell, config.d_model, width, layers, config.residual, config.dropout)
        self.pool = None
        if config.pooling:
            self.pool = AttentionPooling(config.score, config.normalizer, width, config.pooling, side="encoder")
        vector_width, parts = config.vector_width, self.stack.parts
        self.bridge = Bridge(vector_width, width, layers, parts) if config.bridge == "tanh" else None
        self.feed = Linear(fed_width, self.stack.gates_width, bias=False) if fed_width else None
        self.readout = Readout(given_width, config.d_model, config.readout, config.dropout)

    def start(self, states_BSH: Tensor, real_BS: Tensor, last: StackParts) -> tuple[RecurrentMemory, RecurrentState]:
        """The source as this decoder uses it, and the state before the first token.

        Args:
            states_BSH: the encoder's states.
            real_BS: bool, True = a real position.
            last: the encoder's states after the last word, by layer.
        """
        position_B = torch.zeros(len(states_BSH), dtype=torch.int64, device=states_BSH.device)
        vector_BU = self.pool(states_BSH, real_BS).flatten(1) if self.pool else last[-1][0]
        cells = self.stack.begin(self.bridge(vector_BU) if self.bridge else last)
        return self.remember(states_BSH, real_BS, vector_BU), RecurrentState(cells, position_B)

    def remember(self, states_BSH: Tensor, real_BS: Tensor, vector_BU: Tensor) -> RecurrentMemory:
        """The source as this decoder uses it."""
        raise NotImplementedError

    def extend(
        self, embedded_BTD: Tensor, memory: RecurrentMemory, state: RecurrentState
    ) -> tuple[Tensor, RecurrentState]:
        """The readouts r (B, T, D) of T tokens after `state`, which predict the next tokens, and the new state."""
        raise NotImplementedError


class NoAttention(RecurrentDecoder):
    """A decoder without attention, which sees the source as a vector u of fixed width.

    Without feeding, u only gives the initial state (Sutskever et al. 2014). With feeding, u is also an input of every
    step and every readout, beside the token (Cho et al. 2014, section 2.2).
    """

    def __init__(self, config: DecoderConfig) -> None:
        u, e = (config.vector_width, config.d_model) if config.feeding else (0, 0)
        super().__init__(config, config.hidden + e + u, u)

    def remember(self, states_BSH: Tensor, real_BS: Tensor, vector_BU: Tensor) -> RecurrentMemory:
        """u."""
        return RecurrentMemory(vector_BU, None, None)

    def extend(
        self, embedded_BTD: Tensor, memory: RecurrentMemory, state: RecurrentState
    ) -> tuple[Tensor, RecurrentState]:
        """(B, T, D), all positions at once within each layer."""
        projected_BTG = self.stack.project(embedded_BTD)
        if self.feed:
            projected_BTG = projected_BTG + self.feed(memory.vector)[:, None]
        top_BTH, cells = self.stack.extend(projected_BTG, state.cells)
        after = RecurrentState(cells, state.position + embedded_BTD.shape[1])
        if not self.feed:
            return self.readout(top_BTH), after
        vector_BTU = memory.vector[:, None].expand(-1, top_BTH.shape[1], -1)
        return self.readout(top_BTH, embedded_BTD, vector_BTU), after


class Attentive(RecurrentDecoder):
    """Base class of the two decoders with attention."""

    def __init__(self, config: DecoderConfig, given_width: int, fed_width: int) -> None:
        super().__init__(config, given_width, fed_width)
        self.reader = CrossAttention(config.score, config.normalizer, config.hidden, config.hidden, config.heads)
        self.memory_dropout = Dropout(config.dropout)

    def remember(self, states_BSH: Tensor, real_BS: Tensor, vector_BU: Tensor) -> RecurrentMemory:
        """The keys and values of the encoder's states, computed once for all steps."""
        keys_values = self.reader.remember(self.memory_dropout(states_BSH))
        return RecurrentMemory(vector_BU, keys_values, masks.padding(real_BS))

    def _read(self, query_BTH: Tensor, memory: RecurrentMemory, state: RecurrentState) -> tuple[Tensor, Tensor | None]:
        """The contexts (B, T, H), and the weights if the next step needs them."""
        assert memory.keys_values is not None
        position_BT = state.position[:, None] + torch.arange(query_BTH.shape[1], device=query_BTH.device)
        context_BTH, alpha_BATS = self.reader(query_BTH, memory.keys_values, memory.allowed, position_BT, state.alpha)
        return context_BTH, alpha_BATS if self.reader.sequential else None


class Bahdanau(Attentive):
    """Attention before the step: the query is the top layer's previous state (Bahdanau et al. 2015, A.1.2, A.2.2).

    The readout uses s_t, as in the paper's equation 4; the deep output in the paper's appendix uses s_{t-1}.
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__(config, 2 * config.hidden + config.d_model, config.hidden)

    def extend(
        self, embedded_BTD: Tensor, memory: RecurrentMemory, state: RecurrentState
    ) -> tuple[Tensor, RecurrentState]:
        """(B, T, D). The steps are computed one by one; what precedes and follows them, for all positions at once."""
        assert self.feed is not None
        tops, contexts = [], []
        for projected_B1G in self.stack.project(embedded_BTD).chunk(embedded_BTD.shape[1], 1):
            query_B1H = state.cells[-1][0][:, None]
            context_B1H, alpha = self._read(query_B1H, memory, state)
            top_B1H, cells = self.stack.extend(projected_B1G + self.feed(context_B1H), state.cells)
            state = RecurrentState(cells, state.position + 1, None, alpha)
            tops.append(top_B1H)
            contexts.append(context_B1H)
        return self.readout(torch.cat(tops, 1), embedded_BTD, torch.cat(contexts, 1)), state


class Luong(Attentive):
    """Attention after the step: the query is the top layer's new state (Luong et al. 2015, equation 5).

    With input feeding, r_{t-1} is an input of the next step beside its token (section 3.3), and steps are computed one
    by one. Without it, each layer processes all positions at once.
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__(config, 2 * config.hidden, config.d_model if config.feeding else 0)

    def start(self, states_BSH: Tensor, real_BS: Tensor, last: StackParts) -> tuple[RecurrentMemory, RecurrentState]:
        """See `RecurrentDecoder.start`; with input feeding, zeros are fed to the first step."""
        memory, state = super().start(states_BSH, real_BS, last)
        if self.feed:
            nothing_B1D = self.feed.weight.new_zeros(len(states_BSH), 1, self.feed.in_features)
            state = state._replace(fed=nothing_B1D)
        return memory, state

    def extend(
        self, embedded_BTD: Tensor, memory: RecurrentMemory, state: RecurrentState
    ) -> tuple[Tensor, RecurrentState]:
        """(B, T, D)."""
        projected_BTG = self.stack.project(embedded_BTD)
        if not (self.feed or self.reader.sequential):
            return self._advance(projected_BTG, memory, state)
        read = []
        for projected_B1G in projected_BTG.chunk(projected_BTG.shape[1], 1):
            read_B1D, state = self._advance(projected_B1G, memory, state)
            read.append(read_B1D)
        return torch.cat(read, 1), state

    def _advance(
        self, projected_BTG: Tensor, memory: RecurrentMemory, state: RecurrentState
    ) -> tuple[Tensor, RecurrentState]:
        if self.feed:
            projected_BTG = projected_BTG + self.feed(state.fed)
        top_BTH, cells = self.stack.extend(projected_BTG, state.cells)
        context_BTH, alpha = self._read(top_BTH, memory, state)
        read_BTD: Tensor = self.readout(context_BTH, top_BTH)
        position_B = state.position + projected_BTG.shape[1]
        return read_BTD, RecurrentState(cells, position_B, read_BTD if self.feed else None, alpha)
