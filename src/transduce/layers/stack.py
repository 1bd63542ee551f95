"""A stack of Transformer blocks, with positions before the first and a norm after the last: an encoder or a decoder.

Shapes: B batch, T positions, S source positions, D model width, G heads of keys and values, E width of a head.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any, Literal, Protocol, Self, TypeVar

from pydantic import Field, ValidationInfo, field_validator, model_validator
from torch import Tensor, nn

from transduce.attention import KeyValue, MultiHeadAttention, masks
from transduce.attention.blocked import LONG
from transduce.attention.capture import Role, Side
from transduce.attention.dropout import Dropout
from transduce.attention.interventions import active_interventions
from transduce.attention.positions import ENCODINGS, NoPositions, added_positions
from transduce.attention.relative import Relative, Rotary
from transduce.attention.rotary_scaling import RotaryScaling
from transduce.attention.shared_kv_cache import BeamTree, DecoderCache, EncoderCache, KeyValueStore
from transduce.attention.sparse import Allowed, CausalPattern, Pattern, causal_mask
from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.core.registry import known, resolve, suggest
from transduce.kernels.sinusoids import BASE
from transduce.layers.block import Block
from transduce.layers.embedding import Embedding
from transduce.layers.feedforward import Activation, FeedForward
from transduce.layers.fused_search import FusedSearch
from transduce.layers.norms import EPSILON, NoNorm, NormKind, make_norm
from transduce.layers.pointer import Copying
from transduce.layers.residual import NormPlacement, Residual

# For each block, keys and values (B, G, T, E) of the positions so far or of a source, or a cache shared by hypotheses.
State = tuple[KeyValue, ...] | tuple[DecoderCache, ...]
Sources = tuple[KeyValue, ...] | tuple[EncoderCache, ...]

Layer = TypeVar("Layer", bound=nn.Module)
ADDED = ("none", *ENCODINGS, "learned")  # positions that are added to the embeddings; all others are relative


class FusedStack(Protocol):
    """A faster implementation of a stack, with the same results (see `transduce.fused.stack`)."""

    def encode(self, stack: "Stack", embedded_BSD: Tensor, real_BS: Tensor) -> Tensor | None:
        """The result of `Stack.encode`; None if the stack must compute it itself."""
        ...

    def step(
        self, stack: "Stack", embedded_B1D: Tensor, past: State | None, sources: Sources | None
    ) -> tuple[Tensor, State] | None:
        """The result of `Stack.extend_causally` with one token; None if the stack must compute it itself."""
        ...

    def prefill(
        self, stack: "Stack", token_BT: Tensor, embedding: Embedding, output: Embedding
    ) -> tuple[Tensor, State] | None:
        """The result of `Stack.prefill`; None if it must go step by step."""
        ...

    def search(
        self,
        stack: Any,
        embedding: Embedding,
        output: Embedding,
        sources: Sources,
        longest: int,
        zero_start: bool = False,
        copying: Copying | None = None,
    ) -> FusedSearch | None:
        """A search for outputs of up to `longest` tokens in one call; None if search must go step by step.

        stack: a `Stack` or a `transduce.layers.ssru_stack.SsruStack`.
        embedding, output: the embeddings of the tokens and of the output layer.
        zero_start: whether outputs begin with a vector of zeros.
        copying: a pointer, and what it may copy; None = there is none.
        """
        ...


class StackConfig(Config):
    """Sizes and parts that encoder and decoder share. The defaults suit tens of thousands of sentence pairs."""

    d_model: int = Field(default=256, ge=2)
    """Width of the model."""
    heads: int = Field(default=4, ge=1)
    """Number of attention heads; must divide d_model."""
    head_width: int | None = Field(default=None, ge=1)
    """Width of a head of queries, keys and values. Default: d_model / heads, which then must be a whole number."""
    key_value_heads: int | None = Field(default=None, ge=1)
    """Heads of keys and values; must divide heads. 1: multi-query attention; more: grouped-query. Default: heads."""
    feed_forward: int = Field(default=1024, ge=1)
    """Hidden width of the feed-forward layer."""
    activation: Activation = "relu"
    """Activation of the feed-forward layer: relu, gelu, gelu_tanh, swish, squared_relu, or gated: glu, geglu,
    geglu_tanh, swiglu."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout rate on embeddings and on the output of each sub-layer."""
    inner_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout rate on attention weights and inside the feed-forward layer."""
    norm: NormPlacement = "pre"
    """Norm before each sub-layer (pre) or after its residual connection (post)."""
    norm_kind: NormKind = "layer"
    """layer, rms or batch. In training, batch norm lets future words influence a decoder's earlier positions."""
    norm_epsilon: float = Field(default=EPSILON, gt=0, lt=1)
    """What a norm adds to the variance before it divides by its root."""
    embedding_norm: bool = False
    """A norm behind embeddings and positions, before the first layer."""
    zero_init: bool = False
    """Initialize the last matrices of attention and feed-forward with zeros; each block first passes on its input."""
    score: str = "scaled_dot"
    """Attention score: a name in transduce.attention.scores, or your own class as my_file:MyScore."""
    normalizer: str = "softmax"
    """Normalizer, from scores to weights: a name in transduce.attention.normalizers, or your own as
    my_file:MyNormalizer."""
    positions: str = "sinusoidal"
    """Absolute: sinusoidal, tensor2tensor, learned. Relative: rotary, alibi, shaw, t5, or your own as
    my_file:MyPositions. Or none."""
    rotary_base: float = Field(default=BASE, gt=1)
    """Of rotary: base of the angular frequencies; models for long texts have a larger one."""
    rotary_scaling: RotaryScaling | None = None
    """Of rotary: kind = "linear" or "llama3" and a factor, which stretch the frequencies for longer texts."""
    query_key_norm: bool = False
    """RMS norm of each head's queries and keys, before positions turn them (Henry et al. 2020; Qwen3)."""
    shared_layers: bool = False
    """All layers of a stack have the same weights (Universal Transformer, Dehghani et al. 2019); no batch norm."""
    max_length: int = Field(default=1024, ge=1)
    """Maximum length of a sequence with learned positions."""
    first_position: int = Field(default=0, ge=0, le=1024)
    """Of sinusoidal and tensor2tensor: the position of the first token."""
    pattern: Pattern = "full"
    """Causal self-attention to all earlier positions (full), or sparse: local, strided, fixed (Child et al. 2019)."""
    stride: int = Field(default=64, ge=2)
    """Block length of a sparse pattern."""

    @model_validator(mode="after")
    def _heads_divide(self) -> Self:
        if not self.reads("heads"):
            return self
        if self.head_width is None and self.d_model % self.heads:
            raise ValueError(f"d_model ({self.d_model}) must be a multiple of heads ({self.heads})")
        if self.heads % (self.key_value_heads or self.heads):
            raise ValueError(f"heads ({self.heads}) must be a multiple of key_value_heads ({self.key_value_heads})")
        if self.positions == "rotary" and self.width_of_head % 2:
            raise ValueError(f"rotary positions need an even width per head, not {self.width_of_head}")
        return self

    @model_validator(mode="after")
    def _layers_can_share(self) -> Self:
        if self.shared_layers and self.norm_kind == "batch":
            raise ValueError(
                'shared_layers needs norm_kind = "layer" or "rms": a batch norm has statistics of its own in each layer'
            )
        return self

    @model_validator(mode="after")
    def _positions_fit(self) -> Self:
        if not self.reads("positions"):
            return self
        if self.positions in ENCODINGS and self.d_model % 2:
            raise ValueError(f"{self.positions} positions need an even d_model, not {self.d_model}")
        if self.first_position and self.positions not in ENCODINGS:
            raise ValueError(f"first_position is for {' and '.join(ENCODINGS)} positions, not {self.positions}")
        rotary = {"rotary_base": self.rotary_base != BASE, "rotary_scaling": self.rotary_scaling is not None}
        if self.positions != "rotary" and (given := [key for key, is_given in rotary.items() if is_given]):
            raise ValueError(f'{" and ".join(given)}: for positions = "rotary", not "{self.positions}"')
        return self

    def reads(self, key: str) -> bool:
        """Whether the model reads this key; rules are for those that it reads."""
        return True

    def distinct(self, layers: int) -> int:
        """How many of so many layers have weights of their own."""
        return 1 if self.shared_layers else layers

    @property
    def width_of_head(self) -> int:
        return self.head_width or self.d_model // self.heads

    @field_validator("score")
    @classmethod
    def _score_of_all_queries_at_once(cls, name: str) -> str:
        return _at_once("attention.scores", name)

    @field_validator("normalizer")
    @classmethod
    def _weighing_of_all_queries_at_once(cls, name: str) -> str:
        return _at_once("attention.normalizers", name)

    @field_validator("positions")
    @classmethod
    def _positions_there_are(cls, name: str) -> str:
        return positions_there_are(name)


