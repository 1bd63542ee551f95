"""What a recipe would do: the resolved recipe, parameters, memory and batches, before hours are spent on it."""

import math
from collections.abc import Iterable
from itertools import islice
from statistics import mean
from typing import Any, NamedTuple

from rich.table import Table

from transduce.core.atomic import human_size
from transduce.core.graphs import Graphs
from transduce.core.padded import Padded, nodes
from transduce.data.collate import Batch
from transduce.inference.inputs import batches_of
from transduce.recipe.recipe import Recipe
from transduce.training.batch_size import with_measured_batch
from transduce.training.display import Display
from transduce.training.initialization import device, new_training
from transduce.training.memory import activation_bytes
from transduce.training.precision import resolve_precision
from transduce.training.run import open_task

PLANNED = 2000  # batches that are looked at
MOMENTS = {"adamw": 2, "muon": 2, "sgd": 1, "rmsprop": 2}  # of every weight, at most


Positions = tuple[int, int]  # those that hold a token, and all


class _Seen(NamedTuple):
    examples: int
    units: int
    source: Positions
    target: Positions


def dry_run(recipe: Recipe, display: Display) -> dict[str, Any]:
    """Show and return the figures; nothing is trained and no run directory made."""
    import tomli_w

    display.tell(tomli_w.dumps(recipe.to_table()))
    task, data = open_task(recipe, display)
    if recipe.batch.tokens == "auto":
        recipe = with_measured_batch(recipe, new_training(recipe, task), task, data, display.tell)
    trained = new_training(recipe, task)
    batches = data.batches(recipe.batch, recipe.training.seed)
    load = batches_of(batches.stores, task.columns, device())
    largest, seen = _looked_at(load(rows) for rows in islice(batches.epoch(0), PLANNED))
    precision = resolve_precision(recipe.training.precision, device())
    parameters = sum(weight.numel() for weight in trained.model.parameters())
    activations = activation_bytes(trained.model, trained.objective, largest, precision)
    states = 1 + 1 + MOMENTS[recipe.training.optimizer] + (1 if recipe.training.average else 0)
    figures = {
        "parameters": parameters,
        "memory_bytes": {"weights_and_optimizer": parameters * 4 * states, "activations": activations},
        "precision": precision,
        "batch": {"tokens": recipe.batch.tokens, "accumulate": recipe.training.accumulate},
        "batches_an_epoch": batches.count(0),
        "examples": sum(len(store) for store in batches.stores),
        "sentences_a_batch": mean(each.examples for each in seen),
        "target_tokens_a_batch": mean(each.units for each in seen),
        "padding": {
            "target": _padding(each.target for each in seen),
            "source": _padding(each.source for each in seen),
        },
    }
    display.console.print(_table(figures))
    return figures


def _size(batch: Batch) -> int:
    """Of the widest part of a batch: what is padded, or the nodes of graphs."""
    graphs = [each.nodes for each in nodes(batch.inputs) if isinstance(each, Graphs)]
    return max([*graphs, *(each.values.numel() for each in batch.sequences())])


def _looked_at(batches: Iterable[Batch]) -> tuple[Batch, list[_Seen]]:
    """The largest of the batches, and what is noted of each; no more than two are held at once."""
    largest, seen = None, []
    for batch in batches:
        seen.append(_Seen(batch.examples, batch.units, _positions(batch.inputs), _positions(batch.targets)))
        if largest is None or _size(batch) > _size(largest):
            largest = batch
    assert largest is not None  # a store without examples is refused before
    return largest, seen


def _positions(side: Any) -> Positions:
    padded = [each for each in nodes(side) if isinstance(each, Padded)]
    return sum(int(each.lengths.sum()) for each in padded), sum(math.prod(each.values.shape[:2]) for each in padded)


def _padding(counts: Iterable[Positions]) -> float:
    """The share of positions that hold no token."""
    held, positions = map(sum, zip(*counts, strict=True))
    return 1 - held / positions if positions else 0.0


def _table(figures: dict[str, Any]) -> Table:
    memory, pads, batch = figures["memory_bytes"], figures["padding"], figures["batch"]
    table = Table(show_header=False, box=None)
    for name, value in (
        ("parameters", f"{figures['parameters']:,}"),
        ("weights, gradients, optimizer, average", human_size(memory["weights_and_optimizer"])),
        ("activations of the largest batch", f"{human_size(memory['activations'])} (measured, {figures['precision']})"),
        ("examples", f"{figures['examples']:,}"),
        ("an update", f"{batch['accumulate']:,} x {batch['tokens']:,} positions at most"),
        ("batches an epoch", f"{figures['batches_an_epoch']:,}"),
        ("examples a batch", f"{figures['sentences_a_batch']:.1f}"),
        ("target tokens a batch", f"{figures['target_tokens_a_batch']:,.0f}"),
        ("padding, source / target", f"{pads['source']:.1%} / {pads['target']:.1%}"),
    ):
        table.add_row(name, value)
    return table
