"""Head importance: the change of an output's log-probability when one head is switched off (Michel et al. 2019)."""

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from torch import nn

from transduce.attention.ablation import HasHeads, without_head
from transduce.interpret.layers import Attends, attending
from transduce.interpret.model_inputs import Given, log_probabilities
from transduce.tasks.base import Task

TOKENS = 2048  # in a batch


def importance(model: nn.Module, task: Task, given: Given, check: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """log p(output | source) with all heads, and its change without each head, in nats.

    Args:
        model: the model.
        task: its task.
        given: the source and the output.
        check: called before each pass; an exception that it raises ends the computation.
    """
    heads = [(part, head) for part in attending(model, task) for head in range(_switches(model, part))]
    rows = max(1, TOKENS // (len(given.source if given.source is not None else ()) + len(given.target)))
    (whole,) = log_probabilities(model, task, given, 1)
    found: list[dict[str, Any]] = []
    for first in range(0, len(heads), rows):
        check()
        batch = heads[first : first + rows]
        with ExitStack() as off:
            for row, (part, head) in enumerate(batch):
                off.enter_context(without_head(model.get_submodule(part.name), head, slice(row, row + 1)))
            values = log_probabilities(model, task, given, len(batch))
        for (part, head), value in zip(batch, values, strict=True):
            known = {"name": part.name, "layer": part.layer, "kind": part.kind}
            found.append({**known, "head": head, "change": value - whole})
    return {"log_probability": whole, "heads": found}


def _switches(model: nn.Module, part: Attends) -> int:
    """The number of heads of a module that can be switched off."""
    return part.heads if isinstance(model.get_submodule(part.name), HasHeads) else 0