class NoncausalStackConfig(StackConfig):
    """`StackConfig` of models without causal self-attention, which therefore have no sparse patterns."""

    pattern: Literal["full"] = "full"
    stride: Literal[64] = 64

    @field_validator("pattern", "stride", mode="before")
    @classmethod
    def _nothing_to_thin_out(cls, value: Any, info: ValidationInfo) -> Any:
        if value != cls.model_fields[str(info.field_name)].default:
            raise ValueError("applies to causal self-attention, which this kind of model does not have: leave it out")
        return value


def positions_there_are(name: str) -> str:
    """`name`, if there are such positions. Raises ValueError where there are none."""
    names = ADDED + known("attention.relative")
    if ":" not in name and name not in names:
        raise ValueError(f'there is no "{name}".{suggest(name, names)} Known: {", ".join(names)}')
    return name


def _at_once(room: str, name: str) -> str:
    """`name`, if its class can process all queries of a sentence at once.

    Raises:
        ValueError: there is no class with this name, or it needs the weights of the previous query.
    """
    try:
        sequential = resolve(room, name).sequential
    except InputError as error:
        raise ValueError(str(error)) from None
    if sequential:
        raise ValueError(
            f'"{name}" needs the weights of the previous query, but a Transformer computes all queries at once: '
            'use it in a decoder that goes word by word (kind = "rnn")'
        )
    return name


