"""A whole beam search in one call, where the model allows it and nothing is asked that needs a look at each step."""

import math

from transduce.models.protocols import SearchesInOneCall, Tree, stands_in
from transduce.native import beam as native
from transduce.search.hypothesis import Hypothesis, hypothesis
from transduce.search.job import Job
from transduce.search.settings import Search
from transduce.search.shortlist import words_of


def search(job: Job, settings: Search, slots: int, memory: Tree) -> list[list[Hypothesis]] | None:
    """What `transduce.search.beam` finds with a beam of `slots`, in no order; None where it must go step by step.

    Raises:
        TransduceError: the model gave what is no log-probability.
        InputError: a token id of this job is outside the vocabulary.
    """
    looked_at = job.rules or job.coverage or job.lattices or any(job.prefixes) or settings.groups > 1
    if looked_at or not isinstance(job.model, SearchesInOneCall) or not stands_in(job.model, "in_one_search", "step"):
        return None
    writers = job.model.in_one_search(memory, max(job.limits))
    if writers is None or (job.shortlist is not None and len(writers.each) > 1):
        return None
    job.check_vocabulary(writers.words)
    wanted = native.Wanted(
        job.start,
        job.end,
        slots,
        settings.nbest,
        job.forbidden,
        job.limits,
        math.inf if settings.prune is None else settings.prune,
        settings.length.parts,
        None if job.shortlist is None else words_of(job.shortlist),
    )
    found, impossible = native.search(writers, wanted)
    job.check_log_probability(impossible)
    return [[hypothesis(*each, each[0][-1] == job.end, settings.length) for each in sentence] for sentence in found]
