"""The entry point of search, which calls the method that the settings name."""

import importlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.kneser_ney import KneserNey
from transduce.models.protocols import Aligns, Fills, Steps
from transduce.search.batch_request import BatchRequest
from transduce.search.coverage import Coverage
from transduce.search.hypothesis import Hypothesis
from transduce.search.joint_ctc import JointlyDecoded
from transduce.search.knn import Memory, WithDatastore
from transduce.search.language_model import WithLanguageModel
from transduce.search.lattice import Lattice, Lattices
from transduce.search.one_call import refuse_impossible
from transduce.search.prefill import prefilled
from transduce.search.request import OnStep, Request
from transduce.search.rules import rules_of
from transduce.search.settings import Search
from transduce.search.shortlist import Shortlisted, with_demands

AT_ONCE = {"mask_predict": "non_autoregressive", "ctc": "ctc"}  # methods that write all tokens at once -> their model
LENGTHS = {"max_length_factor", "max_length_offset", "min_length"}  # settings that say how long outputs may be
STEPWISE = ("greedy", "beam", "sample")  # methods that add one token to their outputs at each step


@torch.inference_mode()
def search(
    model: Steps | Fills | Aligns,
    source: Padded | None,
    requests: Sequence[Request],
    settings: Search,
    *,
    start: int,
    end: int,
    forbidden: Sequence[int] = (),
    lattices: list[Lattice] | None = None,
    shortlist: Tensor | None = None,
    on_step: OnStep | None = None,
    datastore: Memory | None = None,
    ngrams: KneserNey | None = None,
    device: torch.device | str | None = None,
) -> list[list[Hypothesis]]:
    """For each request its hypotheses, best first: at least one, at most `settings.nbest`.

    A request's result depends on that request only. It is the same in any batch and in any order.

    Args:
        model: implements `Steps`, or `Fills` for "mask_predict", or `Aligns` for "ctc".
        source: the requests' sources as the model reads them, one row for each; None for a model without a source.
        requests: what is asked of each source. Limits and minimum lengths are theirs, not those of `settings`.
        settings: the search settings.
        start, end: token ids.
        forbidden: token ids that are never chosen, such as padding and start.
        lattices: filled with one lattice for each request of a beam search.
        shortlist: (rows, V) bool, True = the row's outputs may contain this token; None = any token. The end token and
            the tokens of prefixes and phrases are added. Probabilities are normalized over these tokens.
        on_step: called with a `transduce.search.request.Step` after each token of all rows. The search then runs step
            by step instead of as one call, which is slower and finds the same outputs. An exception that it raises ends
            the search. Methods that do not write token by token, and forced search, have no steps.
        datastore: what is interpolated with the model (`transduce.search.knn`), on its device. The search then runs
            step by step.
        ngrams: the language model for `settings.lm_weight`.
        device: the model's device; needed only without a source.

    Raises:
        InputError: the arguments are inconsistent, the method does not work for this model or these arguments, or a
            token is not in the vocabulary.
        TransduceError: the model returned invalid log-probabilities, or gives probability 0 to every output.
    """
    batch = BatchRequest(
        model,
        source,
        requests,
        start,
        end,
        forbidden,
        torch.device(device or "cpu") if source is None else source.values.device,
        rules_of(end, requests, settings.no_repeat_ngram),
        lattices=None if lattices is None else Lattices(len(requests)),
        on_step=on_step,
        ngrams=ngrams if settings.lm_weight else None,
    )
    _check(batch)
    _check_model(model, settings.method)
    _check_method(batch, settings)
    _check_shortlist(batch, settings.method, shortlist)
    _check_language_model(settings, ngrams)
    if datastore is not None:
        _check_datastore(settings)
        batch = replace(batch, model=WithDatastore(model, datastore))
    if not requests:
        return []
    if settings.ctc_weight:
        batch = replace(batch, model=JointlyDecoded(model, settings.ctc_weight, start, end))
    if batch.ngrams is not None and settings.method not in AT_ONCE:
        batch = replace(
            batch, model=WithLanguageModel(batch.model, batch.ngrams, settings.lm_weight, start, batch.device)
        )
    if settings.coverage > 0 and isinstance(model, Steps):
        covered = Coverage(model, settings.coverage)
        batch = replace(batch, model=covered, coverage=covered)
    if shortlist is not None:
        shortlist = with_demands(shortlist, batch)
        batch = replace(batch, model=Shortlisted(batch.model, shortlist), shortlist=shortlist)
    if batch.model is model:
        batch = replace(batch, model=prefilled(batch))
    method = importlib.import_module(f"transduce.search.{settings.method}")
    found: list[list[Hypothesis]] = method.search(batch, settings)
    refuse_impossible([request.line for request in requests], found)
    if lattices is not None and batch.lattices:
        lattices += batch.lattices.found
    return found


