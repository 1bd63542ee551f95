"""What two texts share, against sets of words."""

import math

import pytest
import torch

from transduce.core.padded import Padded
from transduce.inference.word_overlap import word_overlap
from transduce.layers.shared_ngrams import shared_in_pairs

SEPARATOR = 2


def test_overlap_is_that_of_sets() -> None:
    rows = [[5, 6, 6, SEPARATOR, 6, 7, 8], [5, SEPARATOR, SEPARATOR, 5], [5], []]
    wanted = [[1 / 2, 1 / 3, 1 / 4, math.log(2)], [1, 1, 1, math.log(2)], [0, 0, 0, 0], [0, 0, 0, 0]]
    torch.testing.assert_close(word_overlap(rows, SEPARATOR), torch.tensor(wanted))


def slow(row: list[int], longest: int) -> list[list[float]]:
    """f of each token, from the n-grams of both texts."""
    middle = row.index(SEPARATOR)
    sides = [[*range(middle)], [place for place in range(middle, len(row)) if row[place] != SEPARATOR]]
    found = [[0.0] * longest for _ in row]
    for own, other in (sides, sides[::-1]):
        for size in range(1, longest + 1):
            there = {tuple(row[place] for place in other[at : at + size]) for at in range(len(other) - size + 1)}
            for at in range(len(own) - size + 1):
                if tuple(row[place] for place in own[at : at + size]) in there:
                    for place in own[at : at + size]:
                        found[place][size - 1] = 1.0
    return found


@pytest.mark.parametrize("seed", range(5))
def test_shared_ngrams_of_pairs_are_those_of_slow_loops(seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    texts = [torch.randint(3, 7, (length,), generator=draw).tolist() for length in (6, 9, 1, 4, 12, 5)]
    rows = [[*texts[at], SEPARATOR, *texts[at + 1], SEPARATOR] for at in (0, 2, 4)]
    most = max(map(len, rows))
    values = torch.tensor([row + [0] * (most - len(row)) for row in rows])
    found = shared_in_pairs(Padded(values, torch.tensor(list(map(len, rows)))), SEPARATOR, 3)
    for row, each in zip(rows, found.tolist(), strict=True):
        assert each[: len(row)] == slow(row, 3)
        assert not any(map(any, each[len(row) :]))
