"""A recurrent network or a causal Transformer over vectors: what is compared with a Neural Turing Machine.

    h_t = network(W x_1, .., W x_t),   logits_t = O h_t + o

Shapes: B batch, T steps, F width of inputs, O width of outputs, D width of the network.
"""

from typing import Any, Literal, Self

from pydantic import Field, model_validator
from torch import Tensor, nn

from transduce.attention.dropout import Dropout
from transduce.core.registry import check
from transduce.data.columns import Specs
from transduce.data.columns.vectors import check_vectors
from transduce.layers.recurrent_stack import RecurrentStack
from transduce.layers.stack import Stack, StackConfig

READ = {  # settings of either network that the other one has not
    "transformer": set(StackConfig.model_fields) - {"d_model", "dropout"},
    "recurrent": {"cell"},
}


class VectorDecoderConfig(StackConfig):
    """What reads the vectors, and the sizes and parts of `StackConfig`, which are mostly a Transformer's."""

    kind: Literal["vector_decoder"] = "vector_decoder"
    network: Literal["recurrent", "transformer"] = "recurrent"
    """What reads the vectors, from the first to the last."""
    layers: int = Field(default=3, ge=1)
    """Number of layers."""
    cell: str = "lstm"
    """Of a recurrent network: lstm, gru, tanh, lstmn, or your own as my_file:MyCell."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout rate on inputs, between layers, and in a Transformer on the output of each sub-layer."""

    @model_validator(mode="after")
    def _only_what_is_read(self) -> Self:
        """A setting of the other network means nothing."""
        if ":" not in self.cell:
            check("layers.recurrent", self.cell)
        defaults = {name: field.default for name, field in type(self).model_fields.items()}
        others = set[str]().union(*READ.values()) - READ[self.network]
        if unread := sorted(name for name in others if getattr(self, name) != defaults[name]):
            raise ValueError(f"{', '.join(unread)}: not read with this network. Leave it out")
        if self.norm_kind == "batch":
            raise ValueError('norm_kind = "batch": would let later vectors change what is said of earlier ones')
        return self

    def reads(self, key: str) -> bool:
        """What the network reads; both have a width and dropout."""
        return key in READ[self.network] or key not in READ["transformer"]


class VectorDecoder(nn.Module):
    """Implements `Processes` (see `transduce.models.protocols`).

    Raises:
        InputError: the columns are not vectors.
    """

    Config = VectorDecoderConfig

    def __init__(self, config: VectorDecoderConfig, specs: Specs) -> None:
        super().__init__()
        inputs, outputs = check_vectors(specs, "vector_decoder")
        self.input = nn.Linear(inputs, config.d_model)
        self.dropout = Dropout(config.dropout)
        self.network: Stack | RecurrentStack
        if config.network == "transformer":
            self.network = Stack(config, config.layers, causal=True, side="decoder")
        else:
            sizes = config.d_model, config.d_model, config.layers
            self.network = RecurrentStack(config.cell, *sizes, residual=False, dropout=config.dropout)
        self.output = nn.Linear(config.d_model, outputs)

    def initial(self, rows: int) -> Any:
        """States of zeros, or empty caches of keys and values."""
        return self.network.empty(rows)

    def process(self, x_BTF: Tensor, state: Any) -> tuple[Tensor, Any]:
        """Logits (B, T, O) of T vectors after `state`, and the state after the last."""
        given_BTD = self.input(x_BTF)
        if isinstance(self.network, Stack):
            hidden_BTD, state = self.network.extend_causally(given_BTD, state)
        else:
            hidden_BTD, state = self.network.read(self.dropout(given_BTD), state)
        return self.output(hidden_BTD), state
