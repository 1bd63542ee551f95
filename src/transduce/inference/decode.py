"""From texts to predictions. A text gets the same prediction alone or in any batch."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from transduce.core.errors import InputError, TransduceError
from transduce.data.columns.protocols import Column
from transduce.data.columns.tokens import Tokens
from transduce.data.lexicon import Lexicon, check_candidates
from transduce.inference.batches import by_length, check_batch_size
from transduce.inference.constraints import ConstraintCompiler, Constraints
from transduce.inference.generates import Generates
from transduce.inference.inputs import sources
from transduce.inference.options import PredictionOptions
from transduce.inference.prediction import Prediction, empty_prediction, unmet
from transduce.inference.protocols import Advance
from transduce.inference.second_search import Wanted
from transduce.inference.splitting import Pieces
from transduce.models.protocols import Steps
from transduce.runtime.workers import parallel_map
from transduce.search import fused_search
from transduce.search.dispatch import quickest, search
from transduce.search.hypothesis import Hypothesis
from transduce.search.knn import Memory
from transduce.search.lattice import Lattice
from transduce.search.request import OnStep, Request
from transduce.search.settings import Search

SECOND = {"method": "beam", "beam": 5, "nbest": 1}  # the second search of what was found greedily


@dataclass(frozen=True)
class SearchedModel:
    """A model whose outputs are found by search, and what it reads and writes with.

    others: the tasks of an ensemble's further members, which read each text in their own tokens.
    lexicon: what a shortlist is made of; None = there is none.
    memory: what is interpolated with the model; None = nothing is.
    """

    model: nn.Module
    task: Generates
    others: Sequence[Generates] = ()
    lexicon: Lexicon | None = None
    memory: Memory | None = None


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
        column = reads(self.task)
        parts = column.encode_audio(texts)
        pieces = Pieces.whole(texts, column.encode(texts)) if parts is None else Pieces.of_recordings(texts, parts)
        options = PredictionOptions(batch_size=batch_size, advance=advance)
        found = decode(SearchedModel(model, self.task), pieces, settings or quickest(model), options)
        return pieces.joined(found)


def decode(
    searched: SearchedModel,
    pieces: Pieces,
    settings: Search,
    options: PredictionOptions,
    constraints: Sequence[Constraints] = (),
    allow_empty: bool = False,
) -> list[Prediction]:
    """Predict an output for each piece, in order. One without tokens gives an empty prediction.

    Args:
        pieces: of texts, whose numbers seed their samples.
        options: of these, those about speed are read, and `lattice`, `advance` and `on_step`.
        constraints: of each text, what its output must hold or not, and how it begins; none: nothing of any.
        allow_empty: a text without tokens is a prompt of nothing, with which a language model begins.

    Raises:
        InputError: what is wanted cannot be; all such lines are named; no workers can be had here; a shortlist is asked
            for that the lexicon does not hold.
    """
    _check(searched, settings, options)
    texts, model, advance = pieces.read, searched.model, pieces.advancing(options.advance)
    requests, predictions = _asked(searched.task, pieces, texts, settings, constraints, allow_empty)
    if model.training:  # to tell all parts takes half a millisecond
        model.eval()
    if advance:
        advance(len(predictions))
    of_batch = _BatchSearch(searched, texts, requests, settings, options)
    batches = of_batch.batches()
    found = parallel_map(
        lambda number: of_batch.search(batches[number]), len(batches), options.workers, of_batch.outside(batches)
    )
    for places, outputs in zip(batches, found, strict=True):
        predictions |= of_batch.predictions(places, *outputs)
        if advance:
            advance(len(places))
    return [predictions[place] for place in range(len(texts))]


@dataclass(frozen=True)
class _BatchSearch:
    """What one call of `decode` searches, by batches of places in `texts`.

    requests: by place, of the texts with tokens.
    """

    searched: SearchedModel
    texts: Sequence[str]
    requests: dict[int, Request]
    settings: Search
    options: PredictionOptions

    def batches(self) -> list[list[int]]:
        """Those of like lengths together, the longest first."""
        places = list(self.requests)
        together = by_length(map(_work, self.requests.values()), self.options.batch_size, longest_first=True)
        return [[places[row] for row in rows] for rows in together]

    def outside(self, batches: Sequence[Sequence[int]]) -> bool:
        """Whether workers can be threads, as all searches are calls outside of Python."""
        if self.options.workers <= 1 or len(batches) <= 1 or self.options.lattice or self.searched.memory:
            return False
        asked = list(self.requests.values())
        return _goes_in_one_call(self.searched.model, self.read(batches[-1][-1:]), asked, self.settings)

    def read(self, places: Sequence[int]) -> list[list[Request]]:
        """The requests as each member of an ensemble reads them; of one model alone, as it does."""
        texts = [self.texts[place] for place in places]
        others = (
            [other.request(ids, self.settings) for ids in reads(other).encode(texts)] for other in self.searched.others
        )
        return [[self.requests[place] for place in places], *others]

    def search(self, places: Sequence[int]) -> tuple[list[list[Hypothesis]], list[Lattice] | None]:
        """The hypotheses for each place, and a lattice of each where they are asked for."""
        members, lattices = self.read(places), list[Lattice]() if self.options.lattice else None
        model, task, [requests, *_] = self.searched.model, self.searched.task, members
        device, target = next(model.parameters()).device, task.columns["target"]
        assert isinstance(target, Tokens)
        found = search(
            model,  # type: ignore[arg-type]
            sources([[request.source for request in each] for each in members], device),
            requests,
            self.settings,
            start=task.start,
            end=task.end,
            forbidden=target.unwritten,
            lattices=lattices,
            shortlist=_shortlist(self.searched.lexicon, requests, self.settings, task),
            on_step=_told(self.options.on_step, places),
            datastore=self.searched.memory,
            ngrams=task.ngrams,
            device=device,
        )
        return found, lattices

    def predictions(
        self, places: Sequence[int], found: Sequence[Sequence[Hypothesis]], lattices: Sequence[Lattice] | None
    ) -> dict[int, Prediction]:
        """What `search` found, as text, by place."""
        task, predictions = self.searched.task, {}
        for row, (place, hypotheses) in enumerate(zip(places, found, strict=True)):
            constraint = self.requests[place].constraint
            predictions[place] = Prediction.from_hypotheses(
                self.texts[place],
                hypotheses,
                task.tokenizers["target"],
                constraint.phrases if constraint else None,
                lattices[row] if lattices else None,
            )
        return {place: task.postprocess(each) for place, each in predictions.items()}


def search_again(
    searched: SearchedModel,
    settings: Search,
    options: PredictionOptions,
    constraints: Sequence[Constraints],
    pieces: Pieces,
    wanted: Sequence[Wanted],
) -> list[Prediction | None]:
    """See `transduce.inference.second_search.SearchAgain`.

    Args:
        settings, options, constraints: of the first search; constraints of each text, or none.
    """
    if not issubclass(type(searched.model), Steps):
        return [None] * len(wanted)
    beam = settings if settings.method == "beam" and settings.beam > 1 else settings.model_copy(update=SECOND)
    compiler, owners = ConstraintCompiler(searched.task.tokenizers["target"]), pieces.owners
    firsts = [constraints[owners[want.place]] if constraints else Constraints() for want in wanted]
    asked = [_asked_again(*both, compiler) for both in zip(wanted, firsts, strict=True)]
    able = [number for number, each in enumerate(asked) if each]
    again = _SecondSearch(searched, pieces, beam, PredictionOptions(batch_size=options.batch_size))
    outputs = again.outputs([wanted[number].place for number in able], [asked[number] for number in able])
    found = dict(zip(able, outputs, strict=True))
    return [found.get(number) for number in range(len(wanted))]


def search_widely(
    searched: SearchedModel, settings: Search, options: PredictionOptions, pieces: Pieces, places: Sequence[int]
) -> list[Prediction]:
    """See `transduce.inference.second_search.SearchWider`. settings: as `transduce.inference.second_search.wider`."""
    chosen = pieces.chosen(places)
    return decode(searched, chosen, settings, PredictionOptions(batch_size=options.batch_size))


def _asked_again(want: Wanted, first: Constraints, compiler: ConstraintCompiler) -> Constraints:
    """What the first search was asked for and what is wanted, as far as the model can write it; nothing: no more."""
    must = tuple((text,) for text in want.must if compiler.writes(text))
    return Constraints(first.must + must, first.must_not, first.prefix) if must else Constraints()


@dataclass(frozen=True)
class _SecondSearch:
    """Searches pieces once more."""

    searched: SearchedModel
    pieces: Pieces
    settings: Search
    options: PredictionOptions

    def outputs(self, places: Sequence[int], asked: Sequence[Constraints]) -> list[Prediction | None]:
        """Of the pieces at these places; None where what is asked for cannot be."""
        if not places:
            return []
        try:
            return [*decode(self.searched, self.pieces.chosen(places), self.settings, self.options, asked)]
        except (InputError, TransduceError):  # of one of them
            if len(places) == 1:
                return [None]
            return [each for place, one in zip(places, asked, strict=True) for each in self.outputs([place], [one])]


def _check(searched: SearchedModel, settings: Search, options: PredictionOptions) -> None:
    """Raises InputError for what cannot be, whatever the texts."""
    check_batch_size(options.batch_size)
    _refuse_unequal_readings(searched.task, searched.others, settings)
    if settings.shortlist is not None:
        _check_shortlist(searched.task, settings.shortlist, searched.lexicon)
    if options.on_step and options.workers > 1:
        workers = options.workers
        raise InputError(f"on_step is called in this process and requires workers = 1; got workers = {workers}.")


def _told(on_step: OnStep | None, places: Sequence[int]) -> OnStep | None:
    """`on_step` for a batch of the texts at `places`: its rows become indices into all texts."""
    if on_step is None:
        return None
    place_B, tell = torch.tensor(places), on_step
    return lambda step: tell(step._replace(rows=place_B[step.rows]))


def reads(task: Generates) -> Column:
    """The column of what goes in."""
    return task.columns.get("source") or task.columns["target"]


def _asked(
    task: Generates,
    pieces: Pieces,
    texts: Sequence[str],
    settings: Search,
    constraints: Sequence[Constraints],
    allow_empty: bool,
) -> tuple[dict[int, Request], dict[int, Prediction]]:
    """By place: what to search for, and the predictions of texts without a token, which need no search.

    Raises:
        InputError: what is wanted cannot be; all such lines are named.
    """
    demands = ConstraintCompiler(task.tokenizers["target"]) if any(constraints) else None
    never_first = getattr(task.columns["target"], "unwritten_first", ())
    requests: dict[int, Request] = {}
    predictions: dict[int, Prediction] = {}
    problems = []
    for place, (text, ids, owner) in enumerate(zip(texts, pieces.ids, pieces.owners, strict=True)):
        line, wanted = pieces.first + owner, constraints[owner] if constraints else Constraints()
        try:
            if not allow_empty and (not len(ids) or not text.strip()):
                predictions[place] = task.postprocess(_nothing(text, wanted, demands))
            else:
                request = task.grammar_for(task.request(ids, settings), text)
                requests[place] = _demanded(replace(request, line=line, never_first=never_first), wanted, demands)
        except InputError as error:
            problems += [f"line {line + 1}: {problem}" for problem in error.problems]
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


def _check_shortlist(task: Generates, size: int, lexicon: Lexicon | None) -> None:
    """Raises InputError where there is no lexicon, or too small a one."""
    if "source" not in task.tokenizers:
        raise InputError("search.shortlist: a language model has no source to make a shortlist from; leave it out.")
    check_candidates(size, lexicon)


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
    model: Any, shortest_requests: Sequence[Sequence[Request]], requests: Sequence[Request], settings: Search
) -> bool:
    """Whether all searches are calls outside of Python; tried on the shortest text, as each member reads it."""
    source = sources(
        [[request.source for request in each] for each in shortest_requests], next(model.parameters()).device
    )
    if source is None or any(each.has_rules for each in requests):
        return False
    return fused_search.suits(model, source, max(request.limit for request in requests), settings)


def _work(request: Request) -> int:
    return (0 if request.source is None else len(request.source)) + len(request.prefix)


def _nothing(text: str, constraints: Constraints, demands: ConstraintCompiler | None) -> Prediction:
    """What comes of a text without a token."""
    lack = unmet(demands.phrases(constraints), "") if demands else ()
    return replace(empty_prediction(text), unmet=lack)


def _demanded(request: Request, constraints: Constraints, demands: ConstraintCompiler | None) -> Request:
    """The request with what is wanted of its output, which is checked for being possible."""
    if demands is None or not constraints:
        return request
    if request.grammar is not None:
        raise InputError("the form of this output is fixed: leave out must, must_not and prefix.")
    if constraints.prefix and request.source is None:
        raise InputError("a language model continues its text: put the prefix at the end of the text.")
    prefix = [*request.prefix, *demands.prefix(constraints)]
    never_first = () if constraints.prefix else request.never_first
    return replace(request, prefix=prefix, constraint=demands.constraint(constraints), never_first=never_first)
