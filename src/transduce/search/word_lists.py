"""The words on each sentence's shortlist, in NumPy; see `transduce.search.shortlist`.

Shapes: B sentences, V vocabulary, L words of all lists.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from transduce.kernels.native.arrays import Array


def permit(allowed_BV: Array, forbidden: Sequence[int], end: int) -> None:
    """Take forbidden tokens from the lists (bool), and add the end token; in place.

    Tokens outside the vocabulary are left alone.
    """
    allowed_BV[:, [token for token in forbidden if token < allowed_BV.shape[1]]] = False
    allowed_BV[:, end : end + 1] = True


def words_of(allowed_BV: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The concatenated lists, each in ascending order, and the offsets (B + 1,) of each list."""
    rows, size = allowed_BV.shape
    place_L = np.flatnonzero(allowed_BV)
    return place_L % size, np.searchsorted(place_L, np.arange(rows + 1) * size)
