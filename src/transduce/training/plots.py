"""What a finished run looks like: `figures/training.png`, `figures/attention.png` of one held-out sentence,
or the picture of it that its task draws; `figures/exposure_bias.png` where it was measured, and for labels
`figures/confusion.png` of a test set.

Shapes: T target positions, S source positions.
"""

import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from transduce.core.errors import InputError
from transduce.inference.prediction import Prediction
from transduce.interpret.attention import attention_of
from transduce.interpret.confusion import confusion_figure
from transduce.interpret.drawing import save
from transduce.interpret.drawings import HasFigure, drawn
from transduce.interpret.figures import attention_figure, exposure_figure, training_curves
from transduce.interpret.fonts import FontWarning
from transduce.metrics.confusion import Confusion
from transduce.models.protocols import writes_at_once
from transduce.runtime.event_log import read_log
from transduce.search.settings import Search
from transduce.tasks.base import Task
from transduce.tasks.protocols import TaskData

Weights = NDArray[np.floating]
VARIABLE = "TRANSDUCE_FIGURES"  # in the environment: `on`, as without it, or `off`
SHOWN = range(4, 17)  # words of a sentence that fits a page and is worth looking at


def figures_enabled() -> bool:
    """Whether trainings draw figures, which `TRANSDUCE_FIGURES=off` saves a second of each.

    Raises:
        InputError: it is neither on nor off.
    """
    choice = os.environ.get(VARIABLE) or "on"
    if choice not in ("on", "off"):
        raise InputError(f"{VARIABLE}={choice}: expected on or off.")
    return choice == "on"


def write_figures(
    run: Path,
    model: nn.Module,
    task: Task,
    data: TaskData,
    tests: Mapping[str, Mapping[str, Any]],
    tell: Callable[[str], None],
) -> None:
    """Draw what there is to draw into `run/figures`; what cannot be drawn, matplotlib or a font missing too, is told.

    Args:
        tests: of the report.
    """
    with _left_out_told(tell):
        records = read_log(run / "log.jsonl")
        save(training_curves(records), run / "figures" / "training.png")
        by_position = [test["errors_by_position"] for test in tests.values() if "errors_by_position" in test]
        if by_position:
            save(exposure_figure(records, by_position[0]), run / "figures" / "exposure_bias.png")
        first = sentence(data)
        drawing = (
            drawn(model, task, prediction_with_attention(model, task, first)) if first and task.drawn_alone else None
        )
        if isinstance(drawing, HasFigure):
            drawing.write_figure(run / "figures")
        pairs = shown(model, task, first) if first and not task.drawn_alone else None
        if pairs:
            title = "What each word of the output attends to: mean of all layers and heads"
            save(attention_figure(*pairs, title), run / "figures" / "attention.png")
        confused = {name: Confusion.from_dict(test["confusion"]) for name, test in tests.items() if "confusion" in test}
        for name, confusion in confused.items():
            which = "-" + re.sub(r"[^\w.-]", "_", name) if len(confused) > 1 else ""
            file = f"confusion{which}.png"
            save(confusion_figure(confusion, f"What was taken for what: {name}"), run / "figures" / file)


@contextmanager
def _left_out_told(tell: Callable[[str], None]) -> Iterator[None]:
    """What ends the drawing inside is told, and which fonts are missing."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", FontWarning)
        try:
            yield
        except (InputError, OSError) as error:
            tell(f"Figures left out: {error}")
    for each in warned:
        if issubclass(each.category, FontWarning):
            tell(str(each.message))
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def prediction_with_attention(model: nn.Module, task: Task, text: str, search: Search | None = None) -> Prediction:
    """The prediction for `text`, by default the quickest, which can be asked for its attention."""
    [prediction] = task.predictor.predict(model.eval(), [text], search)
    return prediction.shown_by(lambda asked: attention_of(model, task, asked))


def sentence(data: TaskData) -> str:
    """The first held-out source of a length that fits a page; empty when there is none."""
    held_out = [data.validation] if data.validation else []
    texts = [source for dataset in [*held_out, *data.tests.values()] for source, _ in dataset.texts]
    return next((text for text in texts if len(text.split()) in SHOWN), next((text for text in texts if text), ""))


def shown(model: nn.Module, task: Task, text: str) -> tuple[list[str], list[str], Weights] | None:
    """What the quickest prediction for `text` attended to: its words (T), those of the source (S), weights (T, S).

    None where nothing attends to a source.
    """
    prediction = prediction_with_attention(model, task, text)
    if not prediction.tokens and writes_at_once(model):
        return None
    found = prediction.attention()
    if not found.of("cross"):
        return None
    rows, columns, weights_TS, _ = found.by_words()
    return rows, columns, weights_TS
