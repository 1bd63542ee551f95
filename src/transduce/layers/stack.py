"""Blocks on top of each other, with positions below and the last norm above: an encoder or a decoder.

Shapes: B batch, T positions, S source positions, D model width, G heads of keys and values, E width of a head.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Literal, Protocol, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator
from torch import Tensor, nn

from transduce.attention import KeyValue, MultiHeadAttention, masks
from transduce.attention.capture import Role, Side
from transduce.attention.dropout import Dropout
from transduce.attention.positions import added_positions
from transduce.attention.relative import Relative
from transduce.attention.shared_kv_cache import Branch, Family, Shared, Store
from transduce.attention.sparse import Pattern, causal_mask
from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.core.registry import known, resolve, suggest
from transduce.layers.block import Block
from transduce.layers.embedding import Embedding
from transduce.layers.feedforward import Activation, FeedForward
from transduce.layers.fused_search import FusedSearch
from transduce.layers.norms import NoNorm, NormKind, make_norm
from transduce.layers.residual import NormPlacement, Residual

# Per block, keys and values (B, G, T, E) of the positions so far, or of a source; or what hypotheses share of them.
State = tuple[KeyValue, ...] | tuple[Branch, ...]
Sources = tuple[KeyValue, ...] | tuple[Shared, ...]

ADDED = ("none", "sinusoidal", "learned")  # positions that are added to the embeddings; all others are relative


class FusedStack(Protocol):
    """What may compute in a stack's place, where nobody can tell but by the time (see `transduce.fused.stack`)."""

    def encode(self, stack: "Stack", embedded_BSD: Tensor, real_BS: Tensor) -> Tensor | None:
        """As `Stack.encode`; None where the stack must do it itself."""
        ...

    def step(
        self, stack: "Stack", embedded_B1D: Tensor, past: State | None, sources: Sources | None
    ) -> tuple[Tensor, State] | None:
        """As `Stack.extend_causally` with one token; None where the stack must do it itself."""
        ...

    def search(
        self, stack: "Stack", embedding: Embedding, output: Embedding, sources: Sources, longest: int
    ) -> FusedSearch | None:
        """What searches outputs of up to `longest` tokens by itself; None where it must go step by step.

        embedding, output: what tokens enter by, and what tells the next.
        """
        ...


class StackConfig(Config):
    """Sizes and parts that encoders and decoders share. The defaults suit tens of thousands of sentence pairs."""

    d_model: int = Field(default=256, ge=2)
    """Width of every position's vector."""
    heads: int = Field(default=4, ge=1)
    """Attention heads; must divide d_model."""
    key_value_heads: int | None = Field(default=None, ge=1)
    """Heads of keys and values, a divisor of heads: 1 is multi-query attention, more are grouped; unset: as heads."""
    feed_forward: int = Field(default=1024, ge=1)
    """Hidden width of the feed-forward layer."""
    activation: Activation = "relu"
    """Of the feed-forward layer: relu, gelu, squared_relu, or gated: glu, geglu, swiglu."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """On embeddings and on the output of each sub-layer."""
    inner_dropout: float = Field(default=0.0, ge=0, lt=1)
    """On attention weights and inside the feed-forward."""
    norm: NormPlacement = "pre"
    """Norm on the way into each sub-layer (pre) or after its residual (post)."""
    norm_kind: NormKind = "layer"
    """Which norm: layer, rms, or batch, which in training lets a decoder's positions feel the future."""
    zero_init: bool = False
    """Last matrices of attention and feed-forward begin at zero: each block begins as what passes its input on."""
    score: str = "scaled_dot"
    """How well a key answers a query: a score of transduce.attention.scores, or your own as my_file:MyScore."""
    weighing: str = "softmax"
    """From scores to weights: a weighing of transduce.attention.normalizers, or your own as my_file:MyWeighing."""
    positions: str = "sinusoidal"
    """Where a token stands: none, sinusoidal, learned; by distance rotary, alibi, shaw, t5, or my_file:MyPositions."""
    max_length: int = Field(default=1024, ge=1)
    """How many positions learned positions reach."""
    pattern: Pattern = "full"
    """Of what is before it a decoder's position sees: full, or sparsely local, strided, fixed (Child et al. 2019)."""
    stride: int = Field(default=64, ge=2)
    """Block length of a sparse pattern."""

    @model_validator(mode="after")
    def _widths_divide(self) -> Self:
        if self.d_model % self.heads:
            raise ValueError(f"d_model ({self.d_model}) must be a multiple of heads ({self.heads})")
        if self.heads % (self.key_value_heads or self.heads):
            raise ValueError(f"heads ({self.heads}) must be a multiple of key_value_heads ({self.key_value_heads})")
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"sinusoidal positions need an even d_model, not {self.d_model}")
        if self.positions == "rotary" and self.d_model // self.heads % 2:
            raise ValueError(f"rotary positions need an even width per head, not {self.d_model // self.heads}")
        return self

    @field_validator("score")
    @classmethod
    def _score_of_all_queries_at_once(cls, name: str) -> str:
        return _at_once("attention.scores", name)

    @field_validator("weighing")
    @classmethod
    def _weighing_of_all_queries_at_once(cls, name: str) -> str:
        return _at_once("attention.normalizers", name)

    @field_validator("positions")
    @classmethod
    def _positions_there_are(cls, name: str) -> str:
        names = ADDED + known("attention.relative")
        if ":" not in name and name not in names:
            raise ValueError(f'there is no "{name}".{suggest(name, names)} Known: {", ".join(names)}')
        return name


