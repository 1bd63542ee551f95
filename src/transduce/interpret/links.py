"""Which words of a source and an output belong together, by the model's attention."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transduce.documents.runs import Link
from transduce.inference.prediction import Prediction
from transduce.inference.preparation import mapped
from transduce.inference.sentences import Span
from transduce.interpret.attention import Attention
from transduce.interpret.words import parts_in


def links(prediction: Prediction, found: Attention) -> list[Link]:
    """For each word of the output the word of the source that it attended to most, and the other way round for source
    words that no output word chose. Empty for a model that shows no cross-attention, or an output without words.
    """
    alignment_TS = found.alignment()
    inputs, outputs = parts_in(prediction.source), parts_in(prediction.text)
    if found.source is None or alignment_TS is None or not inputs or not outputs:
        return []
    reads, writes = ([(each.start, each.end) for each in side.tokens] for side in (found.source, found.target))
    read, written = as_read(prediction, inputs), as_written(prediction, outputs)
    weight_WU = overlap(written, writes) @ alignment_TS @ overlap(read, reads).T
    chosen = {(int(best), word) for word, best in enumerate(weight_WU.argmax(1))}
    left = set(range(len(inputs))) - {word for word, _ in chosen}
    chosen |= {(word, int(weight_WU[:, word].argmax())) for word in left}
    return [Link(inputs[word], outputs[other]) for word, other in sorted(chosen)]


def as_read(prediction: Prediction, words: Sequence[Span]) -> list[Span]:
    """Where words of the source stand in what the model read."""
    if prediction.edits is None:
        return list(words)
    return [mapped(prediction.edits[0], *word, back=False) for word in words]


def as_written(prediction: Prediction, words: Sequence[Span]) -> list[Span]:
    """Where words of the text stand in what the model wrote."""
    if prediction.edits is None:
        return list(words)
    return [mapped(prediction.edits[1], *word, back=True) for word in words]


def overlap(words: Sequence[Span], tokens: Sequence[Span]) -> NDArray[np.float64]:
    """1 where a word and a token share a character."""
    word, token = np.array(words), np.array(tokens)
    shared = np.minimum(word[:, None, 1], token[None, :, 1]) - np.maximum(word[:, None, 0], token[None, :, 0])
    return (shared > 0).astype(np.float64)
