"""From texts to a label for each of their words, by a model that labels words.

A text that is longer than the model reads is read in windows; the likeliest row of labels is that of the whole text.

Shapes: B texts of a batch, N words, C labels.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import exp
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from transduce.core.errors import InputError
from transduce.data.columns import Columns
from transduce.data.structures.label_schemes import spans_of
from transduce.inference.batches import by_length
from transduce.inference.likelihood import Likelihood
from transduce.inference.prediction import Prediction
from transduce.inference.protocols import Advance
from transduce.inference.word_windows import read_windows
from transduce.layers.crf import Chain, best_rows, log_likelihood_terms, log_marginals
from transduce.search.settings import Search


class LabelledWord(NamedTuple):
    """A word of a text, its characters [start, end), its label and the probability that it has this one."""

    word: str
    label: str
    probability: float
    start: int
    end: int


class Entity(NamedTuple):
    """Words that together are of one kind, and the probability of their labels behind those before."""

    kind: str
    text: str
    start: int
    end: int
    probability: float


class LabelTable(NamedTuple):
    """The probability of each of C labels at each of N words; of a CRF the scores of neighbouring labels, else None."""

    labels: tuple[str, ...]
    probability_NC: Tensor
    chain: Chain | None


@dataclass(frozen=True, repr=False)
class WordLabelPrediction(Prediction):
    """A label for each word of a text; `text` is the labels with a space between.

    tokens: the labels. token_log_probabilities: of each, given those before; they sum to `log_probability`.
    words: of the text, in their order. entities: the spans that the labels say; none where they say none.
    labels: all that the model knows. scheme: whether and how these say spans.
    table: the probability of every label, computed when asked; None = nobody knows the model.
    """

    words: tuple[LabelledWord, ...] = ()
    entities: tuple[Entity, ...] = ()
    labels: tuple[str, ...] = ()
    scheme: str = "none"
    table: Callable[[], LabelTable] | None = field(default=None, repr=False, compare=False)

    def __getstate__(self) -> dict[str, Any]:
        """What is copied to other processes: no model."""
        return {**super().__getstate__(), "table": None}

    def __repr__(self) -> str:
        return f"WordLabelPrediction({self.text!r})"

    def written_as(self, form: str) -> str:
        """conll: a word and its label a line; entities: these as JSON; text: of segmented text the words."""
        if form == "conll":
            return "".join(f"{each.word}\t{each.label}\n" for each in self.words)
        if form == "entities":
            return json.dumps([each._asdict() for each in self.entities], ensure_ascii=False)
        segmented = self.entities and not any(each.kind for each in self.entities)
        return " ".join(each.text for each in self.entities) if segmented else self.text

    def details(self) -> dict[str, Any]:
        """The words with their labels, and the entities."""
        return {name: [each._asdict() for each in getattr(self, name)] for name in ("words", "entities")}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"source": self.source, "text": self.text, **self.details(), "log_probability": self.log_probability}


class Row(NamedTuple):
    """Labels of a text: the log-probability of each behind those before, and the probability of each by itself."""

    ids: list[int]
    terms: list[float]
    probabilities: list[float]


@dataclass(frozen=True)
class WordLabelPredictor:
    """Each word its label; see `transduce.inference.protocols.Predictor`.

    longest: the most pieces that are read at once.
    """

    columns: Columns
    longest: int = 1 << 24
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        labels = self.columns["target"]
        object.__setattr__(self, "names", tuple(labels.tokens(range(labels.spec.size))))

    def predict(
        self,
        model: Any,
        texts: Sequence[str],
        settings: Search | None = None,
        batch_size: int = 64,
        advance: Advance | None = None,
    ) -> list[WordLabelPrediction]:
        """One a text, in their order; there is nothing to search, so `settings` mean nothing.

        A text without words is answered by an empty one.
        """

        found = self._best(model, self._scores(model, texts, batch_size, advance), batch_size)
        made = zip(texts, found, strict=True)
        return [replace(self._prediction(*each), table=partial(self._table, model, each[0])) for each in made]

    def _table(self, model: Any, text: str) -> LabelTable:
        """The probabilities by themselves; with a CRF, its marginals."""
        [scores_NC], chain = self._scores(model, [text], 1, None), _chain(model)
        if not len(scores_NC):
            return LabelTable(self.names, scores_NC, chain if model.crf else None)
        normed_1NC = _normed(model, scores_NC[None], torch.tensor([len(scores_NC)]), chain)
        return LabelTable(self.names, normed_1NC[0].exp(), chain if model.crf else None)

    def _best(self, model: Any, scores: Sequence[Tensor], batch_size: int) -> list["Row"]:
        """The likeliest labels of each text, of which these are the scores (N, C)."""
        found, lengths = dict.fromkeys(range(len(scores)), Row([], [], [])), [len(each) for each in scores]
        chain = _chain(model)
        for places in by_length(lengths, batch_size):
            if taken := [place for place in places if lengths[place]]:
                length_B = torch.tensor([lengths[place] for place in taken])
                scores_BNC = pad_sequence([scores[place] for place in taken], batch_first=True)
                ids_BN = best_rows(scores_BNC, length_B, chain)
                terms_BN = _terms(model, scores_BNC, ids_BN, length_B, chain)
                own_BN = _normed(model, scores_BNC, length_B, chain).gather(2, ids_BN[..., None])[..., 0].exp()
                rows = zip(taken, length_B, *(each.tolist() for each in (ids_BN, terms_BN, own_BN)), strict=True)
                found |= {place: Row(ids[:n], terms[:n], own[:n]) for place, n, ids, terms, own in rows}
        return [found[place] for place in range(len(scores))]

    def score(
        self, model: Any, pairs: Sequence[tuple[str, str]], batch_size: int = 64, advance: Advance | None = None
    ) -> list[Likelihood]:
        """The probability of the labels of each (text, labels), word by word, given the labels before.

        Raises:
            InputError: not as many labels as words, or unknown ones; all are named.
        """
        labels, problems = self.columns["target"], []
        rows = [labels.ids(said.split(" ") if said else []) for _, said in pairs]
        scores = self._scores(model, [text for text, _ in pairs], batch_size, advance)
        for number, (row, scores_NC) in enumerate(zip(rows, scores, strict=True), 1):
            if len(row) != len(scores_NC):
                problems.append(f"pair {number}: {len(scores_NC)} words and {len(row)} labels.")
            elif len(self.names) in row:
                wrong = pairs[number - 1][1].split(" ")[row.index(len(self.names))]
                problems.append(f'pair {number}: "{wrong[:40]}" is no label of this model.')
        if problems:
            raise InputError(problems)
        return [self._likelihood(model, *each) for each in zip(rows, scores, strict=True)]

    def _likelihood(self, model: Any, row: list[int], scores_NC: Tensor) -> Likelihood:
        if not row:
            return Likelihood(0.0, 0, (), (), "word")
        ids_1N, length_1 = torch.tensor([row]), torch.tensor([len(row)])
        terms_N = _terms(model, scores_NC[None], ids_1N, length_1, _chain(model))[0]
        names = tuple(self.names[each] for each in row)
        return Likelihood(float(terms_N.sum()), len(row), names, tuple(terms_N.tolist()), "word")

    def _prediction(self, text: str, row: "Row") -> WordLabelPrediction:
        names, terms = tuple(self.names[each] for each in row.ids), row.terms
        bounds = self.columns["source"].bounds(text)  # type: ignore[attr-defined]
        words = tuple(
            LabelledWord(text[start:end], name, probability, start, end)
            for (start, end), name, probability in zip(bounds, names, row.probabilities, strict=True)
        )
        entities = []
        for first, last, kind in self._spans(names):
            start, end = bounds[first][0], bounds[last - 1][1]
            entities.append(Entity(kind, text[start:end], start, end, exp(sum(terms[first:last]))))
        total = sum(terms)
        made = WordLabelPrediction(text, " ".join(names), total, total, names, tuple(terms), words=words)
        return replace(made, entities=tuple(entities), labels=self.names, scheme=self._scheme)

    @property
    def _scheme(self) -> str:
        return str(self.columns["target"].scheme)  # type: ignore[attr-defined]

    def _spans(self, names: Sequence[str]) -> list[Any]:
        """The spans that labels of a scheme say."""
        return spans_of(names) if self._scheme != "none" else []

    def _scores(self, model: Any, texts: Sequence[str], batch_size: int, advance: Advance | None) -> list[Tensor]:
        """The scores (N, C) of the words of each text, in fp64, on the processor."""
        labels = len(self.names)
        return read_windows(model, self.columns, texts, model.emissions, self.longest, batch_size, advance, labels)


def _terms(model: Any, scores_BNC: Tensor, ids_BN: Tensor, length_B: Tensor, chain: Chain) -> Tensor:
    """(B, N): the log-probability of each label, with a CRF behind those before."""
    if model.crf:
        return log_likelihood_terms(scores_BNC, ids_BN, length_B, chain)
    return scores_BNC.log_softmax(2).gather(2, ids_BN[..., None])[..., 0]


def _normed(model: Any, scores_BNC: Tensor, length_B: Tensor, chain: Chain) -> Tensor:
    """(B, N, C): the log-probability of each label by itself."""
    return log_marginals(scores_BNC, length_B, chain) if model.crf else scores_BNC.log_softmax(2)


def _chain(model: Any) -> Chain:
    """The scores of neighbouring labels, in fp64, on the processor."""
    with torch.inference_mode():
        return Chain(*(each.cpu() for each in model.chain.chain(torch.float64)))
