"""What exports ask of our Transformer: its parts, on the processor and in fp32.

Shapes: D model width, H heads, G heads of keys and values, E width of a head, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.data.columns.tokens import Tokens
from transduce.data.tokenizer import Tokenizer
from transduce.layers.block import Block
from transduce.layers.embedding import Embedding
from transduce.models.transformer import Transformer, TransformerConfig

if TYPE_CHECKING:
    from transduce.attention import MultiHeadAttention
    from transduce.pipeline.pipeline import Pipeline

LEAST_POSITIONS = 1024
NEVER = -1e9  # a logit


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
        """Its blocks."""
        return list(self.model.encoder.blocks)

    @property
    def decoder(self) -> Sequence[Block]:
        """Its blocks."""
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
    columns, model = pipeline.task.columns, pipeline.model
    kinds = {side: column.kind for side, column in columns.items()}
    problems = []
    if kinds != {"source": "tokens", "target": "tokens"}:
        sides = ", ".join(f"{side}: {kind}" for side, kind in kinds.items())
        problems.append(f"{engine}: only models from text to text can be exported; this one has {sides}.")
    if type(model) is not Transformer:
        kind = pipeline.recipe.model.kind  # type: ignore[attr-defined]
        problems.append(f'{engine}: model.kind = "{kind}" cannot be exported; expected "transformer".')
    problems += [f"{engine}: {problem}" for problem in _special_parts(pipeline)]
    if any(tokenizer.right_to_left for tokenizer in pipeline.task.tokenizers.values()):
        problems.append(f"{engine}: a tokenizer that writes from right to left cannot be exported.")
    if problems:
        raise InputError(problems)
    assert isinstance(model, Transformer)
    config = pipeline.recipe.model
    assert isinstance(config, TransformerConfig)
    readable: int = pipeline.task.readable
    longest = max(LEAST_POSITIONS, min(readable, 10**6) + 1, pipeline.recipe.search.limit(min(readable, 10**6)) + 1)
    tokenizers = pipeline.task.tokenizers
    written = columns["target"]
    assert isinstance(written, Tokens)
    return TransformerParts(model, config, tokenizers["source"], tokenizers["target"], longest, written.unwritten)


def _special_parts(pipeline: "Pipeline") -> list[str]:
    """What only converted models have, and no export writes."""
    config, columns = pipeline.recipe.model, pipeline.task.columns.values()
    plain = {"embedding_norm": False, "first_position": 0, "scale_embeddings": True, "head_width": None}
    found = [key for key, value in plain.items() if getattr(config, key, value) != value]
    problems = [f"model.{key} = {getattr(config, key)!r} cannot be exported." for key in found]
    if any(isinstance(each, Tokens) and (each.before or each.after) for each in columns):
        problems.append("a model with further tokens around a text than start and end cannot be exported.")
    return problems


def logit_bias(parts: TransformerParts) -> Tensor:
    """(V,): `never_chosen`, on top of the model's own bias if it has one."""
    own_V = getattr(parts.model.output, "bias", None)
    never_V = never_chosen(len(parts.output), parts.unwritten)
    return never_V if own_V is None else torch.where(never_V == NEVER, never_V, own_V.detach())


def never_chosen(size: int, unwritten: Sequence[int]) -> Tensor:
    """(V,): `NEVER` for what our search never chooses, mostly padding, start and unknown; else 0.

    With it, no caller of an exported model needs to know this. Added to logits, it also shares out the probability that
    the model gives to these tokens among the others; added to log-probabilities, it does not.
    """
    bias_V = torch.zeros(size)
    bias_V[list(unwritten)] = NEVER
    return bias_V


def key_value_heads_spread(attention: "MultiHeadAttention") -> tuple[Weights, Weights]:
    """The projections of keys and of values with H heads, (H E, D): each of G heads stands as often as it is read."""
    repeats = attention.heads // attention.key_value_heads
    halves = zip(attention.key_value.weight.detach().chunk(2), attention.key_value.bias.detach().chunk(2), strict=True)

    def spread(rows: Tensor) -> Tensor:
        heads = torch.unflatten(rows, 0, (attention.key_value_heads, attention.head_width))
        return heads.repeat_interleave(repeats, 0).flatten(0, 1)

    key, value = (Weights(spread(weight), spread(bias)) for weight, bias in halves)
    return key, value
