"""Greedy search, which takes the most likely token at each step. It equals a beam of one.

The result is not necessarily the most likely sequence.
"""

from torch import Tensor

from transduce.search import fused_search
from transduce.search.batch_request import BatchRequest
from transduce.search.hypothesis import Hypothesis
from transduce.search.settings import Search
from transduce.search.stepwise import follow


def search(batch: BatchRequest, settings: Search) -> list[list[Hypothesis]]:
    """One hypothesis for each row."""
    started = batch.begin()
    if (found := fused_search.search(batch, settings, 1, started[0])) is not None:
        return found
    return [[each] for each in follow(batch, likeliest, settings.length, started=started)]


def likeliest(log_probabilities_NV: Tensor, path_N: Tensor, time: int) -> Tensor:
    """The most likely token (N,); ties go to the lowest id, as `argmax` guarantees."""
    return log_probabilities_NV.argmax(dim=1)
