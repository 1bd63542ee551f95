"""From questions and texts to the spans that answer them, by a model that points.

A text that is longer than the model reads at once is read in windows that overlap. In each of them the probabilities
of all first and of all last tokens sum to 1 with the end token of the window, which means "not here". The answer is the
likeliest span of all windows; "no answer" is as likely as in the window where it is least so (Devlin et al. 2019,
section 4.3).

Shapes: S tokens of a window.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transduce.data.columns.question_context import Passage, QuestionContext
from transduce.data.structures.squad import cut
from transduce.inference.batch_predictor import predict_in_batches
from transduce.inference.likelihood import Likelihood
from transduce.inference.prediction import Prediction
from transduce.inference.protocols import Advance
from transduce.search.settings import Search

Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Reading:
    """How a text is read, and which spans may answer.

    window, stride: tokens of a text at once, and how far the next window begins behind one.
    question: tokens of a question that are read; the rest is cut off.
    answer: tokens of the longest answer.
    no_answer: whether "no answer" is an answer, and by how many nats it has to be likelier than the best span.
    """

    window: int
    stride: int
    question: int
    answer: int
    no_answer: float | None


@dataclass(frozen=True, repr=False)
class SpanPrediction(Prediction):
    """The span of a text that answers a question; `text` is the answer, "" where there is none.

    tokens: the places of its first and last token in the text. score: log p less that of "no answer".
    start, end: its characters [start, end) of the text; None where there is no answer.
    no_answer: the probability that there is none.
    window: where it was found: of all windows that the text was read in the one with the likeliest span, or where there
        is no answer the one in which that is least likely.
    """

    start: int | None = None
    end: int | None = None
    no_answer: float = 0.0
    window: "SeenWindow | None" = None

    def __repr__(self) -> str:
        return f"SpanPrediction({self.text!r}, start={self.start}, no_answer={self.no_answer:.4g})"

    @property
    def seen(self) -> tuple[int, ...] | None:
        """The question, as far as it was read, and the window."""
        return self.window.places() if self.window else None

    @property
    def written(self) -> tuple[str, ...]:
        """The places of the first and the last token in the window."""
        first = self.window.first if self.window else 0
        return tuple(str(int(each) - first) for each in self.tokens)

    def details(self) -> dict[str, Any]:
        """Where the answer stands in the text, and the probability that there is none."""
        return {"start": self.start, "end": self.end, "no_answer": self.no_answer}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        question, context = cut(self.source)
        known = {"question": question, "context": context, "text": self.text, **self.details()}
        return {**known, "score": self.score, "log_probability": self.log_probability}


class Window(NamedTuple):
    """A part of a text as a model reads it.

    text: the number of the text. row: see `QuestionContext`. first, tokens: where it begins in the text, and how many
        tokens of the text it has.
    """

    text: int
    row: NDArray[np.int32]
    first: int
    tokens: int


class SeenWindow(NamedTuple):
    """A window, among the tokens of a question and a text: the question, an end token, the text, an end token.

    asked: tokens of the question; read: how many of them the model read. length: tokens of the text; first, tokens:
        those of the window. number, windows: which of how many windows it is, from 1. before, between: tokens before
        the question, and between it and the text.
    """

    asked: int
    read: int
    length: int
    first: int
    tokens: int
    number: int
    windows: int
    before: int = 0
    between: int = 1

    def places(self) -> tuple[int, ...]:
        """Of the tokens that the model read, end tokens included."""
        behind = self.before + self.asked
        text = behind + self.between
        window = range(text + self.first, text + self.first + self.tokens)
        return (*range(self.before + self.read), *range(behind, text), *window, text + self.length)


class ReadText(NamedTuple):
    """A text, and for each of its tokens the characters that it came from. asked: how many tokens the question has."""

    context: str
    offsets: list[tuple[int, int]]
    asked: int = 0


class Found(NamedTuple):
    """A span of tokens, first and last, and its log-probabilities: of the first token and of the last."""

    first: int
    last: int
    log_probabilities: tuple[float, float]

    @property
    def value(self) -> float:
        """log p."""
        return sum(self.log_probabilities)


def windows(length: int, size: int, stride: int) -> Iterator[tuple[int, int]]:
    """The tokens [first, last) of each window over a text; a short text, also one without a token, is one window."""
    first = 0
    while first + size < length:
        yield first, first + size
        first += stride
    yield first, length


def read_windows(
    column: QuestionContext, texts: Sequence[str], reading: Reading
) -> tuple[list[ReadText], list[Window]]:
    """Each text with its offsets, and all windows, text by text. Raises InputError for what is no question and text."""
    tokenizer = column.tokenizer
    sides = [cut(text) for text in texts]
    contexts = list(dict.fromkeys(context for _, context in sides))
    ids = dict(zip(contexts, tokenizer.encode(contexts), strict=True))
    offsets = {context: tokenizer.offsets(context) for context in contexts}
    reads, found = [], []
    for number, (question, (_, context)) in enumerate(
        zip(tokenizer.encode([question for question, _ in sides]), sides, strict=True)
    ):
        reads.append(ReadText(context, offsets[context], len(question)))
        for first, last in windows(len(ids[context]), reading.window, reading.stride):
            row = column.row(question[: reading.question], ids[context][first:last])
            found.append(Window(number, np.asarray(row, np.int32), first, last - first))
    return reads, found


def token_span(offsets: Sequence[tuple[int, int]], first: int, last: int) -> tuple[int, int] | None:
    """The first and the last token of the characters [first, last); None where no token holds any of them."""
    inside = [place for place, (start, end) in enumerate(offsets) if start < last and end > first]
    return (inside[0], inside[-1]) if inside else None


def character_span(read: ReadText, first: int, last: int) -> tuple[int, int]:
    """The characters of the tokens first .. last, without white space at the ends."""
    start, end = read.offsets[first][0], read.offsets[last][1]
    part = read.context[start:end]
    if not part.strip():
        return start, end
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())


def best_span(start_S: Numbers, end_S: Numbers, longest: int) -> Found | None:
    """The likeliest span of at most `longest` tokens; of equals the first. None where there is no token."""
    if not len(start_S):
        return None
    both_SS = start_S[:, None] + end_S
    places = np.arange(len(start_S))
    length_SS = places - places[:, None] + 1
    both_SS[(length_SS < 1) | (length_SS > longest)] = -np.inf
    first, last = np.unravel_index(int(both_SS.argmax()), both_SS.shape)
    return Found(int(first), int(last), (float(start_S[first]), float(end_S[last])))


@dataclass(frozen=True)
class SpanPredictor:
    """Each question the span that answers it; see `transduce.inference.protocols.Predictor`."""

    column: QuestionContext
    reading: Reading

    def predict(
        self,
        model: Any,
        texts: Sequence[str],
        settings: Search | None = None,
        batch_size: int = 64,
        advance: Advance | None = None,
    ) -> list[SpanPrediction]:
        """One a text, in their order; there is nothing to search, so `settings` mean nothing.

        Raises:
            InputError: a text is not a question and a text with a tab or a line break between.
        """
        reads, found = read_windows(self.column, texts, self.reading)
        best: dict[int, tuple[Found, Window]] = {}
        nothing: dict[int, tuple[tuple[float, float], Window]] = {}
        for window, start_S, end_S in self._looked(model, found, batch_size, advance):
            place, none = window.text, ((float(start_S[-1]), float(end_S[-1])), window)
            nothing[place] = min(nothing.get(place, none), none, key=lambda each: sum(each[0]))
            span = best_span(start_S[:-1], end_S[:-1], self.reading.answer)
            if span:
                here = Found(span.first + window.first, span.last + window.first, span.log_probabilities), window
                best[place] = max(best.get(place, here), here, key=lambda each: _preferred(each[0]))
        counts = Counter(window.text for window in found)
        predictions = []
        for place, (text, read) in enumerate(zip(texts, reads, strict=True)):
            made = self._prediction(text, read, best[place][0] if place in best else None, nothing[place][0])
            _, window = nothing[place] if made.start is None else best[place]
            predictions.append(replace(made, window=self._seen(read, window, counts[place])))
        return predictions

    def _seen(self, read: ReadText, window: Window, count: int) -> SeenWindow:
        asked, number = min(read.asked, self.reading.question), window.first // self.reading.stride + 1
        around = len(self.column.opening), len(self.column.separator)
        return SeenWindow(read.asked, asked, len(read.offsets), window.first, window.tokens, number, count, *around)

    def score(
        self, model: Any, pairs: Sequence[tuple[str, str]], batch_size: int = 64, advance: Advance | None = None
    ) -> list[Likelihood]:
        """The probability of each (text, answer): of the likeliest place where the text holds the answer.

        "" is "no answer". An answer that the text does not hold counts no span.
        """
        reads, found = read_windows(self.column, [text for text, _ in pairs], self.reading)
        wanted = [_places(read, answer) for read, (_, answer) in zip(reads, pairs, strict=True)]
        values: dict[int, list[float]] = {}
        for window, start_S, end_S in self._looked(model, found, batch_size, advance):
            of_text = values.setdefault(window.text, [])
            if not pairs[window.text][1]:
                of_text.append(float(start_S[-1] + end_S[-1]))
            for first, last in wanted[window.text]:
                if window.first <= first <= last < window.first + window.tokens:
                    of_text.append(float(start_S[first - window.first] + end_S[last - window.first]))
        told = []
        for place, (_, answer) in enumerate(pairs):
            each = (max(values[place]) if answer else min(values[place]),) if values[place] else ()
            told.append(Likelihood(sum(each), len(each), (answer,) * len(each), each, "span"))
        return told

    def _looked(
        self, model: Any, found: Sequence[Window], batch_size: int, advance: Advance | None
    ) -> list[tuple[Window, Numbers, Numbers]]:
        """Each window with the log-probabilities (S + 1,) of its first and last tokens, the end token last."""
        waiting = np.bincount([each.text for each in found]) if found else np.zeros(0, np.int64)

        def done(places: Sequence[int]) -> None:
            for place in places:
                waiting[found[place].text] -= 1
            if advance:
                advance(sum(int(waiting[text] == 0) for text in {found[place].text for place in places}))

        def run(passage: Passage) -> Iterator[tuple[Numbers, ...]]:
            return zip(*(each.double().log_softmax(-1).cpu().numpy() for each in model.point(passage)), strict=True)

        def collate(windows: list[Window]) -> Passage:
            passage: Passage = self.column.collate([window.row for window in windows])
            return passage

        lengths = [len(window.row) for window in found]
        looked = predict_in_batches(model, found, collate, run, lengths, batch_size, done)
        return [
            (window, start_S[: window.tokens + 1], end_S[: window.tokens + 1])
            for window, (start_S, end_S) in zip(found, looked, strict=True)
        ]

    def _prediction(
        self, text: str, read: ReadText, best: Found | None, nothing: tuple[float, float]
    ) -> SpanPrediction:
        none, margin = sum(nothing), self.reading.no_answer
        if best is None or (margin is not None and none > best.value + margin):
            end = str(len(read.offsets))
            return SpanPrediction(text, "", 0.0, none, (end, end), nothing, no_answer=float(np.exp(none)))
        start, end_ = character_span(read, best.first, best.last)
        return SpanPrediction(
            source=text,
            text=read.context[start:end_],
            score=best.value - none,
            log_probability=best.value,
            tokens=(str(best.first), str(best.last)),
            token_log_probabilities=best.log_probabilities,
            start=start,
            end=end_,
            no_answer=float(np.exp(none)),
        )


def _preferred(span: Found) -> tuple[float, int, int]:
    return span.value, -span.first, -span.last


def _places(read: ReadText, answer: str) -> list[tuple[int, int]]:
    """The tokens of each place where the text holds the answer."""
    found, start = [], read.context.find(answer) if answer else -1
    while start >= 0:
        if span := token_span(read.offsets, start, start + len(answer)):
            found.append(span)
        start = read.context.find(answer, start + 1)
    return found
