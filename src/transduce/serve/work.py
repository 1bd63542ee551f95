"""What the model is asked to do with one text, and the doing of it for a batch, in the worker's thread."""

import copy
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from torch import Tensor, nn

from transduce.inference.sentences import Split
from transduce.interpret.attention import Attention
from transduce.models.protocols import Tree
from transduce.pipeline.pipeline import Pipeline
from transduce.serve.attention import links
from transduce.serve.markup import Link
from transduce.serve.models import Loaded
from transduce.tasks.protocols import Prediction

Hear = Callable[[str], None]  # told the output so far, after each of its tokens


class Left(Exception):
    """Nobody listens any more."""


@dataclass(frozen=True)
class Ask:
    """How to search; texts that ask alike are batched.

    search: keys of `transduce.search.settings.Search` in place of the recipe's.
    split: see `Pipeline.predict`; "none" for what is cut already.
    """

    search: tuple[tuple[str, Any], ...] = ()
    long: Literal["split", "truncate"] = "split"
    split: Split = "none"


@dataclass(eq=False)
class Work:
    """Texts that must be searched together (samples depend on their line), or one text.

    looks: the most attention weights wanted of a text, 0 for none; links: whether words that belong together are.
    hear: the output is told token by token; greedy only.
    do: done in place of a prediction, and what it gives is the answer; told the work itself.
    left: set when nobody waits for the answer any more.
    """

    model: Loaded
    texts: tuple[str, ...]
    ask: Ask
    looks: int = 0
    links: bool = False
    hear: Hear | None = None
    do: "Callable[[Work], Any] | None" = None
    left: threading.Event = field(default_factory=threading.Event)

    @property
    def alone(self) -> bool:
        """Whether its batch is its own: what is told as it comes, samples, whose numbers go by line, what is done."""
        return self.hear is not None or self.do is not None or self.samples

    @property
    def samples(self) -> bool:
        """Whether the outputs are drawn."""
        return samples(self.model, self.ask.search)

    @property
    def together(self) -> object:
        """Equal for works that may share a batch."""
        return (self.model.name, self.model.version, self.ask, id(self) if self.alone else 0)

    def check_wanted(self) -> None:
        """Raises Left when nobody waits any more, for work that takes long."""
        if self.left.is_set():
            raise Left

    @property
    def characters(self) -> int:
        """Of all texts."""
        return sum(map(len, self.texts))


@dataclass(frozen=True)
class Answer:
    """One text's prediction, and what was asked for beside it; withheld: there were more weights than wanted."""

    prediction: Prediction
    attention: Attention | None = None
    links: Sequence[Link] = ()
    withheld: bool = False


def samples(model: Loaded, search: Sequence[tuple[str, Any]]) -> bool:
    """Whether a search of this model draws its outputs."""
    return bool(dict(search).get("method", model.pipeline.recipe.search.method) == "sample")


def answer(works: Sequence[Work]) -> list[list[Any]]:
    """The answers to works of one kind (`Work.together`), a list for each; what `transduce predict` would say.

    An `Answer` a text, or of a work that does something else what that gave.
    """
    first = works[0]
    if first.do:
        return [[first.do(first)]]
    pipeline = _listening(first) if first.hear else first.model.pipeline
    texts = [text for work in works for text in work.texts]
    asked, search = first.ask, dict(first.ask.search)
    found = iter(pipeline.predict(texts, batch_size=len(texts), split=asked.split, long=asked.long, **search))
    return [[_looked(work, next(found)) for _ in work.texts] for work in works]


def _looked(work: Work, prediction: Prediction) -> Answer:
    pipeline = work.model.pipeline
    if not (work.looks or work.links) or not _in_one_piece(pipeline, prediction.source, work.ask):
        return Answer(prediction)
    found = pipeline.attention(prediction)
    if work.links:
        return Answer(prediction, links=links(prediction, found))
    withheld = sum(layer.weights.numel() for layer in found.layers) > work.looks
    return Answer(prediction, None if withheld else found, withheld=withheld)


def _in_one_piece(pipeline: Pipeline, text: str, ask: Ask) -> bool:
    """Whether there is attention; of what was cut off there is none either, as it is not of the text."""
    reads = pipeline.task.tokenizers.get("source") or pipeline.task.tokenizers["target"]
    whole = len(pipeline.pieces([text], ask.split, "truncate").cuts[0]) == 1
    return bool(text.strip()) and whole and len(reads.encode([text])[0]) <= pipeline.task.readable


def _listening(work: Work) -> Pipeline:
    """The work's pipeline with a model that tells what it is asked to go on from."""
    heard = copy.copy(work.model.pipeline)
    heard.model = _Told(heard.model, work, heard.task.tokenizers["target"].decode)
    return heard


class _Told(nn.Module):
    """A model in front of which somebody listens: each step is given the token chosen before."""

    def __init__(self, model: nn.Module, work: Work, decode: Callable[[list[int]], str]) -> None:
        super().__init__()
        self._model: Any = model
        self._work, self._decode = work, decode
        self._ids: list[int] = []

    def start(self, source: Any, rows: int) -> tuple[Tree, Tree]:
        self._ids = []
        started: tuple[Tree, Tree] = self._model.start(source, rows)
        return started

    def step(self, token_B: Tensor, memory: Tree, state: Tree) -> tuple[Tensor, Tree]:
        self._work.check_wanted()
        self._ids.append(int(token_B[0]))
        if self._work.hear and len(self._ids) > 1:  # the first is the start token
            self._work.hear(self._decode(self._ids[1:]))
        stepped: tuple[Tensor, Tree] = self._model.step(token_B, memory, state)
        return stepped
