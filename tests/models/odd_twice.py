"""A task for models that write all words at once: five digits, and the target says each odd one twice.

So its length must be told from the tokens, and equal words may stand beside each other.
"""

from typing import Any

import torch

from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.objectives.protocols import Objective
from transduce.search.dispatch import search
from transduce.search.request import Request
from transduce.search.settings import Search

START, END, LEAST, MOST = 1, 2, 4, 12  # digits are LEAST .. MOST - 1


def learn(model: Any, objective: Objective, updates: int) -> None:
    """So many updates on fresh batches of 48."""
    generator = torch.Generator().manual_seed(0)
    optimizer = torch.optim.AdamW(model.parameters(), 4e-3)
    for _ in range(updates):
        batch = _batch(*_pairs(48, generator))
        loss, _ = objective.loss(model, batch, objective.draw(model, batch))
        optimizer.zero_grad()
        (loss / batch.targets.lengths.sum()).backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def right_of_100(model: Any, asked: Search) -> int:
    """How many of a hundred new sources are written without a fault."""
    source, targets = _pairs(100, torch.Generator().manual_seed(1))
    found = search(model, source, [Request(20)] * 100, asked, start=START, end=END, forbidden=[0, START])
    return sum(list(best.tokens) == [*target, END] for [best], target in zip(found, targets, strict=True))


def _pairs(count: int, generator: torch.Generator) -> tuple[Padded, list[list[int]]]:
    values_BS = torch.randint(LEAST, MOST, (count, 5), generator=generator)
    targets = [[t for token in row for t in [token] * (1 + token % 2)] for row in values_BS.tolist()]
    return Padded(values_BS, torch.full((count,), 5)), targets


def _batch(source: Padded, targets: list[list[int]]) -> Batch:
    lengths_B = torch.tensor([len(target) + 2 for target in targets])
    values_BT = torch.zeros(len(targets), int(lengths_B.max()), dtype=torch.int64)
    for row, target in enumerate(targets):
        values_BT[row, : len(target) + 2] = torch.tensor([START, *target, END])
    return Batch(source, Padded(values_BT, lengths_B), 0)
