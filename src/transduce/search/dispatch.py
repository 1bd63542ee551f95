"""The entry point of search, which calls the method that the settings name."""

import importlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.models.protocols import Aligns, Fills, Steps
from transduce.search.constraint import Constraint
from transduce.search.coverage import Coverage
from transduce.search.grammar import OutputGrammar
from transduce.search.hypothesis import Hypothesis
from transduce.search.joint_ctc import JointlyDecoded
from transduce.search.lattice import Lattice, Lattices
from transduce.search.one_call import refuse_impossible
from transduce.search.request import BatchRequest, OnStep
from transduce.search.rules import Rules
from transduce.search.settings import Search
from transduce.search.shortlist import Shortlisted, with_demands

AT_ONCE = {"mask_predict": "non_autoregressive", "ctc": "ctc"}  # methods that write all tokens at once -> their model
LENGTHS = {"max_length_factor", "max_length_offset", "min_length"}  # settings that say how long outputs may be
STEPWISE = ("greedy", "beam", "sample")  # methods that add one token to their outputs at each step


@torch.inference_mode()
def search(
    model: Steps | Fills | Aligns,
    source: Padded | None,
    rows: int,
    settings: Search,
    *,
    start: int,
    end: int,
    limits: Sequence[int],
    prefixes: Sequence[Sequence[int]] | None = None,
    lines: Sequence[int] | None = None,
    forbidden: Sequence[int] = (),
    least: Sequence[int] | None = None,
    constraints: Sequence[Constraint | None] | None = None,
    grammars: Sequence[OutputGrammar | None] | None = None,
    lattices: list[Lattice] | None = None,
    shortlist: Tensor | None = None,
    on_step: OnStep | None = None,
    device: torch.device | str | None = None,
) -> list[list[Hypothesis]]:
    """For each row of the source its hypotheses, best first: at least one, at most `settings.nbest`.

    A row's result depends on that row only. It is the same in any batch and in any order.

    Args:
        model: implements `Steps`, or `Fills` for "mask_predict", or `Aligns` for "ctc".
        source: the sources; None for a model without a source.
        rows: number of sources.
        settings: the search settings.
        start, end: token ids.
        limits: maximum number of tokens of each row's outputs, including the end token; see `Search.limit`.
        prefixes: for each row the tokens with which its outputs must begin.
        lines: line number of each row in its file, counted from 0. Messages name it, and samples are seeded with it.
        forbidden: token ids that are never chosen, such as padding and start.
        least: minimum number of tokens of each row's outputs, without the end token; default: `settings.min_length`.
        constraints: required and forbidden phrases of each row's outputs. An output can end only when it contains all
            required phrases; if it reaches its limit before, its `ended` is False.
        grammars: the form of each row's outputs, which then end within their limits. Not with phrases, prefixes, a
            minimum length, a limit on repeated n-grams or a shortlist.
        lattices: filled with one lattice for each row of a beam search.
        shortlist: (rows, V) bool, True = the row's outputs may contain this token; None = any token. The end token and
            the tokens of prefixes and phrases are added. Probabilities are normalized over these tokens.
        on_step: called with a `transduce.search.request.Step` after each token of all rows. The search then runs step
            by step instead of as one call, which is slower and finds the same outputs. An exception that it raises ends
            the search. Methods that do not write token by token, and forced search, have no steps.
        device: the model's device; needed only without a source.

    Raises:
        InputError: the arguments are inconsistent, the method does not work for this model or these arguments, or a
            token is not in the vocabulary.
        TransduceError: the model returned invalid log-probabilities, or gives probability 0 to every output.
    """
    none = [None] * rows if constraints is None else constraints
    least = [settings.min_length] * rows if least is None else least
    forms = [None] * rows if grammars is None else grammars
    rules = Rules(end, limits, least, settings.no_repeat_ngram, none, forms)
    job = BatchRequest(
        model,
        source,
        rows,
        start,
        end,
        limits,
        [[]] * rows if prefixes is None else prefixes,
        range(rows) if lines is None else lines,
        forbidden,
        torch.device(device or "cpu") if source is None else source.values.device,
        rules if any(least) or settings.no_repeat_ngram or any(none) or any(forms) else None,
        lattices=None if lattices is None else Lattices(rows),
        on_step=on_step,
    )
    _check(job)
    _check_model(model, settings.method)
    _check_method(job, settings)
    _check_shortlist(job, settings.method, shortlist)
    if rows == 0:
        return []
    if settings.ctc_weight:
        job = replace(job, model=JointlyDecoded(model, settings.ctc_weight, start, end))
    if settings.coverage > 0 and isinstance(model, Steps):
        covered = Coverage(model, settings.coverage)
        job = replace(job, model=covered, coverage=covered)
    if shortlist is not None:
        shortlist = with_demands(shortlist, job)
        job = replace(job, model=Shortlisted(job.model, shortlist), shortlist=shortlist)
    method = importlib.import_module(f"transduce.search.{settings.method}")
    found: list[list[Hypothesis]] = method.search(job, settings)
    refuse_impossible(job.lines, found)
    if lattices is not None and job.lattices:
        lattices += job.lattices.found
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


