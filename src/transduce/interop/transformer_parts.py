"""What exports ask of our Transformer: its parts, on the processor and in fp32.

Shapes: D model width, H heads, G heads of keys and values, E width of a head, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.interop.text_to_text import NEVER, never_chosen, positions_of, target_of, text_problems
from transduce.kernels.sinusoids import BASE
from transduce.layers.block import Block
from transduce.layers.embedding import Embedding
from transduce.models.transformer import Transformer, TransformerConfig

if TYPE_CHECKING:
    from transduce.attention import MultiHeadAttention
    from transduce.pipeline.pipeline import Pipeline

PLAIN = {
    "embedding_norm": False,
    "first_position": 0,
    "encoder_positions": None,
    "encoder_max_length": None,
    "scale_embeddings": True,
    "head_width": None,
    "rotary_base": BASE,
    "rotary_scaling": None,
    "query_key_norm": False,
    "zero_start": False,
}
"""Keys of [model] with the value that exports expect; models that are made for others, or came from there, differ."""


class Weights(NamedTuple):
    """Of a linear map: (outputs, inputs) and (outputs,)."""

    weight: Tensor
    bias: Tensor


@dataclass(frozen=True)
class TransformerParts:
    """An encoder-decoder of texts.

    longest: how many positions an export with a table of them should have.
    unwritten: the ids that our search never chooses.
    embeddings and output: (V, D).
    """

    model: Transformer
    config: TransformerConfig
    source: Tokenizer
    target: Tokenizer
    longest: int
    unwritten: Sequence[int]

    @property
    def encoder(self) -> Sequence[Block]:
        return list(self.model.encoder.blocks)

    @property
    def decoder(self) -> Sequence[Block]:
        return list(self.model.decoder.blocks)

    @property
    def source_embedding(self) -> Tensor:
        """(V, D), not yet multiplied by sqrt(D)."""
        embedding = self.model.source_embedding
        assert isinstance(embedding, Embedding)
        return embedding.weight.detach()

    @property
    def target_embedding(self) -> Tensor:
        """(V, D), not yet multiplied by sqrt(D)."""
        return self.model.target_embedding.weight.detach()

    @property
    def output(self) -> Tensor:
        """(V, D)."""
        return self.model.output.weight.detach()

    @property
    def pointer(self) -> bool:
        """Whether it copies from the source."""
        return self.model.pointer is not None


def parts_of(pipeline: "Pipeline", engine: str) -> TransformerParts:
    """The parts of a pipeline's model. engine: for messages.

    Raises:
        InputError: it is no Transformer from text to text.
    """
    model, config, problems = pipeline.model, pipeline.recipe.model, list(text_problems(pipeline))
    if type(model) is not Transformer:
        problems.append(f'model.kind = "{config.kind}" cannot be exported; expected "transformer".')  # type: ignore[attr-defined]
    special = [key for key, value in PLAIN.items() if getattr(config, key, value) != value]
    problems += [f"model.{key} = {getattr(config, key)!r} cannot be exported." for key in special]
    if problems:
        raise InputError(f"{engine}: {problem}" for problem in problems)
    assert isinstance(model, Transformer) and isinstance(config, TransformerConfig)
    source, target = (pipeline.task.tokenizers[side] for side in ("source", "target"))
    return TransformerParts(model, config, source, target, positions_of(pipeline), target_of(pipeline).unwritten)


def logit_bias(parts: TransformerParts) -> Tensor:
    """(V,): `never_chosen`, on top of the model's own bias if it has one."""
    return biases(parts.model.output, parts.unwritten)


def biases(output: Embedding, unwritten: Sequence[int]) -> Tensor:
    """(V,): see `logit_bias`. output: the output layer. unwritten: the ids that are never chosen."""
    own_V, never_V = getattr(output, "bias", None), never_chosen(len(output.weight), unwritten)
    return never_V if own_V is None else torch.where(never_V == NEVER, never_V, own_V.detach())


def key_value_heads_spread(attention: "MultiHeadAttention") -> tuple[Weights, Weights]:
    """The projections of keys and of values with H heads, (H E, D): each of G heads stands as often as it is read."""
    repeats = attention.heads // attention.key_value_heads
    halves = zip(attention.key_value.weight.detach().chunk(2), attention.key_value.bias.detach().chunk(2), strict=True)

    def spread(rows: Tensor) -> Tensor:
        heads = torch.unflatten(rows, 0, (attention.key_value_heads, attention.head_width))
        return heads.repeat_interleave(repeats, 0).flatten(0, 1)

    key, value = (Weights(spread(weight), spread(bias)) for weight, bias in halves)
    return key, value
