"""A whole beam search in one call, if the model supports it and nothing has to look at each step."""

import math

import torch

from transduce.core.padded import Padded
from transduce.layers.fused_search import BeamRequest, FusedSearch
from transduce.models.protocols import HasFusedSearch, Steps, Tree, stands_in
from transduce.search.batch_request import BatchRequest
from transduce.search.hypothesis import Hypothesis
from transduce.search.one_call import hypotheses_of
from transduce.search.settings import Search
from transduce.search.word_lists import words_of


def search(batch: BatchRequest, settings: Search, slots: int, memory: Tree) -> list[list[Hypothesis]] | None:
    """The result of `transduce.search.beam` with a beam of `slots`; None if it must go step by step.

    Raises:
        TransduceError: the model returned an invalid log-probability.
        InputError: a token id of the batch is not in the vocabulary.
    """
    looked_at = batch.rules or batch.coverage or batch.lattices or batch.on_step or settings.groups > 1
    writers = None if looked_at else _handed_over(batch.model, memory, max(batch.limits), batch.shortlist is not None)
    if writers is None:
        return None
    batch.check_vocabulary(writers.words)
    wanted = BeamRequest(
        batch.start,
        batch.end,
        slots,
        settings.nbest,
        batch.forbidden,
        batch.limits,
        math.inf if settings.prune is None else settings.prune,
        settings.length.parts,
        None if batch.shortlist is None else words_of(batch.shortlist.numpy()),
        [request.prefix for request in batch.requests],
        settings.stopping if slots > 1 else "slots",
        settings.at_limit,
    )
    return hypotheses_of(writers.search, wanted, settings.length)


@torch.inference_mode()
def suits(model: Steps, source: Padded, limit: int, settings: Search) -> bool:
    """Whether a search with `settings` runs in one call, if there are no constraints on outputs; tried on `source`.

    limit: maximum number of tokens of an output.
    """
    beside = settings.coverage or settings.ctc_weight or settings.lm_weight
    looked_at = beside or settings.groups > 1 or settings.no_repeat_ngram
    if looked_at or settings.method not in ("greedy", "beam") or not isinstance(model, HasFusedSearch):
        return False
    memory, _ = model.start(source, len(source.lengths))
    return _handed_over(model, memory, limit, settings.shortlist is not None) is not None


def _handed_over(model: object, memory: Tree, longest: int, with_shortlist: bool) -> FusedSearch | None:
    """The model's fused search; None if it must go step by step."""
    if not isinstance(model, HasFusedSearch) or not stands_in(model, "fused_search", "step"):
        return None
    writers = model.fused_search(memory, longest)
    return None if writers is None or (with_shortlist and not writers.takes_lists) else writers