def _check(job: BatchRequest) -> None:
    """Raises InputError with all problems of the arguments."""
    counts = {"limits": len(job.limits), "prefixes": len(job.prefixes), "lines": len(job.lines)}
    if job.source is not None:
        counts["source"] = len(job.source.lengths)
    if job.rules is not None:
        counts |= {"least": len(job.rules.least), "constraints": len(job.rules.constraints)}
        counts |= {"grammars": len(job.rules.grammars)}
    problems = [f"search: {job.rows} rows, but {count} {name}." for name, count in counts.items() if count != job.rows]
    if job.end in job.forbidden:
        problems.append(f"search: the end token {job.end} is forbidden, so no output could end.")
    if any(token < 0 for token in (job.end, *job.forbidden)):
        problems.append("search: a negative end or forbidden token; token ids start at 0.")
    if not problems:
        problems = [problem for row in range(job.rows) for problem in _row_problems(job, row)]
    if problems:
        raise InputError(problems)


def _check_method(job: BatchRequest, settings: Search) -> None:
    """Raises InputError for arguments that the method does not support."""
    problems = []
    must = job.rules is not None and job.rules.must
    if settings.method in AT_ONCE and (job.rules is not None or settings.coverage > 0):
        problems.append(
            f'search: method "{settings.method}" writes all words at once: it takes no coverage, no minimum '
            "length, no limit on repeated n-grams, no phrases that must or must not appear, and no grammar."
        )
    elif must and settings.method not in ("beam", "exhaustive"):
        problems.append(
            f'search: method "{settings.method}" does not look for phrases that must appear; use method "beam".'
        )
    if settings.method in AT_ONCE and any(job.prefixes):
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
    if job.on_step is not None and settings.method not in STEPWISE:
        problems.append(
            f'search: on_step is called after each token, but method "{settings.method}" does not write token by '
            f"token; use one of {', '.join(STEPWISE)}."
        )
    if job.lattices is not None and settings.method != "beam":
        problems.append(f'search: a lattice records a beam search; method "{settings.method}" has none.')
    if job.rules is not None and any(job.rules.grammars) and settings.no_repeat_ngram:
        problems.append("search.no_repeat_ngram: outputs of a grammar must repeat tokens; leave it out.")
    if problems:
        raise InputError(problems)


def _check_shortlist(job: BatchRequest, method: str, shortlist: Tensor | None) -> None:
    """Raises InputError if shortlists are not supported here, or this one is invalid."""
    if shortlist is None:
        return
    if method in AT_ONCE:
        raise InputError(f'search: method "{method}" writes all words at once, and uses no shortlist.')
    if job.rules is not None and any(job.rules.grammars):
        raise InputError("search.shortlist: outputs of a grammar need all tokens; leave it out.")
    if shortlist.dtype is not torch.bool or shortlist.ndim != 2 or len(shortlist) != job.rows:
        raise InputError(
            f"search: a shortlist must be bool ({job.rows}, vocabulary); got {shortlist.dtype} "
            f"{tuple(shortlist.shape)}."
        )


def _row_problems(job: BatchRequest, row: int) -> list[str]:
    line, limit, prefix = job.lines[row], job.limits[row], job.prefixes[row]
    problems = []
    if line < 0:
        problems.append(f"search: row {row} has line number {line}; lines are counted from 0.")
    if limit < 1:
        problems.append(f"search: line {line} has a limit of {limit} tokens; at least 1 is needed.")
    if len(prefix) > limit:
        problems.append(f"search: line {line} has a prefix of {len(prefix)} tokens, over its limit of {limit}.")
    if any(token < 0 for token in prefix):
        problems.append(f"search: line {line} has a negative token in its prefix; token ids start at 0.")
    if job.end in prefix:
        problems.append(f"search: line {line} has the end token {job.end} in its prefix; leave it out.")
    return problems or _rule_problems(job, row)


def _rule_problems(job: BatchRequest, row: int) -> list[str]:
    if job.rules is None:
        return []
    line, limit, least, constraint = job.lines[row], job.limits[row], job.rules.least[row], job.rules.constraints[row]
    problems = []
    if least >= limit:
        problems.append(
            f"search: line {line} must have at least {least} tokens before its end, but its limit is {limit}; "
            "lower min_length or raise max_length_offset."
        )
    if constraint is not None and constraint.holds_forbidden(constraint.behind(job.prefixes[row])):
        problems.append(f"search: line {line} has a prefix that holds a phrase that must not appear.")
    if (grammar := job.rules.grammars[row]) is not None:
        if job.prefixes[row] or constraint is not None or least:
            problems.append(f"search: line {line} has a grammar; it takes no prefix, no phrases and no minimum length.")
        if limit < grammar.shortest:
            problems.append(f"search: line {line} has a limit of {limit} tokens; its grammar needs {grammar.shortest}.")
    return problems
