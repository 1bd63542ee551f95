"""From texts to predictions. A text gets the same prediction alone or in any batch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from transduce.core.errors import InputError
from transduce.data.columns.protocols import Column, Encoded
from transduce.data.columns.tokens import Tokens
from transduce.data.lexicon import Lexicon, check_candidates
from transduce.inference.batches import by_length, check_batch_size
from transduce.inference.constraints import ConstraintCompiler, Constraints
from transduce.inference.generates import Generates
from transduce.inference.inputs import sources
from transduce.inference.prediction import Prediction, empty_prediction, unmet
from transduce.inference.protocols import Advance
from transduce.runtime.workers import each
from transduce.search import fused_search
from transduce.search.dispatch import quickest, search
from transduce.search.hypothesis import Hypothesis
from transduce.search.lattice import Lattice
from transduce.search.request import OnStep, Request
from transduce.search.settings import Search


@dataclass(frozen=True)
class SearchPredictor:
    """Search as a `transduce.inference.protocols.Predictor`."""

    task: Generates

    def predict(
        self,
        model: Any,
        texts: Sequence[str],
        settings: Search | None = None,
        batch_size: int = 64,
        advance: Advance | None = None,
    ) -> list[Prediction]:
        """See `decode`; without settings greedily, or as a model that has no next token goes quickest."""
        return decode(model, self.task, texts, settings or quickest(model), batch_size, advance=advance)


def decode(
    model: nn.Module,
    task: Generates,
    texts: Sequence[str],
    settings: Search,
    batch_size: int = 64,
    lines: Sequence[int] | None = None,
    advance: Advance | None = None,
    wanted: Sequence[Constraints] | None = None,
    others: Sequence[Generates] = (),
    lattice: bool = False,
    workers: int = 1,
    lexicon: Lexicon | None = None,
    on_step: OnStep | None = None,
    encoded: Sequence[Encoded] | None = None,
    unprompted: bool = False,
) -> list[Prediction]:
    """Predict an output for each text, in order. A text without tokens gives an empty prediction.

    Args:
        batch_size: texts searched together, or fewer where they are very long; like lengths are put together, whatever
            their order.
        lines: the number of each text in its file, from 0, which seeds its samples.
        wanted: phrases that each output must or must not hold, and how it begins.
        others: the tasks of an ensemble's further members, which read each text in their own tokens.
        lattice: keep everything that a beam weighed.
        workers: search side by side, with one thread each: threads where a search is one call, else processes.
        lexicon: what a shortlist that the settings ask for is made of.
        on_step: called with a `transduce.search.request.Step` after each token of a batch's search; its rows are
            indices into `texts`. It is called in this process, so it requires workers = 1.
        encoded: the ids of each text, where they are known already.
        unprompted: a text without tokens is a prompt of nothing, with which a language model begins.

    Raises:
        InputError: what is wanted cannot be; all such lines are named; no workers can be had here; a shortlist is asked
            for that the lexicon does not hold.
    """
    check_batch_size(batch_size)
    _refuse_unequal_readings(task, others, settings)
    if settings.shortlist is not None:
        _check_shortlist(task, settings.shortlist, lexicon)
    if on_step and workers > 1:
        raise InputError(f"on_step is called in this process and requires workers = 1; got workers = {workers}.")
    numbers = range(len(texts)) if lines is None else lines
    encoded = _reads(task).encode(texts) if encoded is None else encoded
    wanted = wanted or [Constraints()] * len(texts)
    requests, predictions = _asked(task, texts, encoded, settings, numbers, wanted, unprompted)
    if model.training:  # to tell all parts takes half a millisecond
        model.eval()
    if advance:
        advance(len(predictions))
    places_asked = list(requests)
    together = by_length(map(_work, requests.values()), batch_size, longest_first=True)
    batches = [[places_asked[row] for row in rows] for rows in together]

    def read(places: list[int]) -> list[list[Request]]:
        """As each member of an ensemble reads them."""
        listed = [texts[place] for place in places]
        others_read = ([other.request(ids, settings) for ids in _reads(other).encode(listed)] for other in others)
        return [[requests[place] for place in places], *others_read]

    def searched(number: int) -> tuple[list[list[Hypothesis]], list[Lattice] | None]:
        places = batches[number]
        lattices: list[Lattice] | None = [] if lattice else None
        members = read(places)
        shortlist = _shortlist(lexicon, members[0], settings, task)
        return _search(model, task, members, settings, lattices, shortlist, _told(on_step, places)), lattices

    outside = False
    if workers > 1 and len(batches) > 1 and not lattice:
        outside = _goes_in_one_call(model, read(batches[-1][-1:]), list(requests.values()), settings)
    for places, (found, lattices) in zip(batches, each(searched, len(batches), workers, outside), strict=True):
        for row, (place, hypotheses) in enumerate(zip(places, found, strict=True)):
            constraint = requests[place].constraint
            found_here = Prediction.from_hypotheses(
                texts[place],
                hypotheses,
                task.tokenizers["target"],
                constraint.phrases if constraint else None,
                lattices[row] if lattices else None,
            )
            predictions[place] = task.read_back(found_here)
        if advance:
            advance(len(places))
    return [predictions[place] for place in range(len(texts))]


def _told(on_step: OnStep | None, places: Sequence[int]) -> OnStep | None:
    """`on_step` for a batch of the texts at `places`: its rows become indices into all texts."""
    if on_step is None:
        return None
    place_B, tell = torch.tensor(places), on_step
    return lambda step: tell(step._replace(rows=place_B[step.rows]))


def _reads(task: Generates) -> Column:
    """The column of what goes in."""
    return task.columns.get("source") or task.columns["target"]


def _asked(
    task: Generates,
    texts: Sequence[str],
    encoded: Sequence[Encoded],
    settings: Search,
    numbers: Sequence[int],
    wanted: Sequence[Constraints],
    unprompted: bool,
) -> tuple[dict[int, Request], dict[int, Prediction]]:
    """By place: what to search for, and the predictions of texts without a token, which need no search.

    Raises:
        InputError: what is wanted cannot be; all such lines are named.
    """
    demands = ConstraintCompiler(task.tokenizers["target"]) if any(wanted) else None
    requests: dict[int, Request] = {}
    predictions: dict[int, Prediction] = {}
    problems = []
    for place, (text, ids) in enumerate(zip(texts, encoded, strict=True)):
        try:
            if not unprompted and (not len(ids) or not text.strip()):
                predictions[place] = task.read_back(_nothing(text, wanted[place], demands))
            else:
                request = task.formed(task.request(ids, settings), text)
                requests[place] = _demanded(replace(request, line=numbers[place]), wanted[place], demands)
        except InputError as error:
            problems += [f"line {numbers[place] + 1}: {problem}" for problem in error.problems]
    if problems:
        raise InputError(problems)
    return requests, predictions


def _refuse_unequal_readings(task: Generates, others: Sequence[Generates], settings: Search) -> None:
    if not others or settings.coverage == 0:  # writing out a tokenizer takes milliseconds
        return
    reads = {each.tokenizers["source"].to_json() for each in (task, *others) if "source" in each.tokenizers}
    if len(reads) > 1:
        raise InputError(
            "search.coverage: the members of this ensemble tokenize their sources differently; set it to 0."
        )


def _check_shortlist(task: Generates, asked: int, lexicon: Lexicon | None) -> None:
    """Raises InputError where there is no lexicon, or too small a one."""
    if "source" not in task.tokenizers:
        raise InputError("search.shortlist: a language model has no source to make a shortlist from; leave it out.")
    check_candidates(asked, lexicon)


def _shortlist(
    lexicon: Lexicon | None, requests: Sequence[Request], settings: Search, task: Generates
) -> Tensor | None:
    """(B, V) bool: what each of `requests` may be answered with; None = anything."""
    if settings.shortlist is None or lexicon is None:
        return None
    sources: list[Any] = [() if request.source is None else request.source for request in requests]
    frequent = max(settings.shortlist, settings.beam)
    return torch.from_numpy(lexicon.allowed(sources, settings.shortlist, frequent, task.specs.target.size))


def _goes_in_one_call(
    model: Any, shortest: Sequence[Sequence[Request]], requests: Sequence[Request], settings: Search
) -> bool:
    """Whether all searches are calls outside of Python; tried on the shortest text, as each member reads it."""
    source = sources([[request.source for request in each] for each in shortest], next(model.parameters()).device)
    if source is None or any(each.prefix or each.constraint or each.grammar or each.min_length for each in requests):
        return False
    return fused_search.suits(model, source, max(request.limit for request in requests), settings)


def _work(request: Request) -> int:
    return (0 if request.source is None else len(request.source)) + len(request.prefix)


def _nothing(text: str, wanted: Constraints, demands: ConstraintCompiler | None) -> Prediction:
    """What comes of a text without a token."""
    lack = unmet(demands.phrases(wanted), "") if demands else ()
    return replace(empty_prediction(text), unmet=lack)


def _demanded(request: Request, wanted: Constraints, demands: ConstraintCompiler | None) -> Request:
    """The request with what is wanted of its output, which is checked for being possible."""
    if demands is None or not wanted:
        return request
    if request.grammar is not None:
        raise InputError("the form of this output is fixed: leave out must, must_not and prefix.")
    if wanted.prefix and request.source is None:
        raise InputError("a language model continues its text: put the prefix at the end of the text.")
    prefix = [*request.prefix, *demands.prefix(wanted)]
    return replace(request, prefix=prefix, constraint=demands.constraint(wanted))


def _search(
    model: Any,
    task: Generates,
    members: Sequence[Sequence[Request]],
    settings: Search,
    lattices: list[Lattice] | None,
    shortlist: Tensor | None,
    on_step: OnStep | None,
) -> list[list[Hypothesis]]:
    """members: the requests as each member of an ensemble reads them; of one alone, as the model does."""
    device = next(model.parameters()).device
    requests, target = members[0], task.columns["target"]
    assert isinstance(target, Tokens)
    return search(
        model,
        sources([[request.source for request in each] for each in members], device),
        requests,
        settings,
        start=task.start,
        end=task.end,
        forbidden=target.unwritten,
        lattices=lattices,
        shortlist=shortlist,
        on_step=on_step,
        device=device,
    )
