"""A memory's heads as the paper's equations have them, slot by slot (Graves et al. 2014, equations 5 to 9)."""

import math
from typing import Any

import numpy as np

from transduce.layers.external_memory import TINY_LENGTH, TINY_WEIGHT


def heads_of(said: Any, sizes: Any) -> list[dict[str, Any]]:
    """The parameters of each head, out of what the controller says."""
    keys, positive, opened, shifts, added = np.split(said, np.cumsum(sizes.parts)[:-1])
    found = []
    for number in range(sizes.heads):
        written = number - sizes.read
        span = slice(written * sizes.width, (written + 1) * sizes.width)
        found.append(
            {
                "key": keys[number * sizes.width : (number + 1) * sizes.width],
                "strength": math.log1p(math.exp(positive[number])),
                "exponent": 1 + math.log1p(math.exp(positive[sizes.heads + number])),
                "gate": 1 / (1 + math.exp(-opened[number])),
                "shift": shifts[number * sizes.shifts : (number + 1) * sizes.shifts],
                "erase": 1 / (1 + np.exp(-opened[sizes.heads :][span])) if written >= 0 else None,
                "add": np.tanh(added[span]) if written >= 0 else None,
            }
        )
    return found


def addressed(head: dict[str, Any], memory: Any, before: Any, reach: int) -> Any:
    """Equations 5 to 9, for one head and one step."""
    slots = len(memory)

    def length(vector: Any) -> float:
        return math.sqrt(sum(each**2 for each in vector) + TINY_LENGTH)

    cosine = [
        sum(a * b for a, b in zip(head["key"], slot, strict=True)) / length(head["key"]) / length(slot)
        for slot in memory
    ]
    powers = [math.exp(head["strength"] * each) for each in cosine]
    content = [each / sum(powers) for each in powers]
    mixed = [head["gate"] * new + (1 - head["gate"]) * old for new, old in zip(content, before, strict=True)]
    shift = np.exp(head["shift"]) / np.exp(head["shift"]).sum()
    moved = [
        sum(shift[j + reach] * mixed[(slot - j) % slots] for j in range(-reach, reach + 1)) for slot in range(slots)
    ]
    sharp = [(each + TINY_WEIGHT) ** head["exponent"] for each in moved]
    return np.array([each / sum(sharp) for each in sharp])
