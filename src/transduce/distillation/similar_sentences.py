"""Sentences like given ones, with a model's translations of them: what it can do, to be kept and to be measured.

A token v is replaced by another, w, which is the likelier the more similar its embedding is:

    p(w | v) = exp(cos(e_v, e_w) / TEMPERATURE) / sum over w' of the same form

To train on: given sentences of which each token is replaced with probability `NOISE`. Few of them mean anything, but
they reach words that are in no given sentence, and what a model says of them ties it to what it was.

To measure by: walks, which stay with sentences as the model knows them. A walk begins at a given sentence. Each step
replaces one token; half of the time by one that was taken in its place before, if there is any. Which token it is
depends on how often that has succeeded. The step is taken if it changes the translation, which has no fewer words then,
and of which the model is as sure, by the mean log-probability of a token, as it is of nine in ten of the given
sentences. After `LENGTH` steps a walk begins anew. Where a model translates so badly that next to no step is taken, any
is.

A translation that repeats what the new targets correct (see `_corrected`) is left out.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from transduce.data.placeholders import RESERVED
from transduce.data.tags import language_tag, languages_of, tags_of
from transduce.inference.prediction import Prediction
from transduce.layers.embedding import Embedding
from transduce.pipeline.pipeline import Pipeline
from transduce.training.validation import spread

Pair = tuple[str, str]

TEMPERATURE = 0.05
WALKS, LENGTH = 1000, 4  # at most
NOISE = 0.3
STEPS = 8  # for each pair that is wanted, at most
AGAIN = 0.5  # how often a token is taken that was taken before
FEW = 0.1  # of the pairs that are wanted
SURE = 0.1  # the share of the given sentences of which a model is less sure than it must be of others
CONTINUES, BEGINS = "##", ("▁", "Ġ")  # how tokens look that go on with a word, or begin one


class SimilarSentences:
    """Sentences like those of `pairs`, whose sources have no tags. Of a model of several languages each has a tag."""

    def __init__(self, model: Pipeline, pairs: Sequence[Pair], seed: int) -> None:
        self._model, self._tokenizer = model, model.task.tokenizers["source"]
        self._random = np.random.Generator(np.random.PCG64(seed))
        marks = [f"{language_tag(each)} " for each in languages_of(self._tokenizer)] or [""]
        begun = spread([pair for pair in pairs if pair[0].strip()], WALKS)
        self._marks = [marks[place % len(marks)] for place in range(len(begun))]
        self._given = {source for source, _ in pairs}
        first = self._predicted([source for source, _ in begun])
        self._begun = [_Place(source, each.text) for (source, _), each in zip(begun, first, strict=True)]
        self._walks = list(self._begun)
        self._corrected = [_corrected(each.text, target) for each, (_, target) in zip(first, begun, strict=True)]
        self._least = float(np.quantile([_sureness(each) for each in first], SURE)) if first else 0.0
        self._similar, self._any = _Similar(model), False

    def pairs(self, train: int, kept: int, advance: Callable[[int], None]) -> tuple[list[Pair], list[Pair]]:
        """So many pairs to train on, and so many to measure by; fewer where no more are found."""
        learnt = self._collected(train, self._noised, {}, advance)
        measured = self._collected(kept, self._step, learnt, advance)
        if len(measured) < FEW * kept:
            self._any = True
            measured = self._collected(kept, self._step, learnt, advance)
        return list(learnt.items()), list(measured.items())

    def _collected(
        self, wanted: int, step: Callable[[], list[Pair]], without: dict[str, str], advance: Callable[[int], None]
    ) -> dict[str, str]:
        found = dict[str, str]()
        for _ in range(1 + STEPS * wanted // max(1, len(self._walks))):
            for source, target in step() if len(found) < wanted else ():
                if len(found) < wanted and source not in found and source not in without:
                    found[source] = target
                    advance(1)
        return found

    def _noised(self) -> list[Pair]:
        """One pair from each given sentence, but for those that may not be learnt from."""
        sources = [self._similar.noised(each.source, self._random) for each in self._begun]
        made = [
            (place, source, each)
            for place, (source, each) in enumerate(zip(sources, self._predicted(sources), strict=True))
        ]
        return [
            self._marked(place, source, each)
            for place, source, each in made
            if self._may_be_learnt(place, source, each)
        ]

    def _may_be_learnt(self, place: int, source: str, found: Prediction) -> bool:
        if not found.text or source in self._given:
            return False
        return self._any or not _repeats(found.text, self._corrected[place])

    def _marked(self, place: int, source: str, found: Prediction) -> Pair:
        """With its tag."""
        return self._marks[place] + source, found.text

    def _step(self) -> list[Pair]:
        """One of each walk: those that are taken, and may be measured by."""
        proposed = [self._similar.to(walk.source, self._random) for walk in self._walks]
        predicted = self._predicted([source for source, *_ in proposed])
        made = list[Pair]()
        for place, ((source, before, after), each) in enumerate(zip(proposed, predicted, strict=True)):
            walk = self._walks[place]
            taken = self._is_taken(walk, each)
            self._similar.learn(before, after, taken)
            if not taken:
                continue
            self._walks[place] = (
                _Place(source, each.text, walk.steps + 1) if walk.steps < LENGTH else self._begun[place]
            )
            if self._may_be_learnt(place, source, each):
                made.append(self._marked(place, source, each))
        return made

    def _is_taken(self, walk: "_Place", step: Prediction) -> bool:
        if self._any:
            return bool(step.text)
        changed = step.text != walk.target and len(step.text.split()) >= len(walk.target.split())
        return changed and step.ended and _sureness(step) >= self._least

    def _predicted(self, texts: Sequence[str]) -> list[Prediction]:
        marked = [mark + text for mark, text in zip(self._marks, texts, strict=True)]
        return self._model.predict(marked, method="greedy", split="none", protect=False) if marked else []


class _Place(NamedTuple):
    """Where a walk is: a source with its translation, so many steps from its beginning."""

    source: str
    target: str
    steps: int = 0


class _Similar:
    """Which token may stand in the place of another."""

    def __init__(self, model: Pipeline) -> None:
        self._tokenizer = model.task.tokenizers["source"]
        texts = self._tokenizer.tokens(range(self._tokenizer.size))
        apart = {*self._tokenizer.special.values()} | {texts.index(tag) for tag in tags_of(self._tokenizer)}
        apart |= {index for index, text in enumerate(texts) if text in RESERVED}
        self._forms = np.array([_form(text) if index not in apart else -1 for index, text in enumerate(texts)])
        self._weight_VD = _embedding(model.model, len(texts))
        self._taken, self._tried = defaultdict[int, list[int]](list), Counter[int]()
        self._likely = dict[int, tuple[NDArray[np.int64], NDArray[np.float64]]]()

    def to(self, text: str, random: np.random.Generator) -> tuple[str, int, int]:
        """The text with one token replaced; which one, and by which. -1, -1: none can be."""
        (ids,) = self._tokenizer.encode([text])
        places = [place for place, index in enumerate(ids) if self._forms[index] > 0]
        if not places:
            return text, -1, -1
        rate = np.cumsum([self._rate(ids[place]) for place in places])
        place = places[int(np.searchsorted(rate, random.random() * rate[-1]).clip(max=len(places) - 1))]
        other = self._other(ids[place], random)
        return self._tokenizer.decode([*ids[:place], other, *ids[place + 1 :]]), ids[place], other

    def noised(self, text: str, random: np.random.Generator) -> str:
        """The text with each token replaced with probability `NOISE`."""
        (ids,) = self._tokenizer.encode([text])
        drawn = random.random(len(ids)) < NOISE
        changed = [
            self._other(index, random) if replaced and self._forms[index] > 0 else index
            for index, replaced in zip(ids, drawn.tolist(), strict=True)
        ]
        return self._tokenizer.decode(changed)

    def learn(self, before: int, after: int, taken: bool) -> None:
        """Whether a token could be replaced so."""
        self._tried[before] += 1
        if taken:
            self._taken[before].append(after)

    def _rate(self, index: int) -> float:
        """How often it could be replaced, as if it had been tried twice more with one success."""
        return (len(self._taken[index]) + 1) / (self._tried[index] + 2)

    def _other(self, index: int, random: np.random.Generator) -> int:
        known = self._taken[index]
        if known and random.random() < AGAIN:
            return known[int(random.integers(len(known)))]
        others, cumulated = self._of(index)
        if not len(others):
            return index
        return int(others[min(int(np.searchsorted(cumulated, random.random())), len(others) - 1)])

    def _of(self, index: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The tokens of the same form, and the cumulated probability of each."""
        if index not in self._likely:
            others = np.flatnonzero(self._forms == self._forms[index])
            others = others[others != index]
            score = self._weight_VD[others] @ self._weight_VD[index] / TEMPERATURE
            weight = np.exp(score - score.max(initial=0.0))
            self._likely[index] = others, np.cumsum(weight) / max(weight.sum(), 1e-300)
        return self._likely[index]


