"""Long sound, cut where it is quietest, for a model that hears 30 s at once.

Shapes: N samples, M moments.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

EARLIEST = 2 / 3  # of what the model hears at once: a cut lies between this and all of it
QUIET = 0.1  # seconds whose power is compared


class HeardPart(NamedTuple):
    """A part of a recording. features: (S, F). start, end: in seconds."""

    features: NDArray[np.float32]
    start: float
    end: float


def parts_of(wave_N: Tensor, rate: int, seconds: float) -> Iterator[tuple[int, int]]:
    """The samples [first, last) of parts of at most `seconds`, cut in the middle of the quietest 0.1 s."""
    first, longest = 0, int(seconds * rate)
    while len(wave_N) - first > longest:
        last = first + _quietest(wave_N[first : first + longest], int(EARLIEST * longest), int(QUIET * rate))
        yield first, last
        first = last
    yield first, len(wave_N)


def _quietest(wave_N: Tensor, earliest: int, width: int) -> int:
    """Where to cut, from sample `earliest` on; of moments that are equally quiet, the last."""
    step = max(1, width // 10)
    power_M = wave_N[earliest:].double().square().unfold(0, width, step).sum(1)
    return earliest + int((power_M <= power_M.min()).nonzero()[-1]) * step + width // 2
