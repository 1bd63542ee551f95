"""How a notebook shows a prediction: as its task draws it."""

from collections.abc import Callable

from transduce.inference.prediction import Prediction
from transduce.tasks.base import Task


def picture_of(task: Task) -> Callable[[Prediction], str] | None:
    """What makes HTML of a prediction of this task; None where its text says all."""

    def picture(prediction: Prediction) -> str:
        from transduce.interpret.drawings import drawing_class  # late, as it draws with rich

        html: str = drawing_class(task.drawing).of(prediction)._repr_html_()
        return html

    return picture if task.drawing else None