class Stack(nn.Module):
    """A stack of equal blocks.

    Args:
        config: sizes and parts.
        layers: number of blocks.
        cross: whether the blocks also attend to an encoder.
        causal: whether only `extend_causally` is used, so that relative positions need not cover later keys.
        side: the side of the model that the attention modules declare; see `transduce.attention.capture`.
    """

    def __init__(
        self, config: StackConfig, layers: int, cross: bool = False, causal: bool = False, side: Side = "other"
    ) -> None:
        super().__init__()
        self.pattern, self.stride = config.pattern, config.stride
        self.positions = added_positions(config.positions, config.d_model, config.max_length, config.first_position)
        make = partial(make_norm, config.norm_kind, config.d_model, epsilon=config.norm_epsilon)
        self.embedding_norm = make() if config.embedding_norm else None
        self.dropout = Dropout(config.dropout)
        relatives = _relative_positions(config, config.distinct(layers), causal)
        blocks = [_block(config, relative, cross, side) for relative in relatives]
        self.blocks: Iterable[Block] = nn.ModuleList(repeated(blocks, layers))  # type: ignore[assignment]
        self.fused: FusedStack | None = None  # `transduce.fused.pack` attaches one
        # With pre-norm the residual stream is not normalized at the end, so one more norm follows.
        self.norm = make(only_multiplied=True) if config.norm == "pre" else NoNorm()

    def forward(self, embedded_BTD: Tensor, allowed: Tensor | None, real_BT: Tensor | None = None) -> Tensor:
        """(B, T, D) -> (B, T, D), for all positions at once and without cross-attention."""
        return self.extend(embedded_BTD, None, None, None, allowed, real_BT)[0]

    def encode(self, embedded_BSD: Tensor, real_BS: Tensor) -> Tensor:
        """Sources (B, S, D) -> (B, S, D). Each position attends to the real ones of its source; padding comes last."""
        if self.fused and (encoded_BSD := self.fused.encode(self, embedded_BSD, real_BS)) is not None:
            return encoded_BSD
        return self(embedded_BSD, masks.padding(real_BS), real_BS)

    def extend(
        self,
        embedded_BTD: Tensor,
        past: State | None,
        sources: Sources | None = None,
        source_allowed: Tensor | None = None,
        allowed: Allowed = None,
        real_BT: Tensor | None = None,
    ) -> tuple[Tensor, State]:
        """The outputs (B, T, D) of T positions that follow those in `past`, and the state after them.

        Args:
            embedded_BTD: the embeddings of the new positions.
            past: the state before them; None = there are no earlier positions.
            sources: the result of `keys_values` for the encoder's states; None without cross-attention.
            source_allowed: bool, (B, 1, 1, S), True = a real source position; None = all are.
            allowed: bool, broadcastable to (B, H, T, past + T), True = may attend; None = all may.
            real_BT: bool, True = a real position, for norms over several positions; None = all are.
        """
        x_BTD = self.dropout(self.placed(embedded_BTD, past[0].length if past else 0, real_BT))
        seen = []
        for layer, block in enumerate(self.blocks):
            before = past[layer] if past else None
            source = sources[layer] if sources else None
            x_BTD, keys_values = block(x_BTD, allowed, before, source, source_allowed, real_BT)
            seen.append(keys_values)
        return self.norm(x_BTD, real_BT), tuple(seen)

    def placed(self, embedded_BTD: Tensor, offset: int, real_BT: Tensor | None = None) -> Tensor:
        """Embeddings (B, T, D) with their positions, the first of which is `offset`; normed, if the stack does so."""
        on = active_interventions().positions
        x_BTD: Tensor = self.positions(embedded_BTD, offset) if on else embedded_BTD
        return x_BTD if self.embedding_norm is None else self.embedding_norm(x_BTD, real_BT)

    def extend_causally(
        self,
        embedded_BTD: Tensor,
        past: State | None,
        sources: Sources | None = None,
        source_allowed: Tensor | None = None,
        real_BT: Tensor | None = None,
    ) -> tuple[Tensor, State]:
        """`extend` with the causal mask of the configured pattern."""
        count, offset = embedded_BTD.shape[1], past[0].length if past else 0
        if self.fused and count == 1 and (stepped := self.fused.step(self, embedded_BTD, past, sources)):
            return stepped
        allowed: Allowed = None
        if not offset and count >= LONG:
            allowed = CausalPattern(self.pattern, self.stride, count, embedded_BTD.device)
        elif count > 1 or self.pattern != "full":
            allowed = causal_mask(self.pattern, self.stride, count, offset, embedded_BTD.device)
        return self.extend(embedded_BTD, past, sources, source_allowed, allowed, real_BT)

    def prefill(self, token_BT: Tensor, embedding: Embedding, output: Embedding) -> tuple[Tensor, State] | None:
        """The outputs (B, T, D) of the first T tokens of a search and the state after them, as step by step.

        None if there is no kernel whose pass over all tokens gives the same bits as its steps, with these embeddings of
        the tokens and of the output layer.
        """
        return self.fused.prefill(self, token_BT, embedding, output) if self.fused else None

    def keys_values(self, encoded_BSD: Tensor) -> tuple[KeyValue, ...]:
        """Keys and values of each block's cross-attention, from the encoder's states."""
        return tuple(block.cross_keys_values(encoded_BSD) for block in self.blocks)

    def shared(self, sources: tuple[KeyValue, ...], allowed_B11S: Tensor) -> tuple[EncoderCache, ...] | None:
        """`sources` in a form that hypotheses share, with the mask of real positions; None if an attention cannot."""
        return shared_sources([block.cross_attention for block in self.blocks], sources, allowed_B11S)

    def empty(self, rows: int) -> tuple[KeyValue, ...]:
        """The state before the first position."""
        return tuple(block.self_attention.empty(rows) for block in self.blocks)

    def last(self, past: tuple[KeyValue, ...], count: int) -> tuple[KeyValue, ...]:
        """The state with its last `count` positions only, at most. Needs positions that are relative, or none."""
        return tuple(block.self_attention.last(each, count) for block, each in zip(self.blocks, past, strict=True))

    def check_sliding(self) -> None:
        """Raises InputError if the state cannot lose its first positions."""
        problems = []
        if not isinstance(self.positions, NoPositions):
            problems.append(
                "model.positions: the keys and values of an earlier window have other positions in the next one, so "
                "they must be relative: rotary, alibi, shaw or t5 (or none)."
            )
        if any(each and not each.turns_back for each in (block.self_attention.positions for block in self.blocks)):
            problems.append("model.positions: your class turns keys; it needs a `turn_back` as well.")
        if any(not block.self_attention.keeps_turned_keys for block in self.blocks):
            problems.append("model.score: with positions that turn keys, the score must take keys as they are.")
        if self.pattern != "full":
            problems.append(
                f'model.pattern = "{self.pattern}": its blocks are counted from the first token; use "full".'
            )
        if problems:
            raise InputError(problems)

    def begin(self, rows: int) -> State:
        """The state before the first token of a search. Hypotheses share it if every attention supports that."""
        nothing = self.empty(rows)
        can_share = all(block.self_attention.can_share for block in self.blocks)
        if self.pattern != "full" or not can_share or not active_interventions().is_empty:
            return nothing
        tree = BeamTree.founded(rows, nothing[0].key.device)
        return tuple(DecoderCache(KeyValueStore(each, 0), tree) for each in nothing)


