"""A text encoder, what it says of the whole text, and a label: any encoder under any pooling.

    h_1 .. h_S = encoder(x),   m = pool(h),   logits = W dropout(m) + b

Pooling by attention is the structured self-attentive embedding (Lin et al. 2017, equations 5 to 8): R hops, each a
learned query over keys tanh(W_1 h), whose weights A say which words decided: the end token, in whose state a recurrent
encoder could gather everything, is not among them. The penalty ||A A^T - I||^2 keeps hops apart.

Shapes: B batch, S positions, D width of embeddings, H width of states, R hops, C labels.
"""

from collections.abc import Callable
from typing import Annotated, Literal, Self

import torch
from pydantic import AfterValidator, Field, model_validator
from torch import Tensor, nn

from transduce.attention.pooling import AttentionPooling, redundancy
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.core.registry import check
from transduce.data.columns import ColumnSpec, Specs
from transduce.layers.feedforward import PLAIN
from transduce.layers.shared_ngrams import SharedInPairs
from transduce.layers.text_encoder import TextEncoder, TextEncoderConfig, pooled

Pooling = Literal["attention", "mean", "max", "last", "first"]
POOLERS: dict[str, Callable[[Tensor], Tensor]] = {"tanh": torch.tanh, "relu": PLAIN["relu"], "gelu": PLAIN["gelu"]}


class ClassifierConfig(TextEncoderConfig):
    """What reads, how it is pooled, and the sizes and parts of `StackConfig`, which are mostly a Transformer's."""

    kind: Literal["classifier"] = "classifier"
    pooling: Pooling = "attention"
    """How the states of a text become one vector: by attention, their mean or maximum, the last state of each
    direction, or the first state, as in BERT."""
    pooler: Literal["tanh", "relu", "gelu"] | None = None
    """A further linear layer behind the pooling, with this activation, as in BERT (tanh). Default: none."""
    hops: int = Field(default=1, ge=1)
    """Queries of attention pooling; what each reads stands side by side."""
    pooling_normalizer: Annotated[str, AfterValidator(lambda name: check("attention.normalizers", name))] = "softmax"
    """How attention pooling makes weights of its scores: softmax, sparsemax, entmax, hard, gumbel, .., or your own as
    my_file:MyNormalizer."""
    shared_ngrams: int = Field(default=0, ge=0)
    """Of pairs of texts: tell the model which tokens are part of an n-gram of both texts, for n = 1 up to this. 0 =
    nothing is told."""
    penalty: float = Field(default=0.0, ge=0)
    """Weight in the training loss of ||A A^T - I||^2, which keeps the hops A of attention pooling apart."""

    @property
    def _unread_with(self) -> str:
        return "encoder and pooling"

    def _unread(self) -> set[str]:
        of_attention = {"hops", "pooling_normalizer", "penalty"}
        return super()._unread() | (set() if self.pooling == "attention" else of_attention)

    @model_validator(mode="after")
    def _pools_states(self) -> Self:
        if self.encoder == "none" and self.pooling == "last":
            raise ValueError('encoder = "none" with pooling = "last" reads the end token alone; choose another pooling')
        if self.pooling == "first" and self.encoder not in ("transformer", "linear"):
            raise ValueError(
                f'encoder = "{self.encoder}": its first state has not seen the whole text; pooling = "first" is for '
                "transformer and linear"
            )
        return self


class Classifier(TextEncoder):
    """Encodes and classifies (see `transduce.models.protocols`).

    Raises:
        InputError: the columns are not text and a label.
    """

    Config = ClassifierConfig
    SHARED = TextEncoder.SHARED | {"pooling"}

    def __init__(self, config: ClassifierConfig, specs: Specs) -> None:
        super().__init__(config, _text_of(specs))
        width, self.penalty = config.width, config.penalty
        self.shared = _shared(config, specs)
        self.pooling = config.pooling
        attends = config.pooling == "attention"
        self.key = nn.Linear(width, width, bias=False) if attends else None
        self.pool = None
        if attends:
            self.pool = AttentionPooling("dot", config.pooling_normalizer, width, config.hops, "decoder")
            self.pool.role = "cross"  # it reads the text for the label
        pooled_width = width * (config.hops if attends else 1)
        self.pooler = nn.Linear(pooled_width, pooled_width) if config.pooler else None
        self.activation = POOLERS[config.pooler] if config.pooler else None
        self.output = nn.Linear(pooled_width, specs.target.size)

    def classify(self, inputs: Padded) -> Tensor:
        """Logits (B, C)."""
        return self._classified(inputs)[0]

    def classify_with_penalty(self, inputs: Padded) -> tuple[Tensor, Tensor | None]:
        """Logits (B, C), and the penalty of each example's weights (B,)."""
        logits_BC, alpha_BRS = self._classified(inputs)
        if not self.penalty or alpha_BRS is None:
            return logits_BC, None
        return logits_BC, self.penalty * redundancy(alpha_BRS)

    def _embedded(self, source: Padded) -> Tensor:
        embedded_BSD = super()._embedded(source)
        return embedded_BSD if self.shared is None else embedded_BSD + self.shared(source)

    def _classified(self, inputs: Padded) -> tuple[Tensor, Tensor | None]:
        states_BSH, last_BH = self._encoded(inputs)
        pooled_BH, alpha_BRS = self._pooled(Padded(states_BSH, inputs.lengths), last_BH)
        return self.output(self.dropout(self._with_pooler(pooled_BH))), alpha_BRS

    def _with_pooler(self, pooled_BH: Tensor) -> Tensor:
        if self.pooler is None or self.activation is None:
            return pooled_BH
        return self.activation(self.pooler(pooled_BH))

    def _pooled(self, states: Padded, last_BH: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """(B, H), or with several hops (B, R H); the weights (B, R, S) of attention pooling."""
        states_BSH = states.values
        if self.pool is not None and self.key is not None:
            words = Padded(states_BSH, (states.lengths - 1).clamp(min=1))
            key_BSH = self.key(states_BSH).tanh()
            read_BRH, alpha_BRS = self.pool.read(states_BSH, words.mask(), key_BSH)
            return read_BRH.flatten(1), alpha_BRS
        if self.pooling in ("mean", "max", "first"):
            return pooled(states, self.pooling), None
        if last_BH is not None:
            return last_BH, None
        return states_BSH[torch.arange(len(states_BSH)), states.lengths - 1], None


def _shared(config: ClassifierConfig, specs: Specs) -> SharedInPairs | None:
    """What tells which n-grams two texts share. Raises InputError where there is one text."""
    if not config.shared_ngrams:
        return None
    if specs.source is None or specs.source.separator < 0:
        raise InputError("[model] shared_ngrams: expected pairs of texts; this task reads one text. Leave it out.")
    return SharedInPairs(config.shared_ngrams, config.d_model, specs.source.separator)


def _text_of(specs: Specs) -> ColumnSpec:
    """The column that is read. Raises InputError where it is no text, or what is asked for no label."""
    if specs.source is None or specs.source.kind == "story" or specs.target.kind != "label":
        raise InputError('[model] kind = "classifier": expected a task with a text and a label; got another one.')
    assert specs.sizes[0] is not None
    return specs.source
