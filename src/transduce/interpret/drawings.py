"""Which picture a prediction has: that of its task, else what a language model looks back at, else its attention.

A drawing is a class in this folder. A task names its file (`drawing`), and notebook, terminal and page all ask it.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from rich.console import Console, ConsoleOptions, RenderResult
from torch import nn

from transduce.core.registry import resolve
from transduce.core.trust import allow_code
from transduce.inference.prediction import Prediction
from transduce.interpret.attention import Attention
from transduce.interpret.layers import attending
from transduce.interpret.look_back import LookBack
from transduce.tasks.base import Task

LOOK_BACK = "look_back"


class Drawing(Protocol):
    """A picture of one prediction, which prints itself in a terminal and shows itself in a notebook."""

    @classmethod
    def of(cls, prediction: Prediction, attention: Attention | None = None) -> Self:
        """The picture.

        Args:
            attention: what the model attended to; None = the prediction is asked for it, if it is needed.
        """
        ...

    def to_dict(self) -> dict[str, Any]:
        """What the explorer's page draws."""
        ...

    def _repr_html_(self) -> str: ...

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult: ...


@runtime_checkable
class HasFigure(Drawing, Protocol):
    """A drawing that a finished training keeps, if it is all that is shown of the task."""

    def write_figure(self, folder: Path) -> None:
        """Write it as a file of its own name. Raises InputError where there is no matplotlib, if it takes that."""
        ...


def drawing_name(model: nn.Module, task: Task) -> str:
    """The file of a model's pictures, without its ending; "" where there is none but the attention itself."""
    if task.drawing or "source" in task.columns:
        return task.drawing
    return LOOK_BACK if any(part.causal for part in attending(model, task)) else ""


def drawing_class(name: str) -> Any:
    """The class of a task's or a model's drawing, which code names that has been allowed to run."""
    allow_code({"kind": name})
    return resolve("interpret", name)


def drawn(model: nn.Module, task: Task, prediction: Prediction, attention: Attention | None = None) -> Drawing | None:
    """The picture of a prediction, if it has one.

    Raises:
        InputError: the picture needs attention, and there is none, as the text was empty or read in several pieces.
    """
    name = drawing_name(model, task)
    if not name:
        return None
    drawing: Drawing = drawing_class(name).of(prediction, attention)
    if isinstance(drawing, LookBack):
        return replace(drawing, prompt=len(task.columns["target"].encode([prediction.source])[0]))
    return drawing