def shared_sources(
    attentions: Sequence[MultiHeadAttention | None], sources: tuple[KeyValue, ...], allowed_B11S: Tensor
) -> tuple[EncoderCache, ...] | None:
    """See `Stack.shared`; attentions: the cross-attention of each block."""
    can_share = all(attention and attention.can_share for attention in attentions)
    if not can_share or not active_interventions().is_empty:
        return None
    tree = BeamTree.founded(len(allowed_B11S), allowed_B11S.device)
    laid_out = (KeyValue(source.key.contiguous(), source.value.contiguous()) for source in sources)
    return tuple(EncoderCache(source, allowed_B11S, tree) for source in laid_out)


def repeated(blocks: Sequence[Layer], layers: int) -> list[Layer]:
    """`blocks` and, up to so many layers, more with the weights of the first.

    They are modules of their own, so that the attention of each layer is captured by itself.
    """
    weights = {id(weight): weight for weight in blocks[0].parameters()}
    return [*blocks, *(deepcopy(blocks[0], dict(weights)) for _ in range(layers - len(blocks)))]


def attention_of(config: StackConfig, role: Role, side: Side, positions: Relative | None = None) -> MultiHeadAttention:
    """A new attention module for a block of a stack."""
    return MultiHeadAttention(
        config.d_model,
        config.heads,
        config.inner_dropout,
        config.score,
        config.normalizer,
        positions=positions,
        key_value_heads=config.key_value_heads,
        zero_init=config.zero_init,
        role=role,
        side=side,
        head_width=config.head_width,
        norm_epsilon=config.norm_epsilon if config.query_key_norm else None,
    )


