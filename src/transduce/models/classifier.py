"""A text encoder, what it says of the whole text, and a label: any encoder under any pooling.

    h_1 .. h_S = encoder(x),   m = pool(h),   logits = W dropout(m) + b

Pooling by attention is the structured self-attentive embedding (Lin et al. 2017, equations 5 to 8): R hops, each a
learned query over keys tanh(W_1 h), whose weights A say which words decided: the end token, in whose state a recurrent
encoder could gather everything, is not among them. The penalty ||A A^T - I||^2 keeps hops apart.

Shapes: B batch, S positions, D width of embeddings, H width of states, R hops, C labels.
"""

from typing import Annotated, Literal, Self

import torch
from pydantic import AfterValidator, Field, model_validator
from torch import Tensor, nn

from transduce.attention.dropout import Dropout
from transduce.attention.pooling import AttentionPooling, redundancy
from transduce.attention.positions import added_positions
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.core.registry import check
from transduce.data.columns import Specs
from transduce.layers.convolution import ConvolutionEncoder
from transduce.layers.embedding import Embedding, hide_words
from transduce.layers.linear_stack import LinearStack, LinearStackConfig
from transduce.layers.recurrent_stack import Direction, RecurrentEncoder
from transduce.layers.stack import ADDED, NoncausalStackConfig, Stack, StackConfig

Pooling = Literal["attention", "mean", "max", "last"]
READ = {  # settings that each encoder reads
    "transformer": set(StackConfig.model_fields),
    "recurrent": {"d_model", "dropout", "cell", "hidden", "direction"},
    "convolution": {"d_model", "dropout", "kernel", "positions", "max_length"},
    "linear": set(LinearStackConfig.model_fields),
    "none": {"d_model", "dropout", "positions", "max_length"},
}


