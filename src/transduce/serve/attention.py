"""What a model attended to while it gave one output: the weights, and which words belong together.

Shapes: H heads, T target positions, S source positions, W words of the output, U words of the source.
"""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.attention.capture import capture
from transduce.data.collate import padded
from transduce.data.tokenizer import Tokenizer
from transduce.inference import to_device
from transduce.pipeline import Pipeline
from transduce.serve.markup import Link
from transduce.serve.texts import Span
from transduce.tasks.protocols import Prediction

# Letters and digits that stand together; one by one where a script writes no spaces between words.
WORDS = re.compile(r"[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+|\S")


class Attention(NamedTuple):
    """The weights of one output, computed with all of it given.

    source_tokens: as the model read them, end token included; empty for a model without a source.
    target_tokens: the rows of the decoder's weights, by the token that each one predicts, end token included.
    weights: (H, T, S) by the name of the module that attended; a self-attention's columns are what it read.
    cross: the names of those that look at the source.
    """

    source_tokens: list[str]
    target_tokens: list[str]
    weights: dict[str, Tensor]
    cross: list[str]

    def alignment(self) -> NDArray[np.float64] | None:
        """(T, S) the mean of all cross-attention; None where there is none."""
        if not self.cross:
            return None
        return np.stack([self.weights[name].double().mean(0).cpu().numpy() for name in self.cross]).mean(0)


@torch.inference_mode()
def attention_of(pipeline: Pipeline, prediction: Prediction) -> Attention:
    """The weights behind a prediction that was read and written in one piece."""
    source, target = pipeline.task.tokenizers.get("source"), pipeline.task.tokenizers["target"]
    outputs = _ids(target, prediction)
    reads = [*source.encode([prediction.source])[0], source.end] if source else []
    # The causal decoder does not see what comes behind: one position more tells its own weights (T, T) from (T, S).
    spare = [target.end] * (len(outputs) + 1 == len(reads))
    device = next(pipeline.model.parameters()).device
    with capture(pipeline.model) as record:
        pipeline.model(
            to_device(padded([np.asarray(reads, np.int32)]), device) if source else None,
            to_device(padded([np.asarray([pipeline.task.start, *outputs, *spare], np.int32)]), device),
        )
    rows = len(outputs) + 1
    found = {name: calls[-1][0] for name, calls in record.items() if calls and calls[-1].shape[0] == 1}
    crossing = (rows + len(spare), len(reads))
    cross = [name for name, weights in found.items() if source and tuple(weights.shape[1:]) == crossing]
    trimmed = {name: _trimmed(weights, rows, len(reads), len(spare), name in cross) for name, weights in found.items()}
    end = target.tokens([target.end])
    return Attention(source.tokens(reads) if source else [], [*prediction.tokens, *end], trimmed, cross)


def _trimmed(weights_HTS: Tensor, rows: int, reads: int, spare: int, crosses: bool) -> Tensor:
    """Without the spare position."""
    if not spare:
        return weights_HTS
    if crosses:
        return weights_HTS[:, :rows]
    return weights_HTS[:, :rows, :rows] if weights_HTS.shape[1] == rows + spare else weights_HTS


def links(pipeline: Pipeline, prediction: Prediction, found: Attention) -> list[Link]:
    """For each word of the output the word of the source that it attended to most, and the other way round for source
    words that no output word chose. Empty for a model that shows no cross-attention, or an output without words.
    """
    source, target = pipeline.task.tokenizers.get("source"), pipeline.task.tokenizers["target"]
    alignment_TS = found.alignment()
    inputs, outputs = _words(prediction.source), _words(prediction.text)
    if source is None or alignment_TS is None or not inputs or not outputs:
        return []
    reads, writes = source.offsets(prediction.source), _offsets(target, prediction)
    alignment_TS = alignment_TS[: len(writes), : len(reads)]
    weight_WU = _overlap(outputs, writes) @ alignment_TS @ _overlap(inputs, reads).T
    chosen = {(int(best), word) for word, best in enumerate(weight_WU.argmax(1))}
    left = set(range(len(inputs))) - {word for word, _ in chosen}
    chosen |= {(word, int(weight_WU[:, word].argmax())) for word in left}
    return [Link(inputs[word], outputs[other]) for word, other in sorted(chosen)]


def _ids(target: Tokenizer, prediction: Prediction) -> list[int]:
    known = {spelling: number for number, spelling in enumerate(target.tokens(range(target.size)))}
    return [known[token] for token in prediction.tokens]


def _words(text: str) -> list[Span]:
    return [match.span() for match in WORDS.finditer(text)]


def _offsets(target: Tokenizer, prediction: Prediction) -> list[Span]:
    """For each output token the characters of the text that it wrote."""
    ids = _ids(target, prediction)
    ends = [len(target.decode(ids[:count])) for count in range(len(ids) + 1)]
    return list(pairwise(ends))


def _overlap(words: Sequence[Span], tokens: Sequence[Span]) -> NDArray[np.float64]:
    """1 where a word and a token share a character."""
    word, token = np.array(words), np.array(tokens)
    shared = np.minimum(word[:, None, 1], token[None, :, 1]) - np.maximum(word[:, None, 0], token[None, :, 0])
    return (shared > 0).astype(np.float64)
