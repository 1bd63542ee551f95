"""Ranges of numbers, one behind the other: how the parts of rows of several lengths are found in one array.

Shapes: M ranges, S numbers of all of them.
"""

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]


def ranges(first_M: Ids, last_M: Ids) -> tuple[Ids, Ids]:
    """(S,) the numbers from each first up to its last, which is left out; (S,) which range each is of, from 0."""
    count_M = last_M - first_M
    owner_S = np.arange(len(count_M)).repeat(count_M)
    begun_M = np.cumsum(count_M) - count_M
    return np.arange(count_M.sum()) + (first_M - begun_M)[owner_S], owner_S
