"""Which part of a model attends, for an example of a request; found with torch."""

from transduce.interpret.layers import attending
from transduce.interpret.steps import HasSteps
from transduce.pipeline.pipeline import Pipeline


def first_attending(pipeline: Pipeline) -> str:
    """The name of the first part whose computation can be shown; "" if there is none."""
    parts = attending(pipeline.model, pipeline.task)
    return next((part.name for part in parts if isinstance(pipeline.model.get_submodule(part.name), HasSteps)), "")
