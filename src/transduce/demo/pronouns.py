"""What "it" attends to: which head of the encoder looks from a pronoun to the noun that it stands for.

Shapes: B sentences, N encoder blocks, H heads, T queries, S keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.attention import capture
from transduce.attention.interventions import Place
from transduce.core.errors import InputError
from transduce.data.collate import padded
from transduce.inference.generates import generating
from transduce.interpret.layers import attending
from transduce.interpret.token_spans import Side, end_token, read_tokens, side
from transduce.interpret.words import by_words
from transduce.models.protocols import Encodes
from transduce.pipeline.pipeline import Pipeline

Array = NDArray[np.floating[Any]]


class Sought(NamedTuple):
    """A sentence, the word in it that attends, and the word that it should attend to."""

    sentence: str
    query: str
    noun: str


class Head(NamedTuple):
    """A head of the encoder's self-attention, both numbers from 0."""

    block: int
    head: int

    def __str__(self) -> str:
        return f"encoder block {self.block + 1}, head {self.head + 1}"


@dataclass(frozen=True)
class Look:
    """One word's attention over its sentence, by one head.

    words: the sentence, its end token included; query, noun: places among them.
    weights: (S,), they sum to 1; a word's weight is the sum of its tokens'.
    """

    words: list[str]
    query: int
    noun: int
    weights: Array

    @property
    def found(self) -> bool:
        """Whether no other word, the query and the end token among them, has a larger weight."""
        return int(self.weights.argmax()) == self.noun

    @property
    def weight(self) -> float:
        return float(self.weights[self.noun])


def attention_by_head(pipeline: Pipeline, sought: Sequence[Sought]) -> dict[Head, list[Look]]:
    """For every head of the encoder, what it makes the query of each sentence attend to.

    Raises:
        InputError: a sentence without its query or its noun; a model whose encoder has no blocks that attend.
    """
    found: dict[Head, list[Look]] = {}
    sentences = _self_attention(pipeline, [each.sentence for each in sought])
    for each, (words, weights_NHTS) in zip(sought, sentences, strict=True):
        query, noun = _place(words, each.query, each.sentence), _place(words, each.noun, each.sentence)
        for block, head in np.ndindex(weights_NHTS.shape[:2]):
            look = Look(words, query, noun, weights_NHTS[block, head, query])
            found.setdefault(Head(block, head), []).append(look)
    return found


def kept_from(pipeline: Pipeline, sentence: str, query: str, words: Sequence[str]) -> str:
    """The model's output where the word `query` attends to none of `words`, in no head of the encoder.

    Raises:
        InputError: a sentence without one of these words; a model whose encoder has no attention that can be cut.
    """
    tokenizer = pipeline.task.tokenizers["source"]
    found = side(sentence, [*read_tokens(tokenizer, sentence), end_token(tokenizer, sentence)]).words
    names = [word.text for word in found]
    asking = found[_place(names, query, sentence)].tokens
    hidden = [token for word in words for token in found[_place(names, word, sentence)].tokens]
    blocks = [part.name for part in attending(pipeline.model, pipeline.task) if part.kind == "encoder"]
    cut = [Place(name, query=one, key=other) for name in blocks for one in asking for other in hidden]
    with capture(pipeline, cut=cut):
        return pipeline.predict(sentence).text


def clearest(found: dict[Head, list[Look]]) -> Head:
    """The head that finds the most nouns; among equals, the one whose smallest weight on a noun is the largest."""

    def clarity(head: Head) -> tuple[int, float]:
        return sum(look.found for look in found[head]), min(look.weight for look in found[head])

    return max(found, key=clarity)


def _self_attention(pipeline: Pipeline, sentences: Sequence[str]) -> list[tuple[list[str], Array]]:
    """Of each sentence the words, and the weights (N, H, T, S) between them."""
    task, model = generating(pipeline.task), pipeline.model
    encoded = task.tokenizers["source" if "source" in task.tokenizers else "target"].encode(sentences)
    requests = [task.request(ids, pipeline.recipe.search) for ids in encoded]
    ids = [request.source for request in requests if request.source is not None]
    if not isinstance(model, Encodes) or len(ids) < len(sentences):
        raise InputError("only a model with an encoder can show what a source word attends to.")
    source = padded([np.asarray(each, np.int32) for each in ids]).to(next(pipeline.model.parameters()).device)
    with torch.inference_mode(), capture(pipeline.model) as record:
        model.encode(source)
    blocks = [record[name][0] for name in record.of("self", "encoder")]
    if not blocks:
        raise InputError("the encoder of this model has no attention.")
    weights_BNHTS = torch.stack(blocks, 1).cpu().numpy()
    reads = task.tokenizers["source"]
    sides = [side(each, [*read_tokens(reads, each), end_token(reads, each)]) for each in sentences]
    return [_by_words(*both) for both in zip(sides, weights_BNHTS, strict=True)]


def _by_words(sentence: Side, weights_NHTS: Array) -> tuple[list[str], Array]:
    """Weights between tokens, padding behind them, as weights between words."""
    groups = [word.tokens for word in sentence.words]
    merged_NHTS = by_words(groups, weights_NHTS[..., : len(sentence.tokens), :])
    return [word.text for word in sentence.words], by_words(groups, merged_NHTS, axis="queries")


def _place(words: list[str], name: str, sentence: str) -> int:
    """Where `name` stands, whatever its case."""
    plain = [word.lower() for word in words]
    if name.lower() not in plain:
        raise InputError(f'"{sentence}" has no word "{name}".')
    return plain.index(name.lower())
