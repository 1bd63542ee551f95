"""Whether a search lets outputs be as long as the targets are."""

import math

import numpy as np

from transduce.data.store import Store
from transduce.search.settings import Search

FEW = 0.01  # held-out targets that may be longer
FACTOR = 100  # from so many times the source on, it is not the source that says how long an output is


def too_long(store: Store, search: Search) -> list[str]:
    """A sentence if more than one target in a hundred is longer, with its end, than an output may be.

    Args:
        store: held-out pairs of token ids, "source" and "target".
    """
    source_N, target_N = store.all_lengths("source"), store.all_lengths("target") + 1
    limit_N = np.array([search.limit(length) for length in source_N.tolist()])
    longer = int((target_N > limit_N).sum())
    if longer <= FEW * len(store):
        return []
    factor = math.ceil(((target_N - search.max_length_offset) / source_N.clip(1)).max())
    room = f"max_length_factor = {factor}" if factor <= FACTOR else f"max_length_offset = {target_N.max()}"
    return [
        f"{longer:,} of {len(store):,} targets for validation are longer than an output may be: "
        f"search.max_length_factor = {search.max_length_factor:g} times the tokens of the source, and "
        f"search.max_length_offset = {search.max_length_offset} more. "
        f"search.{room} leaves room for all."
    ]