class NoncausalStackConfig(StackConfig):
    """`StackConfig` of models without causal self-attention, which alone a pattern thins out."""

    pattern: Literal["full"] = "full"
    stride: Literal[64] = 64

    @field_validator("pattern", "stride", mode="before")
    @classmethod
    def _nothing_to_thin_out(cls, value: Any, info: ValidationInfo) -> Any:
        if value != cls.model_fields[str(info.field_name)].default:
            raise ValueError("thins out causal self-attention, which this kind of model does not have: leave it out")
        return value


def _at_once(room: str, name: str) -> str:
    """`name`, if its class can serve all queries of a sentence at the same time.

    Raises:
        ValueError: there is no such name, or it needs the weights of the query before.
    """
    try:
        sequential = resolve(room, name).sequential
    except InputError as error:
        raise ValueError(str(error)) from None
    if sequential:
        raise ValueError(
            f'"{name}" needs the weights of the query before each query, and a Transformer computes all queries at '
            'once: it is for decoders that go word by word (kind = "rnn")'
        )
    return name


class Stack(nn.Module):
    """`layers` equal blocks.

    Args:
        config: sizes and parts.
        layers: number of blocks.
        cross: the blocks also attend to an encoder.
        causal: it will be asked through `extend_causally` alone, so that relative positions need not tell what is
            ahead.
        side: of a model, for whoever looks at its attention; see `transduce.attention.capture`.
    """

    def __init__(
        self, config: StackConfig, layers: int, cross: bool = False, causal: bool = False, side: Side = "other"
    ) -> None:
        super().__init__()
        self.pattern, self.stride = config.pattern, config.stride
        self.positions = added_positions(config.positions, config.d_model, config.max_length)
        self.dropout = Dropout(config.dropout)
        blocks = [_block(config, relative, cross, side) for relative in _relative_positions(config, layers, causal)]
        self.blocks: Iterable[Block] = nn.ModuleList(blocks)  # type: ignore[assignment]
        self.fused: FusedStack | None = None  # `transduce.fused.pack` attaches one
        # Pre-norm leaves the residual stream unnormed at the top, so it gets one more norm there.
        self.norm = (
            make_norm(config.norm_kind, config.d_model, only_multiplied=True) if config.norm == "pre" else NoNorm()
        )

    def forward(self, embedded_BTD: Tensor, allowed: Tensor | None, real_BT: Tensor | None = None) -> Tensor:
        """All positions at once, no cross-attention: (B, T, D) -> (B, T, D)."""
        return self.extend(embedded_BTD, None, None, None, allowed, real_BT)[0]

    def encode(self, embedded_BSD: Tensor, real_BS: Tensor) -> Tensor:
        """Sources (B, S, D) -> (B, S, D), each real position seeing all real ones of its source; they stand first."""
        if self.fused and (encoded_BSD := self.fused.encode(self, embedded_BSD, real_BS)) is not None:
            return encoded_BSD
        return self(embedded_BSD, masks.padding(real_BS), real_BS)

    def extend(
        self,
        embedded_BTD: Tensor,
        past: State | None,
        sources: Sources | None = None,
        source_allowed: Tensor | None = None,
        allowed: Tensor | None = None,
        real_BT: Tensor | None = None,
    ) -> tuple[Tensor, State]:
        """T more positions after those in `past`: their outputs (B, T, D), and the state after them.

        Args:
            past: None = these are the first.
            sources: what `keys_values` made of the encoder's states.
            source_allowed: which source positions are real, (B, 1, 1, S).
            allowed: who of the T may see whom, True = may; None = all see all.
            real_BT: which of the T are real, for norms that look at others; None = all.
        """
        x_BTD = self.dropout(self.positions(embedded_BTD, past[0].length if past else 0))
        seen = []
        for layer, block in enumerate(self.blocks):
            before = past[layer] if past else None
            source = sources[layer] if sources else None
            x_BTD, keys_values = block(x_BTD, allowed, before, source, source_allowed, real_BT)
            seen.append(keys_values)
        return self.norm(x_BTD, real_BT), tuple(seen)

    def extend_causally(
        self,
        embedded_BTD: Tensor,
        past: State | None,
        sources: Sources | None = None,
        source_allowed: Tensor | None = None,
        real_BT: Tensor | None = None,
    ) -> tuple[Tensor, State]:
        """`extend` where each position sees itself and, of what came before it, what the pattern lets it."""
        count, offset = embedded_BTD.shape[1], past[0].length if past else 0
        if self.fused and count == 1 and (stepped := self.fused.step(self, embedded_BTD, past, sources)):
            return stepped
        sees_all = count == 1 and self.pattern == "full"
        allowed = None if sees_all else causal_mask(self.pattern, self.stride, count, offset, embedded_BTD.device)
        return self.extend(embedded_BTD, past, sources, source_allowed, allowed, real_BT)

    def keys_values(self, encoded_BSD: Tensor) -> tuple[KeyValue, ...]:
        """The encoder's states as each block's cross-attention sees them."""
        return tuple(block.cross_keys_values(encoded_BSD) for block in self.blocks)

    def shared(self, sources: tuple[KeyValue, ...], allowed_B11S: Tensor) -> tuple[Shared, ...] | None:
        """`sources`, of which `allowed_B11S` are real, for hypotheses to share; None where an attention cannot."""
        return shared_sources([block.cross_attention for block in self.blocks], sources, allowed_B11S)

    def empty(self, rows: int) -> tuple[KeyValue, ...]:
        """The state before the first position."""
        return tuple(block.self_attention.empty(rows) for block in self.blocks)

    def begin(self, rows: int) -> State:
        """The same for what goes on token by token; hypotheses share it where all attention can."""
        nothing = self.empty(rows)
        if self.pattern != "full" or not all(block.self_attention.can_share for block in self.blocks):
            return nothing
        family = Family.founded(rows, nothing[0].key.device)
        return tuple(Branch(Store(each, 0), family) for each in nothing)


