"""A whole beam search in one call, where the model allows it and nothing is asked that needs a look at each step."""

import math

import torch

from transduce.kernels.native import beam as native
from transduce.models.protocols import Padded, SearchesInOneCall, Steps, Tree, stands_in
from transduce.search.hypothesis import Hypothesis, hypothesis
from transduce.search.request import Job
from transduce.search.settings import Search
from transduce.search.shortlist import words_of


def search(job: Job, settings: Search, slots: int, memory: Tree) -> list[list[Hypothesis]] | None:
    """What `transduce.search.beam` finds with a beam of `slots`, in no order; None where it must go step by step.

    Raises:
        TransduceError: the model gave what is no log-probability.
        InputError: a token id of this job is outside the vocabulary.
    """
    looked_at = job.rules or job.coverage or job.lattices or any(job.prefixes) or settings.groups > 1
    writers = None if looked_at else _handed_over(job.model, memory, max(job.limits), job.shortlist is not None)
    if writers is None:
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


@torch.inference_mode()
def suits(model: Steps, source: Padded, limit: int, settings: Search) -> bool:
    """Whether searches by `settings` go in one call where nothing is asked of single outputs; tried on `source`.

    limit: the most tokens of an output.
    """
    looked_at = settings.coverage or settings.groups > 1 or settings.no_repeat_ngram
    if looked_at or settings.method not in ("greedy", "beam") or not isinstance(model, SearchesInOneCall):
        return False
    memory, _ = model.start(source, len(source.lengths))
    return _handed_over(model, memory, limit, settings.shortlist is not None) is not None


def _handed_over(model: object, memory: Tree, longest: int, with_shortlist: bool) -> native.Writers | None:
    """What the model hands over for its search; None where it must be stepped."""
    if not isinstance(model, SearchesInOneCall) or not stands_in(model, "in_one_search", "step"):
        return None
    writers = model.in_one_search(memory, longest)
    return None if writers is None or (with_shortlist and len(writers.each) > 1) else writers
