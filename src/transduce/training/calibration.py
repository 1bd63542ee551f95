"""How sure a finished model's outputs are, calibrated on validation pairs; see `transduce.inference.confidence`."""

from typing import Any

from transduce.inference.confidence import Calibration, WrittenText
from transduce.inference.decode import SearchPredictor
from transduce.search.settings import Search
from transduce.tasks.base import Task
from transduce.tasks.protocols import Dataset
from transduce.training.validation import spread

SENTENCES = 500  # validation pairs that are translated for it


def calibration_of(model: Any, task: Task, dataset: Dataset | None, search: Search) -> Calibration | None:
    """From validation pairs, evenly spread; None without them, or where the task's outputs are no sentences."""
    if dataset is None or not task.of_sentences or not isinstance(task.predictor, SearchPredictor):
        return None
    pairs = spread(dataset.texts, SENTENCES)
    found = task.predictor.predict(model, [source for source, _ in pairs], search.model_copy(update={"nbest": 1}))
    outputs = [WrittenText(each.text, each.tokens, each.token_log_probabilities) for each in found]
    return Calibration.of(outputs, [reference for _, reference in pairs], task.tokenizers["target"])