def feed_forward_of(config: StackConfig) -> FeedForward:
    """A new feed-forward layer for a block of a stack."""
    return FeedForward(
        config.d_model, config.feed_forward, config.inner_dropout, config.activation, zero_init=config.zero_init
    )


def residual_of(config: StackConfig) -> Callable[[], Residual]:
    """Makes the residual connections of a block of a stack."""
    return partial(Residual, config.d_model, config.dropout, config.norm, config.norm_kind, config.norm_epsilon)


def _block(config: StackConfig, relative: Relative | None, cross: bool, side: Side) -> Block:
    return Block(
        self_attention=attention_of(config, "self", side, relative),
        cross_attention=attention_of(config, "cross", side) if cross else None,
        feed_forward=feed_forward_of(config),
        residual=residual_of(config),
    )


def _relative_positions(config: StackConfig, layers: int, causal: bool) -> list[Relative] | list[None]:
    """The relative positions of self-attention: one object per block, or one for all blocks if the kind is shared."""
    if config.positions in ADDED:
        return [None] * layers
    kind = resolve("attention.relative", config.positions)
    make = partial(kind, config.heads, config.width_of_head, causal)
    if kind is Rotary:
        make = partial(make, base=config.rotary_base, scaling=config.rotary_scaling)
    return [make()] * layers if kind.shared else [make() for _ in range(layers)]