class ClassifierConfig(NoncausalStackConfig):
    """What reads, how it is pooled, and the sizes and parts of `StackConfig`, which are mostly a Transformer's."""

    kind: Literal["classifier"] = "classifier"
    encoder: Literal["transformer", "recurrent", "convolution", "linear", "none"] = "recurrent"
    """What reads the text. linear: a Transformer with linear attention. none: nothing; the embeddings themselves, with
    positions, are pooled."""
    layers: int = Field(default=1, ge=1)
    """Of the encoder."""
    cell: str = "lstm"
    """Of a recurrent encoder: lstm, gru, tanh, lstmn, or your own as my_file:MyCell."""
    hidden: int = Field(default=256, ge=1)
    """Width of a recurrent encoder's states."""
    direction: Direction = "both"
    """In which order a recurrent encoder reads: forward, backward, or both, each in half the width."""
    kernel: int = Field(default=3, ge=1)
    """Width of a convolution in positions, including the position itself; odd."""
    pooling: Pooling = "attention"
    """How the states of a text become one: by attention, mean, maximum, or the last of each direction of reading."""
    hops: int = Field(default=1, ge=1)
    """Queries of attention pooling; what each reads stands side by side."""
    pooling_normalizer: Annotated[str, AfterValidator(lambda name: check("attention.normalizers", name))] = "softmax"
    """How attention pooling makes weights of its scores: softmax, sparsemax, entmax, hard, gumbel, .., or your own as
    my_file:MyNormalizer."""
    penalty: float = Field(default=0.0, ge=0)
    """Weight in the training loss of ||A A^T - I||^2, which keeps the hops A of attention pooling apart."""
    word_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Whole words that training hides."""

    @model_validator(mode="after")
    def _only_what_is_read(self) -> Self:
        """A setting of another encoder means nothing."""
        defaults = {name: field.default for name, field in type(self).model_fields.items()}
        others = set().union(*READ.values()) - READ[self.encoder]
        others |= {"layers"} if self.encoder == "none" else set()
        others |= set() if self.pooling == "attention" else {"hops", "pooling_normalizer", "penalty"}
        if unread := sorted(name for name in others if getattr(self, name) != defaults[name]):
            raise ValueError(f"{', '.join(unread)}: not read with this encoder and pooling. Leave it out")
        return self

    @model_validator(mode="after")
    def _fits_the_encoder(self) -> Self:
        if self.encoder == "recurrent" and self.direction == "both" and self.hidden % 2:
            raise ValueError(f'direction = "both" halves hidden, which must be even, not {self.hidden}')
        if self.encoder == "convolution" and self.kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, to see as far back as ahead, not {self.kernel}")
        if self.encoder in ("convolution", "linear", "none") and self.positions not in ADDED:
            raise ValueError(f'encoder = "{self.encoder}" takes positions {", ".join(ADDED)}, not "{self.positions}"')
        if self.encoder == "none" and self.pooling == "last":
            raise ValueError('encoder = "none" with pooling = "last" reads the end token alone; choose another pooling')
        return self

    def reads(self, key: str) -> bool:
        return key in READ[self.encoder]

    @property
    def width(self) -> int:
        """H."""
        return self.hidden if self.encoder == "recurrent" else self.d_model


class Classifier(nn.Module):
    """Encodes and classifies (see `transduce.models.protocols`).

    Raises:
        InputError: the columns are not text and a label.
    """

    Config = ClassifierConfig

    def __init__(self, config: ClassifierConfig, specs: Specs) -> None:
        super().__init__()
        if specs.source is None or specs.source.kind == "story" or specs.target.kind != "label":
            raise InputError('[model] kind = "classifier": expected a task with a text and a label; got another one.')
        words, _ = specs.sizes
        assert words is not None
        self.source_embedding = Embedding(words, config.d_model)
        self.word_dropout = config.word_dropout
        self.dropout = Dropout(config.dropout)
        self.positions = None
        self.encoder = _encoder(config)
        if config.encoder in ("convolution", "none"):
            self.positions = added_positions(config.positions, config.d_model, config.max_length, config.first_position)
        width, self.penalty = config.width, config.penalty
        self.pooling = config.pooling
        attends = config.pooling == "attention"
        self.key = nn.Linear(width, width, bias=False) if attends else None
        self.pool = None
        if attends:
            self.pool = AttentionPooling("dot", config.pooling_normalizer, width, config.hops, "decoder")
            self.pool.role = "cross"  # it reads the text for the label
        self.output = nn.Linear(width * (config.hops if attends else 1), specs.target.size)

    def encode(self, source: Padded) -> Padded:
        """Ids (B, S) -> states (B, S, H)."""
        return Padded(self._encoded(source)[0], source.lengths)

    def _encoded(self, source: Padded) -> tuple[Tensor, Tensor | None]:
        """The states (B, S, H), and of a recurrent encoder those after the last word of each direction (B, H)."""
        embedded_BSD = hide_words(self.source_embedding(source.values), self.word_dropout if self.training else 0.0)
        if isinstance(self.encoder, Stack):
            return self.encoder.encode(embedded_BSD, source.mask()), None
        if isinstance(self.encoder, LinearStack):
            return self.encoder(embedded_BSD, source.mask()), None
        if isinstance(self.encoder, RecurrentEncoder):
            states_BSH, last = self.encoder(self.dropout(embedded_BSD), source.lengths)
            return states_BSH, last[-1][0].to(states_BSH.dtype)
        assert self.positions is not None
        placed_BSD = self.dropout(self.positions(embedded_BSD))
        return (placed_BSD if self.encoder is None else self.encoder(placed_BSD, source.mask())), None

    def classify(self, inputs: Padded) -> Tensor:
        """Logits (B, C)."""
        return self._classified(inputs)[0]

    def classify_with_penalty(self, inputs: Padded) -> tuple[Tensor, Tensor | None]:
        """Logits (B, C), and the penalty of each example's weights (B,)."""
        logits_BC, alpha_BRS = self._classified(inputs)
        if not self.penalty or alpha_BRS is None:
            return logits_BC, None
        return logits_BC, self.penalty * redundancy(alpha_BRS)

    def _classified(self, inputs: Padded) -> tuple[Tensor, Tensor | None]:
        states_BSH, last_BH = self._encoded(inputs)
        pooled_BH, alpha_BRS = self._pooled(Padded(states_BSH, inputs.lengths), last_BH)
        return self.output(self.dropout(pooled_BH)), alpha_BRS

    def _pooled(self, states: Padded, last_BH: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """(B, H), or with several hops (B, R H); the weights (B, R, S) of attention pooling."""
        states_BSH, real_BS1 = states.values, states.mask()[..., None]
        if self.pool is not None and self.key is not None:
            words = Padded(states_BSH, (states.lengths - 1).clamp(min=1))
            key_BSH = self.key(states_BSH).tanh()
            read_BRH, alpha_BRS = self.pool.read(states_BSH, words.mask(), key_BSH)
            return read_BRH.flatten(1), alpha_BRS
        if self.pooling == "mean":
            return (states_BSH * real_BS1).sum(1) / states.lengths[:, None], None
        if self.pooling == "max":
            return states_BSH.masked_fill(~real_BS1, -torch.inf).amax(1), None
        if last_BH is not None:
            return last_BH, None
        return states_BSH[torch.arange(len(states_BSH)), states.lengths - 1], None


def _encoder(config: ClassifierConfig) -> Stack | LinearStack | ConvolutionEncoder | RecurrentEncoder | None:
    if config.encoder == "none":
        return None
    if config.encoder == "transformer":
        return Stack(config, config.layers, side="encoder")
    if config.encoder == "linear":
        table = config.model_dump(include=READ["linear"])
        return LinearStack(LinearStackConfig.model_validate(table), config.layers, side="encoder")
    if config.encoder == "convolution":
        return ConvolutionEncoder(config.d_model, config.layers, config.kernel, config.dropout)
    sizes = config.d_model, config.hidden, config.layers
    return RecurrentEncoder(config.cell, *sizes, residual=False, dropout=config.dropout, direction=config.direction)
