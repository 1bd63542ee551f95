"""Where a model found an answer: the span in its text, how likely each word begins or ends it, and who looks at whom.

A text in several windows is shown as the model read it in the window of the answer; the rest of it has no numbers.

Shapes: N tokens of question and text, W words of the text, Q words of the question.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.text import Text

from transduce.core.templates import render
from transduce.data.structures.squad import cut
from transduce.inference.prediction import Prediction
from transduce.inference.spans import SpanPrediction
from transduce.interpret.attention import Attention
from transduce.interpret.numbers import packed
from transduce.interpret.shaded_text import heaviest, marks, of_words, parts, placed, read_by, words_of
from transduce.interpret.terminal import as_printed, bar_of_height, shaded_text
from transduce.interpret.token_spans import Word
from transduce.interpret.words import by_words

TEMPLATE = Path(__file__).with_name("answer_span.html.jinja")
HIGH = 26  # pixels of the highest bar
LEAST = 0.02  # a probability without a bar

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class AnswerSpan:
    """A question and a text as one text, and an answer in it.

    begin: the first character of the text behind the question. question, words: the words of both.
    start, end: (W,) the probability that the answer's first, or last, token is in a word.
    asks: (Q, W) what a word of the question attends to in the text. reads: (W, Q) the other way round.
    """

    prediction: SpanPrediction
    begin: int
    question: tuple[Word, ...]
    words: tuple[Word, ...]
    start: Array
    end: Array
    asks: Array
    reads: Array

    @classmethod
    def of(cls, prediction: Prediction, attention: Attention | None = None) -> Self:
        """The picture of an answer, or of there being none."""
        assert isinstance(prediction, SpanPrediction)
        found = attention or prediction.attention()
        begin = len(prediction.source) - len(cut(prediction.source)[1])
        both = words_of(read_by(found))
        question = tuple(word for word in both if word.start < begin)
        words = tuple(word for word in both if word.start >= begin)
        [pointer] = found.of("cross")
        start, end = of_words(words, pointer.weights[0].double().numpy())
        flows = [layer.weights.double().mean(0) for layer in found.of("encoder")]
        flow_NN = torch.stack(flows).mean(0).numpy()

        def between(rows: tuple[Word, ...], columns: tuple[Word, ...]) -> Array:
            return np.asarray(by_words([word.tokens for word in rows], of_words(columns, flow_NN), "queries"))

        ways = between(question, words), between(words, question)
        return cls(prediction, begin, question, words, start, end, *ways)

    @property
    def answer(self) -> tuple[int, int] | None:
        """The characters of the answer in question and text together."""
        start, end = self.prediction.start, self.prediction.end
        return None if start is None or end is None else (self.begin + start, self.begin + end)

    @cached_property
    def answer_words(self) -> list[int]:
        """The words that hold a character of the answer."""
        if self.answer is None:
            return []
        first, last = self.answer
        return [place for place, word in enumerate(self.words) if word.start < last and word.end > first]

    @property
    def asked(self) -> Array:
        """(W,) what the question attends to, the mean over its words."""
        return self.asks.mean(0) if len(self.asks) else np.zeros(len(self.words))

    @property
    def answering(self) -> Array:
        """(Q,) what the words of the answer attend to in the question, their mean."""
        return self.reads[self.answer_words].mean(0) if self.answer_words else np.zeros(len(self.question))

    def to_dict(self) -> dict[str, Any]:
        """For the page; `asks` and `reads` in base64."""
        window = self.prediction.window
        return {
            "text": self.prediction.source,
            "begin": self.begin,
            "question": placed(self.question),
            "words": placed(self.words),
            "start": self.start.tolist(),
            "end": self.end.tolist(),
            "answer": list(self.answer) if self.answer else None,
            "probability": float(np.exp(self.prediction.log_probability)),
            "no_answer": self.prediction.no_answer,
            "asks": packed(torch.from_numpy(self.asks)),
            "reads": packed(torch.from_numpy(self.reads)),
            "window": window.number if window else 1,
            "windows": window.windows if window else 1,
        }

    def _told(self) -> str:
        """The answer and its probability, in a line."""
        none = f"no answer: {100 * self.prediction.no_answer:.1f}%"
        if self.answer is None:
            return none
        told = f"{self.prediction.text} ({100 * np.exp(self.prediction.log_probability):.1f}%; {none})"
        window = self.prediction.window
        return told if window is None or window.windows < 2 else f"{told}, window {window.number} of {window.windows}"

    def _excerpt(self) -> tuple[str, list[Word], bool, bool]:
        """What of the text the model read at once, with its words; whether more stands before it, and behind it."""
        text = self.prediction.source
        if not self.words:
            return "", [], False, False
        first, last = min(word.start for word in self.words), max(word.end for word in self.words)
        words = [word._replace(start=word.start - first, end=word.end - first) for word in self.words]
        return text[first:last], words, bool(text[self.begin : first].strip()), bool(text[last:].strip())

    # ---- notebook ---------------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        text, words, before, after = self._excerpt()
        most = heaviest(np.concatenate((self.start, self.end)))
        cells = [
            {
                "text": part.text,
                "answer": part.word in self.answer_words,
                "heights": [round(HIGH * float(each[part.word]) / most) for each in (self.start, self.end)],
                "told": f"begins {self.start[part.word]:.3f}, ends {self.end[part.word]:.3f}",
            }
            if part.word >= 0
            else {"text": part.text}
            for part in parts(text, words)
        ]
        question = self.prediction.source[: self.begin].rstrip()
        return render(
            TEMPLATE,
            question=question,
            told=self._told(),
            answered=bool(self.answer_words),
            cells=cells,
            high=HIGH,
            before="… " if before else "",
            after=" …" if after else "",
            answering=marks(question, self.question, self.answering, heaviest(self.answering)),
            asked=marks(text, words, self.asked, heaviest(self.asked)),
        )

    # ---- terminal ---------------------------------------------------------------------------------------------

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        text, words, _, _ = self._excerpt()
        question = self.prediction.source[: self.begin].rstrip()
        yield Text(as_printed(question), "bold")
        yield Text(self._told())
        if not words:
            return
        yield from self._bars(text, words, options)
        spans = [(word.start, word.end) for word in words]
        yield shaded_text(text, spans, self.asked, "the question looks at: ")
        if self.answer_words:
            spans = [(word.start, word.end) for word in self.question]
            yield shaded_text(question, spans, self.answering, "the answer looks at: ")

    def _bars(self, text: str, words: list[Word], options: ConsoleOptions) -> Iterator[Text]:
        """Lines of words, with a line above for how likely each begins the answer, and one below for its end."""
        most = heaviest(np.concatenate((self.start, self.end)))
        lines: list[list[tuple[str, int]]] = [[]]
        width = 0
        for part in parts(text, words):
            printed = as_printed(part.text) if part.word >= 0 else " "
            if width + cell_len(printed) > options.max_width - 2 and part.word >= 0:
                lines.append([])
                width = 0
            lines[-1].append((printed, part.word))
            width += cell_len(printed) + 2 * (part.word in self.answer_words)
        for line in lines:
            above, middle, below = Text(no_wrap=True), Text(no_wrap=True), Text(no_wrap=True)
            for printed, word in line:
                ends = ("[" if word in self.answer_words[:1] else "", "]" if word in self.answer_words[-1:] else "")
                whole = f"{ends[0]}{printed}{ends[1]}"
                middle.append(whole, "bold reverse" if word in self.answer_words else "")
                for bars, values in ((above, self.start), (below, self.end)):
                    share = float(values[word]) if word >= 0 else 0.0
                    bar = bar_of_height(share / most, options.ascii_only) if share >= LEAST else " "
                    bars.append(bar * cell_len(whole))
            yield from (each for each in (above, middle, below) if each.plain.strip())
