"""From texts with masks to texts without, by a model that predicts hidden words.

Shapes: B texts of a batch, S positions, N masks, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import torch

from transduce.core.padded import Padded
from transduce.data.columns import Columns
from transduce.data.columns.masked_text import MaskedText
from transduce.inference.batch_predictor import outputs_of
from transduce.inference.prediction import Prediction
from transduce.inference.protocols import Advance
from transduce.search.settings import Search

LISTED = 10  # words that are likeliest in the place of a single mask


class _Filled(NamedTuple):
    """The likeliest ids (N, LISTED) in the place of each mask of a text, and their log-probabilities."""

    ids: list[list[int]]
    log_probabilities: list[list[float]]


class MaskedWordPredictor:
    """Each text with the likeliest word for each mask; see `transduce.inference.protocols.Predictor`.

    Args:
        columns: a `MaskedText` as the source.
    """

    def __init__(self, columns: Columns) -> None:
        reads = columns["source"]
        assert isinstance(reads, MaskedText)
        self.reads, self.tokenizer = reads, reads.tokenizer

    def predict(
        self,
        model: Any,
        texts: Sequence[str],
        settings: Search | None = None,
        batch_size: int = 64,
        advance: Advance | None = None,
    ) -> list[Prediction]:
        """One a text, in their order; each mask is filled by itself, and a text without one stays as it is. Of a
        single mask, `alternatives` are the words that are likeliest there.
        """

        def run(inputs: Any) -> list[_Filled]:
            return self._likeliest(model, inputs.pieces)

        found, _ = outputs_of(model, self.reads, texts, run, batch_size, advance)  # nothing is cut
        return [self._prediction(*each) for each in zip(texts, found, strict=True)]

    def _likeliest(self, model: Any, pieces: Padded) -> list[_Filled]:
        hidden_BS = (pieces.values == self.tokenizer.mask) & pieces.mask()
        logits_NV = model.predict_masked(pieces, hidden_BS).float()
        logits_NV[:, self._unwritten] = -torch.inf
        best = logits_NV.log_softmax(-1).topk(min(LISTED, logits_NV.shape[1]), dim=-1)
        counts = hidden_BS.sum(1).tolist()
        parts = zip(best.indices.split(counts), best.values.split(counts), strict=True)
        return [_Filled(ids.tolist(), values.tolist()) for ids, values in parts]

    def _prediction(self, text: str, filled: _Filled) -> Prediction:
        if not filled.ids:
            return Prediction(text, text, 0.0, 0.0, (), ())
        ranks = range(len(filled.ids[0]) if len(filled.ids) == 1 else 1)
        best, *others = (self._with(text, filled, rank) for rank in ranks)
        return replace(best, alternatives=(best, *others)) if others else best

    def _with(self, text: str, filled: _Filled, rank: int) -> Prediction:
        """With the word of this rank in the place of each mask."""
        words = [ids[rank] for ids in filled.ids]
        each = tuple(values[rank] for values in filled.log_probabilities)
        tokens = tuple(self.tokenizer.tokens(words))
        return Prediction(text, self._filled_in(text, words), sum(each), sum(each), tokens, each)

    def _filled_in(self, text: str, words: Sequence[int]) -> str:
        """The text as it came, but for its masks; what goes on with a word stands right behind it."""
        (mask,) = self.tokenizer.tokens([self.tokenizer.mask])
        done, *parts = text.split(mask)
        for word, part in zip(words, parts, strict=True):
            written = self._written[word]
            done = (done if written.startswith(" ") else done.rstrip(" ")) + written.strip() + part
        return done

    @cached_property
    def _written(self) -> list[str]:
        """What each token writes behind a word: a space first where it begins another."""
        ids = self.tokenizer.encode(["a"])[0][:1]
        before = len(self.tokenizer.decode(ids))
        return [self.tokenizer.decode([*ids, index])[before:] for index in range(self.tokenizer.size)]

    @cached_property
    def _unwritten(self) -> list[int]:
        """Special tokens, and those that write nothing."""
        empty = [index for index, written in enumerate(self._written) if not written.strip()]
        return sorted({*self.tokenizer.special.values(), *empty})
