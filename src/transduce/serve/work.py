"""Work for the model: what to do with one text, and doing it for a batch in the worker's thread."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from transduce.documents.runs import Link
from transduce.inference.options import PredictionOptions
from transduce.inference.prediction import Prediction
from transduce.inference.sentences import Split
from transduce.serve.models import Loaded
from transduce.serve.served_model import ServedModel

if TYPE_CHECKING:
    from transduce.interpret.attention import Attention

OnToken = Callable[[str], None]  # told the output so far, after each of its tokens


class ClientDisconnected(Exception):
    """The client no longer listens."""


@dataclass(frozen=True)
class SearchOptions:
    """How to search. Texts with equal settings are batched.

    search: keys of `transduce.search.settings.Search` in place of the recipe's.
    split: see `Pipeline.predict`; "none" for text that is split already.
    word_times, matches, origins, protect, glossary: see there.
    """

    search: tuple[tuple[str, Any], ...] = ()
    long: Literal["split", "truncate"] = "split"
    split: Split = "none"
    word_times: bool = False
    matches: int | None = None
    origins: bool = False
    protect: bool = True
    glossary: tuple[tuple[str, str], ...] = ()


@dataclass(eq=False)
class WorkItem:
    """Texts that must be searched together (samples depend on their line), or one text.

    attention_limit: the most attention weights to return for a text, 0 for none.
    links: whether to return aligned words.
    on_token: receives the output token by token; greedy search only.
    do: called with the work instead of predicting; its result is the answer.
    disconnected: set when the client no longer waits for the answer.
    between: called between the pieces of a long text, so that others have their turn; raises ClientDisconnected.
    """

    model: Loaded
    texts: tuple[str, ...]
    options: SearchOptions
    attention_limit: int = 0
    links: bool = False
    on_token: OnToken | None = None
    do: "Callable[[WorkItem], Any] | None" = None
    disconnected: threading.Event = field(default_factory=threading.Event)
    between: Callable[[], None] | None = None

    @property
    def alone(self) -> bool:
        """Whether its batch is its own: what is told as it comes, samples, whose numbers go by line, what is done."""
        return self.on_token is not None or self.do is not None or self.samples

    @property
    def samples(self) -> bool:
        return samples(self.model, self.options.search)

    @property
    def batch_key(self) -> object:
        """Equal for works that may share a batch."""
        return (self.model.name, self.model.version, self.options, id(self) if self.alone else 0)

    def check_connected(self) -> None:
        """Raises ClientDisconnected when nobody waits any more, for work that takes long."""
        if self.disconnected.is_set():
            raise ClientDisconnected

    @property
    def characters(self) -> int:
        return sum(map(len, self.texts))


@dataclass(frozen=True)
class Answer:
    """The prediction of one text, and what else was requested.

    withheld: there were more weights than `attention_limit`.
    """

    prediction: Prediction
    attention: "Attention | None" = None
    links: Sequence[Link] = ()
    withheld: bool = False


def samples(model: Loaded, search: Sequence[tuple[str, Any]]) -> bool:
    """Whether a search of this model draws its outputs."""
    return bool(dict(search).get("method", model.served.search.method) == "sample")


def answer(works: Sequence[WorkItem]) -> list[list[Any]]:
    """The answers to works of one kind (`WorkItem.together`), a list for each; what `transduce predict` would say.

    An `Answer` a text, or of a work that does something else what that gave.
    """
    first = works[0]
    if first.do:
        return [[first.do(first)]]
    texts = [text for work in works for text in work.texts]
    asked, served = first.options, first.model.served
    options = PredictionOptions(
        split=asked.split,
        long=asked.long,
        word_times=asked.word_times,
        matches=asked.matches,
        origins=asked.origins,
        protect=asked.protect,
        glossary=asked.glossary,
        search=dict(asked.search),
        advance=_calling(first.between),
    )
    if first.on_token:
        on_token = _while_connected(first, first.on_token)
        return [[Answer(served.stream(texts[0], on_token, options))]]
    found = iter(served.predict(texts, options))
    return [[_with_attention(work, next(found)) for _ in work.texts] for work in works]


def _calling(between: Callable[[], None] | None) -> Callable[[int], None] | None:
    """For the engines, which tell how many texts are done."""
    return None if between is None else lambda _: between()


def _with_attention(work: WorkItem, prediction: Prediction) -> Answer:
    served = work.model.served
    if not (work.attention_limit or work.links) or not _in_one_piece(served, prediction.source, work.options):
        return Answer(prediction)
    if work.links and not served.attends:
        return Answer(prediction)
    if work.links:
        return Answer(prediction, links=served.links(prediction))
    found = served.attention(prediction)
    withheld = sum(layer.weights.numel() for layer in found.layers) > work.attention_limit
    return Answer(prediction, None if withheld else found, withheld=withheld)


def _in_one_piece(served: ServedModel, text: str, ask: SearchOptions) -> bool:
    """Whether there is attention; of what was cut off there is none either, as it is not of the text."""
    whole = len(served.pieces([text], ask.split, "truncate").cuts[0]) == 1
    return bool(text.strip()) and whole and served.length(text) <= served.max_source_length


def _while_connected(work: WorkItem, on_token: OnToken) -> OnToken:
    """Hears as long as the client waits for it."""

    def forward(output: str) -> None:
        work.check_connected()
        on_token(output)

    return forward
