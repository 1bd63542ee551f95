"""In which order the nodes of a batch of trees are computed: level by level, each level of all trees at once.

Level 0 is the words; a phrase is one level above its highest part. Each level's states are cut into pieces by the level
of the phrase that they go to, so that every state is moved once.

Shapes: B examples, N nodes, M nodes of a level, P parts of its nodes that have most, L levels.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from transduce.core.padded import Padded

Numbers = NDArray[np.int64]


class Level(NamedTuple):
    """A level, the words' included.

    parts: (M, P) the places of each node's parts among all states that arrive here; -1 = it has fewer. None for words.
    pieces: how many of its states go to each level; the last number is those of roots, which go nowhere.
    """

    parts: Tensor | None
    pieces: list[int]


class TreePlan(NamedTuple):
    """levels: from the words upwards. places: (B, N) of each node among the states of all levels; 0 for padding."""

    levels: list[Level]
    places: Tensor


def plan(parents: Padded, numbers: Padded, heights: Padded) -> TreePlan:
    device, real_BN = parents.values.device, parents.mask().cpu().numpy()
    parent_K, number_K, height_K = (each.values.cpu().numpy()[real_BN] for each in (parents, numbers, heights))
    starts_B = np.cumsum(real_BN.sum(1)) - real_BN.sum(1)
    above_K = np.where(parent_K >= 0, parent_K + np.repeat(starts_B, real_BN.sum(1)), -1)
    last = int(height_K.max()) + 1
    goes_K = np.where(above_K >= 0, height_K[above_K], last)  # the level of the phrase
    made, arrives = np.lexsort((goes_K, height_K)), np.lexsort((height_K, goes_K))
    made_K, arrival_K = np.empty_like(made), np.empty_like(arrives)
    made_K[made], arrival_K[arrives] = np.arange(len(made)), np.arange(len(made))
    firsts_L = np.searchsorted(height_K[made], np.arange(last + 1))
    arrived_L = np.searchsorted(goes_K[arrives], np.arange(last + 1))
    below_K = np.flatnonzero(above_K >= 0)
    levels = []
    for level in range(last):
        nodes = made[firsts_L[level] : firsts_L[level + 1]]
        pieces = np.bincount(goes_K[nodes], minlength=last + 1).tolist()
        parts = None
        if level:
            here = below_K[goes_K[below_K] == level]
            parts_MP: Numbers = np.full((len(nodes), int(number_K[here].max()) + 1), -1, np.int64)
            parts_MP[made_K[above_K[here]] - firsts_L[level], number_K[here]] = arrival_K[here] - arrived_L[level]
            parts = torch.from_numpy(parts_MP).to(device)
        levels.append(Level(parts, pieces))
    places_BN: Numbers = np.zeros(real_BN.shape, np.int64)
    places_BN[real_BN] = made_K
    return TreePlan(levels, torch.from_numpy(places_BN).to(device))