def quickest(model: object, lengths: Search | None = None) -> Search:
    """The settings of the fastest search method for `model`; outputs may be as long as `lengths` says, if given."""
    found = Search(method=only_method(type(model)) or "greedy", beam=1)
    return found.model_copy(update=lengths.model_dump(include=LENGTHS)) if lengths else found


def only_method(kind: type) -> Literal["mask_predict", "ctc"] | None:
    """The only search method for a class of models that write all words at once; None for models that step."""
    if issubclass(kind, Fills):
        return "mask_predict"
    return "ctc" if issubclass(kind, Aligns) else None


def _check_model(model: object, method: str) -> None:
    only = only_method(type(model))
    if only and method != only:
        raise InputError(
            f'search: method "{method}" goes from one token to the next; this model writes all at once: use "{only}".'
            if method not in AT_ONCE
            else f'search: method "{method}" is for models that are {AT_ONCE[method]}; for this one use "{only}".'
        )
    if not only and method in AT_ONCE:
        raise InputError(
            f'search: method "{method}" is for models that write all words at once, such as {AT_ONCE[method]}: '
            'use "beam".'
        )


def _check(batch: BatchRequest) -> None:
    """Raises InputError with all problems of the arguments."""
    problems = []
    if batch.source is not None and len(batch.source.lengths) != batch.rows:
        problems.append(f"search: {batch.rows} requests, but {len(batch.source.lengths)} sources.")
    if batch.end in batch.forbidden:
        problems.append(f"search: the end token {batch.end} is forbidden, so no output could end.")
    if any(token < 0 for token in (batch.end, *batch.forbidden)):
        problems.append("search: a negative end or forbidden token; token ids start at 0.")
    if not problems:
        problems = [each for row in range(batch.rows) for each in _row_problems(batch, row)]
    if problems:
        raise InputError(problems)


def _check_method(batch: BatchRequest, settings: Search) -> None:
    """Raises InputError for arguments that the method does not support."""
    problems = []
    must = batch.rules is not None and batch.rules.must
    if settings.method in AT_ONCE and (batch.rules is not None or settings.coverage > 0):
        problems.append(
            f'search: method "{settings.method}" writes all words at once: it takes no coverage, no minimum '
            "length, no limit on repeated n-grams, no phrases that must or must not appear, and no grammar."
        )
    elif must and settings.method not in ("beam", "exhaustive"):
        problems.append(
            f'search: method "{settings.method}" does not look for phrases that must appear; use method "beam".'
        )
    if settings.method in AT_ONCE and batch.has_prefixes:
        problems.append(
            f'search: method "{settings.method}" writes all words at once; it cannot begin with given tokens.'
        )
    if must and settings.groups > 1:
        problems.append(
            "search: a beam is divided among the phrases that must appear, so it cannot have groups as well."
        )
    if settings.ctc_weight and (settings.method in AT_ONCE or settings.coverage > 0 or settings.shortlist is not None):
        problems.append(
            "search.ctc_weight: joins CTC to a model that writes token by token; it takes no coverage, no shortlist, "
            'and no method "mask_predict" or "ctc". Leave out one of them.'
        )
    if batch.on_step is not None and settings.method not in STEPWISE:
        problems.append(
            f'search: on_step is called after each token, but method "{settings.method}" does not write token by '
            f"token; use one of {', '.join(STEPWISE)}."
        )
    if batch.lattices is not None and settings.method != "beam":
        problems.append(f'search: a lattice records a beam search; method "{settings.method}" has none.')
    if any(request.grammar for request in batch.requests) and settings.no_repeat_ngram:
        problems.append("search.no_repeat_ngram: outputs of a grammar must repeat tokens; leave it out.")
    if problems:
        raise InputError(problems)