def _form(token: str) -> int:
    """Tokens of one form may stand for each other; 0: what has no letter or digit, which stays as it is."""
    word = token.removeprefix(CONTINUES).lstrip("".join(BEGINS))
    if not any(map(str.isalnum, word)):
        return 0
    return 1 + token.startswith(BEGINS) + 2 * token.startswith(CONTINUES)


def _embedding(model: Any, size: int) -> NDArray[np.float64]:
    """(V, D): of source tokens, each of length 1; equal ones where a model keeps none by the usual names."""
    for name in ("source_embedding", "embedding", "target_embedding"):
        embedding = getattr(model, name, None)
        if isinstance(embedding, Embedding) and len(embedding.weight) == size:
            weight_VD = embedding.weight.detach().double().cpu()
            return torch.nn.functional.normalize(weight_VD, dim=1).numpy()
    return np.ones((size, 1))


def _sureness(prediction: Prediction) -> float:
    """The mean log-probability of a token."""
    return float(np.mean(prediction.token_log_probabilities)) if len(prediction.token_log_probabilities) else -np.inf


def _corrected(output: str, target: str) -> list[list[str]]:
    """The runs of words in a model's output that the new target has not."""
    words, wanted = output.split(), target.split()
    changes = SequenceMatcher(None, words, wanted, autojunk=False).get_opcodes()
    return [words[first:last] for kind, first, last, _, _ in changes if kind in ("replace", "delete")]


def _repeats(output: str, corrected: Sequence[Sequence[str]]) -> bool:
    """Whether one of these runs stands in an output."""
    words = output.split()
    return any(
        words[place : place + len(run)] == [*run] for run in corrected for place in range(len(words) - len(run) + 1)
    )
