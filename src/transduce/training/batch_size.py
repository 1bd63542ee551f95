"""`batch.tokens = "auto"`: how much fits into a batch on this machine, measured once, before the first update.

An update has `batch.effective_tokens` in all, as one batch or as 2, 4, 8 .. smaller ones. These are tried from the
smallest on, with the real model, loss, optimiser and precision:

- how much memory: for the heaviest batches there can be, the corpus's longest example over and over, and the one with
  the least padding. It must stay within a share of what is free.
- how fast: target tokens a second, over the same examples for every size.

Chosen is, on an accelerator, the largest that fits; on a processor the one from which on more makes nothing faster.
What was chosen stands in the run's resolved recipe, and a resumed run reads it there.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from transduce.core.atomic import human_size
from transduce.core.bounded_toml import toml_file
from transduce.core.folders import RESOLVED
from transduce.core.padded import Padded, nodes
from transduce.data.batches import Batches, Rows
from transduce.data.collate import Batch
from transduce.data.store import BLOCK, Store
from transduce.inference.inputs import batches_of
from transduce.recipe.recipe import Recipe
from transduce.tasks.base import Task
from transduce.tasks.protocols import TaskData
from transduce.training.checkpoint import TrainingState
from transduce.training.loop import make_update
from transduce.training.memory import activation_bytes, free_bytes, is_out_of_memory
from transduce.training.microbatches import MicrobatchPlan
from transduce.training.precision import resolve_precision
from transduce.training.run_directory import write_recipe

SHARE = {"cpu": 0.5, "cuda": 0.9}  # of free memory; a processor's is wanted by others, and by the backward pass itself
LEAST = 512  # positions: smaller batches are never worth it
GROWTH = 1.03  # less than this much faster is no faster
SAMPLED, REPEATED = 2, 3  # batches that are timed, and how often each; the best counts: others may be at work


class Trial(NamedTuple):
    """Of an update in `batches` batches of `tokens` positions: bytes of the heaviest, target tokens a second."""

    batches: int
    tokens: int
    bytes: int
    speed: float


def with_measured_batch(
    recipe: Recipe,
    trained: TrainingState,
    task: Task,
    data: TaskData,
    tell: Callable[[str], None],
    free: int | None = None,
) -> Recipe:
    """The recipe with numbers for "auto". One line is told: what was measured, what was chosen.

    Args:
        trained: will be trained a little, and is then good for nothing else.
        free: bytes; None = what the system says.
    """
    device = next(trained.model.parameters()).device
    free = free_bytes(device) if free is None else free
    limit = int(SHARE[device.type] * free)
    trials = list(_climb(recipe, trained, task, data, limit))
    fitting = [trial for trial in trials if trial.bytes <= limit] or trials[:1]
    chosen = fitting[-1] if device.type == "cuda" else _where_growth_ends(fitting)
    tell(_line(recipe, trials, chosen, limit, free))
    return _chosen(recipe, chosen.tokens, chosen.batches)


def with_earlier_batch(recipe: Recipe, run: Path) -> Recipe:
    """The recipe with the numbers that the run in directory `run` found for "auto", if there are such."""
    resolved = run / RESOLVED
    if recipe.batch.tokens != "auto" or not resolved.exists():
        return recipe
    try:
        before = toml_file(resolved)
        tokens, accumulate = before["batch"]["tokens"], before["training"]["accumulate"]
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return recipe  # `check_recipe` says what is wrong with it
    if type(accumulate) is not int or accumulate < 1 or tokens != recipe.batch.effective_tokens // accumulate:
        return recipe
    return _chosen(recipe, tokens, accumulate)


def write_chosen(recipe: Recipe, run: Path) -> None:
    """The numbers into the run's resolved recipe."""
    write_recipe(run, recipe)


def _chosen(recipe: Recipe, tokens: int, accumulate: int) -> Recipe:
    batch = recipe.batch.model_copy(update={"tokens": tokens})
    training = recipe.training.model_copy(update={"accumulate": accumulate})
    return recipe.model_copy(update={"batch": batch, "training": training})


