"""Greedy search: at each step the likeliest token. The same as a beam of one; not the likeliest sequence."""

from torch import Tensor

from transduce.search import one_call
from transduce.search.hypothesis import Hypothesis
from transduce.search.job import Job
from transduce.search.path import follow
from transduce.search.settings import Search


def search(job: Job, settings: Search) -> list[list[Hypothesis]]:
    """One hypothesis for each row."""
    started = job.begin()
    if (found := one_call.search(job, settings, 1, started[0])) is not None:
        return found
    return [[each] for each in follow(job, likeliest, settings.length, started=started)]


def likeliest(log_probabilities_NV: Tensor, path_N: Tensor, time: int) -> Tensor:
    """The likeliest token (N,); of equal ones the lowest, which `argmax` promises."""
    return log_probabilities_NV.argmax(dim=1)
