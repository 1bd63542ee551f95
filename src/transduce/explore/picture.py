"""The exploration of a prediction that is no text: its picture alone, without words, alternatives or attention."""

from typing import Any

from transduce.core.errors import InputError
from transduce.interpret.drawings import drawing_name, drawn
from transduce.models.protocols import HasMemory
from transduce.pipeline.pipeline import Pipeline


def pictured(pipeline: Pipeline, text: str, name: str, most: int) -> dict[str, Any]:
    """As `transduce.explore.exploration.explore` answers, with nothing to walk through but the drawing.

    Raises:
        InputError: the text is empty, or is nothing that the model reads; or its picture has more numbers than `most`.
    """
    if not text.strip():
        raise InputError("text: expected an input of this model; this one is empty.")
    _check_size(pipeline, text, most)
    prediction = pipeline.predict(text)
    drawing = drawn(pipeline.model, pipeline.task, prediction)
    listed = {
        "text": prediction.text,
        "score": prediction.score,
        "log_probability": prediction.log_probability,
        "tokens": list(prediction.tokens),
        "token_log_probabilities": list(prediction.token_log_probabilities),
    }
    return {
        "model": name,
        "text": text,
        "whole": None,
        "source": None,
        "target": {"text": prediction.text, "tokens": [], "words": []},
        "recording": None,
        "score": prediction.score,
        "log_probability": prediction.log_probability,
        "ended": prediction.ended,
        "nbest": [listed],
        "alternatives": [],
        "lattice": None,
        "attention": [],
        "drawing": {"kind": drawing_name(pipeline.model, pipeline.task), **drawing.to_dict()} if drawing else None,
    }


def _check_size(pipeline: Pipeline, text: str, most: int) -> None:
    """Before any memory is taken for it."""
    if not isinstance(pipeline.model, HasMemory):
        return
    steps, slots, width = len(pipeline.task.columns["source"].encode([text])[0]), *pipeline.model.memory_size
    if steps * slots * width > most:
        raise InputError(
            f"text: {steps:,} steps of a memory of {slots} x {width} numbers; the page shows {most:,} numbers at most, "
            f"which is {most // (slots * width):,} steps: shorten it."
        )