def _climb(recipe: Recipe, trained: TrainingState, task: Task, data: TaskData, limit: int) -> Iterator[Trial]:
    """Trials from the smallest batch on, until one does not fit, or on a processor is no faster than before."""
    stores = [store for store, _ in data.corpora]
    effective = recipe.batch.effective_tokens
    load = batches_of(stores, task.columns, next(trained.model.parameters()).device)
    whole = Batches(data.corpora, _chosen(recipe, effective, 1).batch, recipe.training.seed, data.cuts)
    sample = [load(rows) for rows in islice(whole.epoch(0), SAMPLED)]
    heaviest = _heaviest(stores)
    longest = max(_positions(load(rows)) for rows in heaviest)
    best, doubled = 0.0, 0
    for batches in _numbers_of_batches(effective, max(LEAST, longest)):
        if doubled > limit:
            return
        tokens = effective // batches
        full = [load(_repeated(rows, max(1, tokens // longest))) for rows in heaviest]
        try:
            needed = max(_bytes(recipe, trained, batch) for batch in full)
            speed = _speed(recipe, trained, sample, batches)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            return
        yield Trial(batches, tokens, needed, speed)
        on_processor = sample[0].device.type == "cpu"
        if needed > limit or (on_processor and speed < GROWTH * best):
            return
        best, doubled = max(best, speed), 2 * needed


def _numbers_of_batches(effective: int, min_positions: int) -> list[int]:
    """64, 32, .. 2, 1: those that leave each batch `min_positions` positions, and 1 in any case."""
    return [number for number in (64, 32, 16, 8, 4, 2) if effective // number >= min_positions] + [1]


def _where_growth_ends(trials: list[Trial]) -> Trial:
    """The smallest that is nearly as fast as the fastest."""
    fastest = max(trial.speed for trial in trials)
    return next(trial for trial in trials if GROWTH * trial.speed >= fastest)


def _heaviest(stores: list[Store]) -> list[Rows]:
    """The longest example, and the one whose sides are most alike, of these the longest: no padding when repeated."""
    candidates = []
    for number, store in enumerate(stores):
        candidates += [_heaviest_of_block(store, number, block) for block in range(store.blocks)]
        store.release()
    found = [max(each) for each in zip(*candidates, strict=True)]
    return [Rows(np.array([store]), np.array([row])) for _, _, store, row in found]


def _heaviest_of_block(store: Store, number: int, block: int) -> list[tuple[float, float, int, int]]:
    """Of one block the best by (longer side, shorter side), and by (how alike, longer side), as comparable tuples."""
    sides = [store.lengths(field, block) for field in store.fields]
    longer, shorter = np.maximum.reduce(sides), np.minimum.reduce(sides)
    found = []
    for first, second in ((longer, shorter), (shorter / np.maximum(longer, 1), longer)):
        row = int(np.lexsort((second, first))[-1])
        found.append((float(first[row]), float(second[row]), number, block * BLOCK + row))
    return found


def _positions(batch: Batch) -> int:
    """Of the longer side of one example, as the budget counts them."""
    read, written = (
        max((each.values.shape[1] for each in nodes(side) if isinstance(each, Padded)), default=0)
        for side in (batch.inputs, batch.targets)
    )
    return max(written - 1, read)


def _repeated(rows: Rows, count: int) -> Rows:
    return Rows(np.repeat(rows.stores, count), np.repeat(rows.rows, count))


def _bytes(recipe: Recipe, trained: TrainingState, batch: Batch) -> int:
    """Of an update with `batch`, besides what stays: on an accelerator its peak, elsewhere what backward keeps."""
    device = batch.device
    precision = resolve_precision(recipe.training.precision, device)
    if device.type != "cuda":
        return activation_bytes(trained.model.train(), trained.objective, batch, precision)
    make_update(recipe.training, trained, [batch], precision)  # the optimiser's tensors are there from now on
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    make_update(recipe.training, trained, [batch], precision)
    return torch.cuda.max_memory_allocated(device) - before


def _speed(recipe: Recipe, trained: TrainingState, sample: list[Batch], batches: int) -> float:
    """Target tokens a second, in updates of `batches` batches."""
    precision = resolve_precision(recipe.training.precision, sample[0].device)
    seconds = 0.0
    for batch in sample:
        cuts: MicrobatchPlan = [[len(part) for part in np.array_split(np.arange(batch.examples), batches) if len(part)]]
        step = partial(make_update, recipe.training, trained, [batch], precision, cuts=cuts)
        seconds += min(_seconds(step) for _ in range(REPEATED))
    return sum(batch.units for batch in sample) / seconds


def _seconds(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start


def _line(recipe: Recipe, trials: list[Trial], chosen: Trial, limit: int, free: int) -> str:
    tried = ", ".join(f"{each.tokens:,}: {each.speed:,.0f} tokens/s, {human_size(each.bytes)}" for each in trials)
    warning = "" if chosen.bytes <= limit else " Even that may be too much: batches will be cut where memory runs out."
    return (
        f"batch.tokens = auto: an update of {recipe.batch.effective_tokens:,} positions is {chosen.batches} x "
        f"{chosen.tokens:,} (measured {tried}; {human_size(limit)} of {human_size(free)} may be used).{warning}"
    )
