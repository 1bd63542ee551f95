"""From texts with masks to texts without, by a model that predicts hidden words.

Shapes: B texts of a batch, S positions, N masks, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch

from transduce.core.padded import Padded
from transduce.data.columns import Columns
from transduce.data.columns.masked_text import MaskedText
from transduce.inference.batch_predictor import counting, predict_in_batches
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
        marked = self.reads.encode(texts)
        arrays, rows = [np.asarray(row, np.int32) for row in marked], [self.reads.pieces_of(row) for row in marked]

        def run(inputs: Any) -> list[_Filled]:
            return self._likeliest(model, inputs.pieces)

        found = predict_in_batches(
            model, arrays, self.reads.collate, run, map(len, arrays), batch_size, counting(advance)
        )
        return [self._prediction(*each) for each in zip(texts, rows, found, strict=True)]

    def _likeliest(self, model: Any, pieces: Padded) -> list[_Filled]:
        hidden_BS = (pieces.values == self.tokenizer.mask) & pieces.mask()
        logits_NV = model.predict_masked(pieces, hidden_BS).float()
        logits_NV[:, sorted(self.tokenizer.special.values())] = -torch.inf
        best = logits_NV.log_softmax(-1).topk(min(LISTED, logits_NV.shape[1]), dim=-1)
        counts = hidden_BS.sum(1).tolist()
        parts = zip(best.indices.split(counts), best.values.split(counts), strict=True)
        return [_Filled(ids.tolist(), values.tolist()) for ids, values in parts]

    def _prediction(self, text: str, row: Sequence[int], filled: _Filled) -> Prediction:
        if not filled.ids:
            return Prediction(text, text, 0.0, 0.0, (), ())
        best = self._with(text, row, filled, 0)
        if len(filled.ids) > 1:
            return best
        return replace(
            best, alternatives=tuple(self._with(text, row, filled, rank) for rank in range(len(filled.ids[0])))
        )

    def _with(self, text: str, row: Sequence[int], filled: _Filled, rank: int) -> Prediction:
        """With the word of this rank in the place of each mask."""
        words = [ids[rank] for ids in filled.ids]
        each = tuple(values[rank] for values in filled.log_probabilities)
        left = iter(words)
        whole = self.tokenizer.decode(next(left) if piece == self.tokenizer.mask else piece for piece in row)
        return Prediction(text, whole, sum(each), sum(each), tuple(self.tokenizer.tokens(words)), each)
