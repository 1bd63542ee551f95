"""Count floating-point operations as they run: two for each multiply-add in every matrix product and
convolution. Element-wise operations (norms, activations, softmax) are left out, as is usual.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count, islice

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from transduce.data.batches import BatchPlan, Numbers, Rows
from transduce.data.collate import Batch, collate
from transduce.data.columns import Columns
from transduce.data.columns.tokens import Tokens
from transduce.inference.inputs import batches_of
from transduce.kernels.native import left_out
from transduce.objectives.protocols import Objective
from transduce.recipe.recipe import Recipe
from transduce.tasks.base import Task

SAMPLED = 16  # batches that the operations of a token are counted on


def count_operations(step: Callable[[], None]) -> int:
    """Operations of one call of `step`, its backward passes included.

    Fused kernels, torch's and ours, of which torch's counter sees nothing, are taken apart while it counts.
    """
    counter = FlopCounterMode(display=False)
    enabled = _let_mkldnn(False)
    try:
        with left_out(), sdpa_kernel(SDPBackend.MATH), counter:
            step()
    finally:
        _let_mkldnn(enabled)
    return int(counter.get_total_flops())


def _let_mkldnn(enabled: bool) -> bool:
    """Allow the library's fused kernels or not; what was so before. (`mkldnn.flags` sets more, with a warning.)"""
    before = torch.backends.mkldnn.set_flags(enabled, _fp32_precision=None)  # type: ignore[no-untyped-call]
    return bool(before[0])


def operations_a_token(recipe: Recipe, model: nn.Module, task: Task, batches: BatchPlan) -> float:
    """Of training: operations for each target token, over the first batches of the first epoch."""
    load = batches_of(batches.stores, task.columns, next(model.parameters()).device)
    model.train()
    objective = task.objective(model, recipe.training)
    operations = tokens = 0
    for rows in islice(batches.epoch(0), SAMPLED):
        batch = load(rows)
        operations += count_operations(partial(_pass, objective, model, batch))
        tokens += batch.units
    return operations / tokens


def _pass(objective: Objective, model: nn.Module, batch: Batch) -> None:
    loss = objective.loss(model, batch, objective.draw(model, batch))
    loss.minimised.backward()  # type: ignore[no-untyped-call]
    model.zero_grad(set_to_none=True)


def updates_for_tokens(batches: BatchPlan, columns: Columns, accumulate: int, tokens: float) -> int:
    """After how many updates a training has seen `tokens` target tokens (labels, numbers) at least."""
    in_batch = _counter(batches, columns)
    stream = (in_batch(rows) for epoch in count() for rows in batches.epoch(epoch))
    seen = updates = 0
    while seen < tokens:
        seen += sum(islice(stream, accumulate))
        updates += 1
    return updates


def _counter(batches: BatchPlan, columns: Columns) -> Callable[[Rows], int]:
    """What the loss of a batch is a mean over. Batches of tokens are planned and not read."""
    if isinstance(columns["target"], Tokens):
        return partial(_tokens_in, counts=_target_counts(batches))
    return lambda rows: collate(batches.stores, rows, columns).units


def _tokens_in(rows: Rows, counts: Sequence[Numbers]) -> int:
    return sum(int(each[rows.rows[rows.stores == store]].sum()) for store, each in enumerate(counts))


def _target_counts(batches: BatchPlan) -> list[Numbers]:
    """For each store, how many target tokens each example predicts."""
    found = []
    for store in batches.stores:
        added = 1 if "source" in store.fields else -1
        found.append(store.all_lengths("target") + added)
    return found
