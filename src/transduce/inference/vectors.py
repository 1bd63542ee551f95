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

from transduce.core.errors import InputError
from transduce.data.collate import Batch
from transduce.data.columns import Columns
from transduce.inference.batches import by_length
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

    @torch.inference_mode()
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
        reads, device = self.columns["source"], next(model.parameters()).device
        encoded = reads.encode(texts)
        counts = [self.answers(each) for each in encoded]
        if wrong := [place for place, count in enumerate(counts, 1) if count < 1]:
            raise InputError(
                f"input {wrong[0]}: expected rows of 0 behind its last delimiter, one for each vector of the answer; "
                "got none."
            )
        found: dict[int, VectorPrediction] = {}
        for places in by_length(map(len, encoded), batch_size):
            inputs = reads.collate_texts([np.asarray(encoded[place], np.float32) for place in places]).to(device)
            answers_B = torch.tensor([counts[place] for place in places], device=device)
            probability_BAO = answer_logits(model.eval(), inputs, answers_B).double().sigmoid().cpu().numpy()
            for place, probability_AO in zip(places, probability_BAO, strict=True):
                made = self._prediction(texts[place], probability_AO[: counts[place]])
                trace = partial(_traced, model, encoded[place]) if isinstance(model, HasMemory) else None
                found[place] = replace(made, trace=trace)
            if advance:
                advance(len(places))
        return [found[place] for place in range(len(texts))]

    def score(
        self, model: Any, pairs: Sequence[tuple[str, str]], batch_size: int = 64, advance: Advance | None = None
    ) -> list[Likelihood]:
        """See `transduce.inference.likelihood.Scores`. Raises InputError where an answer has another length."""
        reads, answer, device = self.columns["source"], self.columns["target"], next(model.parameters()).device
        encoded, answers = (
            [np.asarray(each, np.float32) for each in column.encode([pair[side] for pair in pairs])]
            for side, column in enumerate((reads, answer))
        )
        for place, (given, said) in enumerate(zip(encoded, answers, strict=True), 1):
            if self.answers(given) != len(said):
                raise InputError(
                    f"answer {place}: expected {self.answers(given)} rows, as its input has place for; got {len(said)}."
                )
        objective, found = BinaryCrossEntropy(), dict[int, Likelihood]()
        for places in by_length(map(len, encoded), batch_size):
            inputs = reads.collate_texts([encoded[place] for place in places]).to(device)
            targets = answer.collate_texts([answers[place] for place in places]).to(device)
            each_BN = objective.log_probabilities(model.eval(), Batch(inputs, targets, 0))
            for place, row_N in zip(places, each_BN.cpu(), strict=True):
                values = row_N[: answers[place].size].tolist()
                pieces = tuple(map(str, answer.closed(answers[place])))
                found[place] = Likelihood(sum(values), len(values), pieces, tuple(values), objective.unit)
            if advance:
                advance(len(places))
        return [found[place] for place in range(len(pairs))]

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
