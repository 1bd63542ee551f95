"""Whether work grows with its input as a line does or as a square, on a fast and on a slow machine alike."""

import time
from collections.abc import Callable

TIMES = 8  # as much input
ALLOWED = 3 * TIMES  # times the cost: a line's is about 8 times, a square's 64 times
LEAST = 0.002  # seconds: less than that cannot be told from none
ATTEMPTS = 3  # a square fails them all, and what else the machine does hardly ever disturbs so many


def grows_as_a_line(work: Callable[[int], object], size: int) -> bool:
    """Whether 8 times `size` costs about 8 times what `size` costs, in processor time."""

    def cost(of: int) -> float:
        begun = time.process_time()
        work(of)
        return time.process_time() - begun

    return any(cost(TIMES * size) <= ALLOWED * max(LEAST, cost(size)) for _ in range(ATTEMPTS))
