"""What a finished run looks like: `figures/training.png`, `figures/attention.png` of one held-out sentence,
`figures/exposure_bias.png` where it was measured, for vectors `figures/memory.png`, for graphs `figures/graph.svg`,
for stories `figures/hops.png`, and for labels `figures/confusion.png` of a test set.

Shapes: T target positions, S source positions.
"""

import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from transduce.core.atomic import write_text
from transduce.core.errors import InputError
from transduce.inference.prediction import Prediction
from transduce.interpret.attention import attention_of
from transduce.interpret.confusion import confusion_figure
from transduce.interpret.drawing import save
from transduce.interpret.exposure_figure import exposure_figure
from transduce.interpret.figures import attention_figure, training_curves
from transduce.interpret.fonts import FontWarning
from transduce.interpret.hop_shading import HOPS, HopShading
from transduce.interpret.memory_drawing import MEMORY, MemoryDrawing
from transduce.interpret.neighborhood_drawing import NEIGHBORHOOD, NeighborhoodDrawing
from transduce.metrics.confusion import Confusion
from transduce.models.protocols import writes_at_once
from transduce.runtime.event_log import read_log
from transduce.tasks.protocols import Task, TaskData

Weights = NDArray[np.floating]
SHOWN = range(4, 17)  # words of a sentence that fits a page and is worth looking at


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
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", FontWarning)
        _write_figures(run, model, task, data, tests, tell)
    for each in warned:
        if issubclass(each.category, FontWarning):
            tell(str(each.message))
        else:
            warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def _write_figures(
    run: Path,
    model: nn.Module,
    task: Task,
    data: TaskData,
    tests: Mapping[str, Mapping[str, Any]],
    tell: Callable[[str], None],
) -> None:
    try:
        records = read_log(run / "log.jsonl")
        save(training_curves(records), run / "figures" / "training.png")
        by_position = [test["errors_by_position"] for test in tests.values() if "errors_by_position" in test]
        if by_position:
            save(exposure_figure(records, by_position[0]), run / "figures" / "exposure_bias.png")
        first = sentence(data)
        if task.drawing == MEMORY and first:
            [prediction] = task.predictor.predict(model.eval(), [first])
            save(MemoryDrawing.of(prediction).plot(), run / "figures" / "memory.png")
        if task.drawing == HOPS and first:
            save(HopShading.of(looked_at(model, task, first)).plot(), run / "figures" / "hops.png")
        if task.drawing == NEIGHBORHOOD and first:
            [prediction] = task.predictor.predict(model.eval(), [first])
            write_text(run / "figures" / "graph.svg", NeighborhoodDrawing.of(prediction).svg())
        pairs = shown(model, task, first) if first and not task.drawn_alone else None
        if pairs:
            title = "What each word of the output attends to: mean of all layers and heads"
            save(attention_figure(*pairs, title), run / "figures" / "attention.png")
        confused = {name: Confusion.from_dict(test["confusion"]) for name, test in tests.items() if "confusion" in test}
        for name, confusion in confused.items():
            which = "-" + re.sub(r"[^\w.-]", "_", name) if len(confused) > 1 else ""
            file = f"confusion{which}.png"
            save(confusion_figure(confusion, f"What was taken for what: {name}"), run / "figures" / file)
    except (InputError, OSError) as error:
        tell(f"Figures left out: {error}")


def looked_at(model: nn.Module, task: Task, text: str) -> Prediction:
    """The quickest prediction for `text`, which can be asked for its attention."""
    [prediction] = task.predictor.predict(model.eval(), [text])
    return prediction.shown_by(lambda asked: attention_of(model, task, asked))


def sentence(data: TaskData) -> str:
    """The first held-out source of a length that fits a page; empty when there is none."""
    held_out = [data.validation] if data.validation else []
    texts = [source for dataset in [*held_out, *data.tests.values()] for source, _ in dataset.texts]
    return next((text for text in texts if len(text.split()) in SHOWN), next((text for text in texts if text), ""))


def shown(model: nn.Module, task: Task, text: str) -> tuple[list[str], list[str], Weights] | None:
    """What the quickest prediction for `text` attended to: its tokens (T), those of the source (S), weights (T, S).

    None where nothing attends to a source.
    """
    [prediction] = task.predictor.predict(model.eval(), [text])
    if not prediction.tokens and writes_at_once(model):
        return None
    found = attention_of(model, task, prediction)
    weights_TS = found.alignment()
    if weights_TS is None:
        return None
    rows, columns = weights_TS.shape
    return found.labels("target", rows), found.labels("source", columns), weights_TS
