"""A description of a model for the explorer: what it is, and which views it supports."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import nn

from transduce.attention.ablation import HasHeads
from transduce.attention.interventions import can_change
from transduce.data.columns.frames import Frames
from transduce.data.columns.tokens import Tokens
from transduce.data.speech.filterbank import SHIFT
from transduce.inference.example_texts import example_texts
from transduce.inference.line_marks import LineMarks
from transduce.interpret.drawings import drawing_name
from transduce.interpret.layers import Attends, attending
from transduce.interpret.steps import HasSteps
from transduce.models.protocols import Steps
from transduce.recipe.recipe import Recipe
from transduce.tasks.base import Task

NO_POSITIONS = "none"
ROWS = 100_000  # of attention weights


def described(
    name: str, model: nn.Module, task: Task, recipe: Recipe, training: bool, provenance: Mapping[str, Any]
) -> dict[str, Any]:
    """The explorer's entry for a model: its kind, languages, attention modules and views.

    Args:
        name: the model's name.
        model: the model.
        task: its task.
        recipe: its recipe.
        training: whether there is a log of its training.
        provenance: the model file's provenance, which may contain example sentences.
    """
    table = recipe.to_table()
    parts = attending(model, task)
    modules = [model.get_submodule(part.name) for part in parts]
    return {
        "name": name,
        "kind": table["model"]["kind"],
        "task": table["task"]["kind"],
        "source": table["task"].get("source") or None,
        "target": table["task"].get("target") or None,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "layers": [
            {"name": part.name, "kind": part.kind, "layer": part.layer, "heads": part.heads, "cuts": can_change(module)}
            for part, module in zip(parts, modules, strict=True)
        ],
        "shows": {
            "writes": isinstance(task.columns["target"], Tokens),
            "beam": isinstance(model, Steps),
            "steps": any(isinstance(module, HasSteps) for module in modules),
            "importance": any(isinstance(module, HasHeads) for module in modules),
            "training": training,
            "positions": _positions(table["model"]),
            "drawing": drawing_name(model, task),
            "alone": task.drawn_alone,
        },
        "examples": example_texts(provenance, isinstance(task.columns.get("source"), Frames)),
        "opening": _opening(provenance.get("opening"), parts),
        "accepts_audio": _accepts_audio(task),
        "generates": _generates(task, recipe),
    }


def _accepts_audio(task: Task) -> dict[str, Any] | None:
    """What a model of speech is given: the rate of its sound, the longest recording; None if it reads text."""
    source = task.columns.get("source")
    if not isinstance(source, Frames):
        return None
    longest = task.max_source_length * SHIFT
    seconds = longest if source.seconds is None else min(longest, source.seconds)
    return {"rate": source.rate, "seconds": round(seconds, 2), "files": source.files}


def _generates(task: Task, recipe: Recipe) -> dict[str, Any] | None:
    """What stands between the lines of a language model, None if it can write no acrostic; None for other models."""
    target = task.columns["target"]
    if "source" in task.columns or not isinstance(target, Tokens):
        return None
    backwards = target.tokenizer.right_to_left
    return {"lines": None if backwards else LineMarks(target.tokenizer, recipe.data).first}


def _positions(model: Mapping[str, Any]) -> str:
    """The kind of positions that the model reads; a recurrent encoder has none."""
    return NO_POSITIONS if model.get("encoder") == "recurrent" else str(model.get("positions", NO_POSITIONS))


def _opening(found: Any, parts: Sequence[Attends]) -> dict[str, Any] | None:
    """The head and the row that a model file says to open on, if the model has such a head; older files say none."""
    if not isinstance(found, dict) or set(found) != {"layer", "head", "row"}:
        return None
    heads = next((part.heads for part in parts if part.name == found["layer"]), 0)
    numbers = (found["head"], found["row"])
    known = all(type(each) is int and 0 <= each < ROWS for each in numbers) and found["head"] < heads
    return found if known else None