def shared_sources(
    attentions: Sequence[MultiHeadAttention | None], sources: tuple[KeyValue, ...], allowed_B11S: Tensor
) -> tuple[Shared, ...] | None:
    """See `Stack.shared`; attentions: those of the blocks that look at them."""
    if not all(attention and attention.can_share for attention in attentions):
        return None
    family = Family.founded(len(allowed_B11S), allowed_B11S.device)
    laid_out = (KeyValue(source.key.contiguous(), source.value.contiguous()) for source in sources)
    return tuple(Shared(source, allowed_B11S, family) for source in laid_out)


def attention_of(config: StackConfig, role: Role, side: Side, positions: Relative | None = None) -> MultiHeadAttention:
    """The attention that a stack's blocks are built of, new."""
    return MultiHeadAttention(
        config.d_model,
        config.heads,
        config.inner_dropout,
        config.score,
        config.weighing,
        positions=positions,
        key_value_heads=config.key_value_heads,
        zero_init=config.zero_init,
        role=role,
        side=side,
    )


def feed_forward_of(config: StackConfig) -> FeedForward:
    """The feed-forward layer of a stack's blocks, new."""
    return FeedForward(
        config.d_model, config.feed_forward, config.inner_dropout, config.activation, zero_init=config.zero_init
    )


def _block(config: StackConfig, relative: Relative | None, cross: bool, side: Side) -> Block:
    return Block(
        self_attention=attention_of(config, "self", side, relative),
        cross_attention=attention_of(config, "cross", side) if cross else None,
        feed_forward=feed_forward_of(config),
        residual=partial(Residual, config.d_model, config.dropout, config.norm, config.norm_kind),
    )


def _relative_positions(config: StackConfig, layers: int, causal: bool) -> list[Relative] | list[None]:
    """Those that self-attention sees: one a block, or one for all blocks where the kind is shared."""
    if config.positions in ADDED:
        return [None] * layers
    kind = resolve("attention.relative", config.positions)
    make = partial(kind, config.heads, config.d_model // config.heads, causal)
    return [make()] * layers if kind.shared else [make() for _ in range(layers)]
