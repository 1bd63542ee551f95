"""From sequences of vectors to the answers that a model of vectors gives, rounded to 0 and 1.

Shapes: B examples of a batch, A steps of answers, O numbers of an output.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.data.columns import Columns
from transduce.inference.batch_predictor import counting, predict_in_batches
from transduce.inference.likelihood import Likelihood
from transduce.inference.prediction import Prediction
from transduce.inference.protocols import Advance
from transduce.layers.external_memory import MemoryTrace
from transduce.models.protocols import HasMemory
from transduce.objectives.binary import BinaryCrossEntropy, answer_logits
from transduce.search.settings import Search


@dataclass(frozen=True, repr=False)
class VectorPrediction(Prediction):
    """The answer to a sequence of vectors; `text` is its rows as JSON, `tokens` are the same one by one.

    probabilities: that each number is 1.
    trace: what the memory of the model did, one sequence, computed when asked; None where it has none.
    """

    probabilities: tuple[tuple[float, ...], ...] = ()
    trace: Callable[[], MemoryTrace] | None = field(default=None, repr=False, compare=False)

    def __repr__(self) -> str:
        return f"VectorPrediction({self.text!r}, log_probability={self.log_probability:.4g})"

    def details(self) -> dict[str, Any]:
        """The probability of each 1."""
        return {"probabilities": [list(row) for row in self.probabilities]}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        sides = {"input": json.loads(self.source), "output": json.loads(self.text)}
        return {**sides, "log_probability": self.log_probability, **self.details()}


@dataclass(frozen=True)
class VectorPredictor:
    """Each sequence its answer; see `transduce.inference.protocols.Predictor`.

    answers: at how many of the last steps of an input the answer stands.
    """

    columns: Columns
    answers: Callable[[Any], int]

    def predict(
        self,
        model: Any,
        texts: Sequence[str],
        settings: Search | None = None,
        batch_size: int = 64,
        advance: Advance | None = None,
    ) -> list[VectorPrediction]:
        """One a text, in their order; there is nothing to search, so `settings` mean nothing.

        Raises:
            InputError: a text is no sequence of vectors, or has no place for an answer.
        """
        reads = self.columns["source"]
        encoded = reads.encode(texts)
        counts = [self.answers(each) for each in encoded]
        if wrong := [place for place, count in enumerate(counts, 1) if count < 1]:
            raise InputError(
                f"input {wrong[0]}: expected rows of 0 behind its last delimiter, one for each vector of the answer; "
                "got none."
            )

        def run(batch: tuple[Padded, Tensor]) -> NDArray[np.float64]:
            probability_BAO: NDArray[np.float64] = answer_logits(model, *batch).double().sigmoid().cpu().numpy()
            return probability_BAO

        def collate(rows: list[tuple[Any, int]]) -> tuple[Padded, Tensor]:
            inputs = reads.collate_texts([np.asarray(ids, np.float32) for ids, _ in rows])
            return inputs, torch.tensor([count for _, count in rows])

        rows, done = list(zip(encoded, counts, strict=True)), counting(advance)
        found = predict_in_batches(model, rows, collate, run, map(len, encoded), batch_size, done)
        traces = [partial(_traced, model, ids) if isinstance(model, HasMemory) else None for ids in encoded]
        return [
            replace(self._prediction(text, probability_AO[:count]), trace=trace)
            for text, probability_AO, count, trace in zip(texts, found, counts, traces, strict=True)
        ]

    def score(
        self, model: Any, pairs: Sequence[tuple[str, str]], batch_size: int = 64, advance: Advance | None = None
    ) -> list[Likelihood]:
        """See `transduce.inference.likelihood.Scores`. Raises InputError where an answer has another length."""
        reads, answer = self.columns["source"], self.columns["target"]
        encoded, answers = (
            [np.asarray(each, np.float32) for each in column.encode([pair[side] for pair in pairs])]
            for side, column in enumerate((reads, answer))
        )
        for place, (given, said) in enumerate(zip(encoded, answers, strict=True), 1):
            if self.answers(given) != len(said):
                raise InputError(
                    f"answer {place}: expected {self.answers(given)} rows, as its input has place for; got {len(said)}."
                )
        objective = BinaryCrossEntropy()

        def run(batch: tuple[Padded, Padded]) -> Tensor:
            return objective.log_probabilities(model, Batch(*batch, 0)).cpu()

        def collate(rows: list[tuple[Any, Any]]) -> tuple[Padded, Padded]:
            return reads.collate_texts([given for given, _ in rows]), answer.collate_texts([said for _, said in rows])

        rows, done = list(zip(encoded, answers, strict=True)), counting(advance)
        found = predict_in_batches(model, rows, collate, run, map(len, encoded), batch_size, done)
        told = []
        for row_N, said in zip(found, answers, strict=True):
            values, pieces = row_N[: said.size].tolist(), tuple(map(str, answer.closed(said)))
            told.append(Likelihood(sum(values), len(values), pieces, tuple(values), objective.unit))
        return told

    def _prediction(self, text: str, probability_AO: NDArray[np.float64]) -> VectorPrediction:
        bits_AO = probability_AO > 0.5
        answer = self.columns["target"]
        certain_AO = np.maximum(np.where(bits_AO, probability_AO, 1 - probability_AO), np.finfo(np.float64).tiny)
        each = np.log(certain_AO).sum(1)
        total, rows = float(each.sum()), tuple(map(tuple, probability_AO.tolist()))
        written, tokens = answer.decode(bits_AO), tuple(answer.tokens(bits_AO))  # type: ignore[arg-type]
        return VectorPrediction(text, written, total, total, tokens, tuple(each.tolist()), probabilities=rows)


@torch.inference_mode()
def _traced(model: Any, x_SF: Any) -> MemoryTrace:
    """On the processor, without the batch's axis on the model's device."""
    x_BTF = torch.as_tensor(np.asarray(x_SF, np.float32), device=next(model.parameters()).device)[None]
    return MemoryTrace(*(each.float().cpu() for each in model.eval().trace(x_BTF)))
