"""How much of two texts is the same: features of a baseline for pairs of texts.

Shapes: B pairs.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor


def word_overlap(rows: Sequence[Any], separator: int) -> Tensor:
    """(B, 4): the share of the first text's different tokens that are in the second, that of the second's in the first,
    that of those in both among all (Jaccard), and log(1 + how many are in both).

    Args:
        rows: the ids of both texts, with one separator or more between.
    """
    return torch.tensor([_of_pair([int(each) for each in row], separator) for row in rows]).reshape(-1, 4)


def _of_pair(ids: list[int], separator: int) -> list[float]:
    middle = ids.index(separator) if separator in ids else len(ids)
    first, second = ({*side} - {separator} for side in (ids[:middle], ids[middle:]))
    both = len(first & second)
    shares = [both / max(1, len(side)) for side in (first, second, first | second)]
    return [*shares, math.log1p(both)]