def _check_language_model(settings: Search, ngrams: KneserNey | None) -> None:
    """Raises InputError where one is asked for, and there is none."""
    if settings.lm_weight and ngrams is None:
        raise InputError(
            "search.lm_weight: this model has no n-grams. They are counted at the end of a training whose recipe sets "
            "search.lm_weight. Leave it out, or train with it."
        )


def _check_datastore(settings: Search) -> None:
    """Raises InputError for settings that do not go with a datastore."""
    if settings.method in AT_ONCE:
        raise InputError(f'datastore: method "{settings.method}" writes all words at once, and reads no datastore.')
    if settings.coverage > 0 or settings.ctc_weight:
        raise InputError("datastore: does not go with search.coverage or search.ctc_weight. Leave out one of them.")


def _check_shortlist(batch: BatchRequest, method: str, shortlist: Tensor | None) -> None:
    """Raises InputError if shortlists are not supported here, or this one is invalid."""
    if shortlist is None:
        return
    if method in AT_ONCE:
        raise InputError(f'search: method "{method}" writes all words at once, and uses no shortlist.')
    if any(request.grammar for request in batch.requests):
        raise InputError("search.shortlist: outputs of a grammar need all tokens; leave it out.")
    if shortlist.dtype is not torch.bool or shortlist.ndim != 2 or len(shortlist) != batch.rows:
        raise InputError(
            f"search: a shortlist must be bool ({batch.rows}, vocabulary); got {shortlist.dtype} "
            f"{tuple(shortlist.shape)}."
        )


def _row_problems(batch: BatchRequest, row: int) -> list[str]:
    request = batch.requests[row]
    line, limit, prefix = request.line, request.limit, request.prefix
    problems = []
    if line < 0:
        problems.append(f"search: row {row} has line number {line}; lines are counted from 0.")
    if limit < 1:
        problems.append(f"search: line {line} has a limit of {limit} tokens; at least 1 is needed.")
    if len(prefix) > limit:
        problems.append(f"search: line {line} has a prefix of {len(prefix)} tokens, over its limit of {limit}.")
    if any(token < 0 for token in prefix):
        problems.append(f"search: line {line} has a negative token in its prefix; token ids start at 0.")
    if batch.end in prefix:
        problems.append(f"search: line {line} has the end token {batch.end} in its prefix; leave it out.")
    return problems or _rule_problems(request)


def _rule_problems(request: Request) -> list[str]:
    line, limit, min_length = request.line, request.limit, request.min_length
    constraint, grammar = request.constraint, request.grammar
    problems = []
    if min_length >= limit:
        problems.append(
            f"search: line {line} must have at least {min_length} tokens before its end, but its limit is {limit}; "
            "lower min_length or raise max_length_offset."
        )
    if constraint is not None and constraint.holds_forbidden(constraint.behind(request.prefix)):
        problems.append(f"search: line {line} has a prefix that holds a phrase that must not appear.")
    if grammar is not None:
        if request.prefix or constraint is not None or min_length:
            problems.append(f"search: line {line} has a grammar; it takes no prefix, no phrases and no minimum length.")
        if limit < grammar.shortest:
            problems.append(f"search: line {line} has a limit of {limit} tokens; its grammar needs {grammar.shortest}.")
    return problems
