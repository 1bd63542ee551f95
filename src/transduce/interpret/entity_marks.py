"""The labels of words in their text: spans of one kind in its colour, or below each word its label.

Characters [start, end) are those of the text as given, which stays as it is: only what is marked has a colour.

Shapes: N words, C labels.
"""

import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch
from rich.cells import cell_len
from rich.color import Color
from rich.console import Console, ConsoleOptions
from rich.style import Style
from rich.text import Text
from torch import Tensor

from transduce.core.templates import render
from transduce.data.structures.label_schemes import parts_of
from transduce.inference.prediction import Prediction
from transduce.inference.word_labels import LabelTable, WordLabelPrediction
from transduce.interpret.attention import Attention
from transduce.interpret.colours import RGB, css, pastel
from transduce.interpret.numbers import packed
from transduce.interpret.terminal import as_printed
from transduce.layers.crf import POSSIBLE

TEMPLATE = Path(__file__).with_name("entity_marks.html.jinja")
GAP = 2  # terminal columns between two words with labels below


class EntityMark(NamedTuple):
    """The characters [start, end) of a text, what is said of them, and how likely that is.

    first, last: its words [first, last). colour: of what is said, the same in every text.
    """

    name: str
    start: int
    end: int
    first: int
    last: int
    probability: float
    colour: RGB


class MarkedPart(NamedTuple):
    """A part of a text. mark: the number of the mark that it is, -1 between two marks."""

    text: str
    mark: int


@dataclass(frozen=True, eq=False)
class EntityMarks:
    """A text in which spans are marked, or each word where labels say no spans."""

    prediction: WordLabelPrediction

    @classmethod
    def of(cls, prediction: Prediction, attention: Attention | None = None) -> Self:
        """Of a text whose words have labels."""
        assert isinstance(prediction, WordLabelPrediction)
        return cls(prediction)

    @property
    def spans(self) -> bool:
        """Whether labels say spans."""
        return self.prediction.scheme != "none"

    @cached_property
    def colours(self) -> dict[str, RGB]:
        """Of each kind of span, or each label, by its name; spans without kinds have two, in turns."""
        labels = self.prediction.labels
        names = sorted({parts_of(each).kind for each in labels} if self.spans else set(labels))
        names = [name for name in names if name] or ["0", "1"]
        return {name: pastel(place, len(names)) for place, name in enumerate(names)}

    @cached_property
    def marks(self) -> list[EntityMark]:
        """In their order, none within another."""
        return self._of_spans() if self.spans else self._of_words()

    def _of_spans(self) -> list[EntityMark]:
        words, found, first = self.prediction.words, list[EntityMark](), 0
        for number, each in enumerate(self.prediction.entities):
            while words[first].start < each.start:
                first += 1
            last = first + 1
            while last < len(words) and words[last].end <= each.end:
                last += 1
            colour = self.colours[each.kind or str(number % 2)]
            found.append(EntityMark(each.kind, each.start, each.end, first, last, each.probability, colour))
            first = last
        return found

    def _of_words(self) -> list[EntityMark]:
        return [
            EntityMark(word.label, word.start, word.end, place, place + 1, word.probability, self.colours[word.label])
            for place, word in enumerate(self.prediction.words)
        ]

    @property
    def parts(self) -> list[MarkedPart]:
        """The text from its beginning to its end; joined, it is the text."""
        text, at, found = self.prediction.source, 0, list[MarkedPart]()
        for number, mark in enumerate(self.marks):
            found += [MarkedPart(text[at : mark.start], -1), MarkedPart(text[mark.start : mark.end], number)]
            at = mark.end
        return [part for part in [*found, MarkedPart(text[at:], -1)] if part.text]

    # ---- page -------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """For the page: words and marks, every label's probability (N, C) and the scores of neighbouring labels."""
        table = self.prediction.table() if self.prediction.table else None
        return {
            "text": self.prediction.source,
            "words": [_placed(word) for word in self.prediction.words],
            "spans": self.spans,
            "marks": [{**mark._asdict(), "colour": css(mark.colour)} for mark in self.marks],
            "labels": list(self.prediction.labels),
            "probabilities": packed(table.probability_NC.float()) if table else None,
            "transitions": _transitions(table) if table else None,
        }

    # ---- notebook ---------------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        cells = [(part.text, self.marks[part.mark] if part.mark >= 0 else None) for part in self.parts]
        return render(TEMPLATE, cells=cells, css=css, below=not self.spans)

    # ---- terminal ---------------------------------------------------------------------------------------------

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        if self.spans or not self.marks:
            yield self._marked()
        elif any(unicodedata.bidirectional(each) in ("R", "AL") for each in self.prediction.source):
            yield from self._listed()  # a terminal may turn a line of words around, and not that of labels
        else:
            yield from self._labelled(options.max_width)

    def _marked(self) -> Text:
        """The text; a mark stands in brackets, which are seen only where there is no colour."""
        line = Text()
        for part in self.parts:
            if part.mark < 0:
                line.append(_printed(part.text))
                continue
            mark = self.marks[part.mark]
            line.append("[", _style(mark, "hidden")).append(_printed(part.text), _style(mark))
            line.append(f" {as_printed(mark.name)}" if mark.name else "", _style(mark, "bold"))
            line.append("]", _style(mark, "hidden"))
        return line

    def _labelled(self, width: int) -> Iterator[Text]:
        """Lines of words, and below each the line of their labels."""
        for line in self._lines(width):
            above, below = Text(no_wrap=True), Text(no_wrap=True)
            for mark, word, label, wide in line:
                above.append(word + " " * (wide - cell_len(word)))
                below.append(label, _style(mark)).append(" " * (wide - cell_len(label)))
            yield from (above, below)

    def _lines(self, width: int) -> list[list[tuple[EntityMark, str, str, int]]]:
        """Marks, words, labels and how wide both are, as many in a line as fit."""
        found, at = [list[tuple[EntityMark, str, str, int]]()], 0
        for mark in self.marks:
            word, label = (as_printed(each) for each in (self.prediction.source[mark.start : mark.end], mark.name))
            wide = max(cell_len(word), cell_len(label)) + GAP
            if at + wide - GAP > width and found[-1]:
                found.append([])
                at = 0
            found[-1].append((mark, word, label, wide))
            at += wide
        return found

    def _listed(self) -> Iterator[Text]:
        """A label and its word a line."""
        margin = max(cell_len(as_printed(mark.name)) for mark in self.marks) + GAP
        for mark in self.marks:
            label = as_printed(mark.name)
            line = Text(no_wrap=True).append(label, _style(mark)).append(" " * (margin - cell_len(label)))
            yield line.append(as_printed(self.prediction.source[mark.start : mark.end]))


def _placed(word: Any) -> dict[str, Any]:
    known = {"text": word.word, "start": word.start, "end": word.end}
    return {**known, "label": word.label, "probability": word.probability}


def _transitions(table: LabelTable) -> dict[str, Any] | None:
    """Scores (C + 1, C + 1): each label behind each; the last row begins a text, the last column ends one.

    What is forbidden has -inf, and so has ending a text that has not begun.
    """
    if table.chain is None:
        return None
    start_C, between_CC, end_C = table.chain
    below_1D = torch.cat([start_C, start_C.new_full((1,), -torch.inf)])[None]
    scores_DD: Tensor = torch.cat([torch.cat([between_CC, end_C[:, None]], 1), below_1D])
    return packed(scores_DD.masked_fill(scores_DD < POSSIBLE, -torch.inf).float())


def _style(mark: EntityMark, more: str = "") -> Style:
    """Black on the mark's colour; hidden = in the colour itself."""
    colour = Color.from_rgb(*(round(255 * channel) for channel in mark.colour))
    letters = colour if more == "hidden" else Color.from_rgb(0, 0, 0)
    return Style(color=letters, bgcolor=colour, bold=more == "bold" or None)


def _printed(text: str) -> str:
    """Its lines, in which whatever would move the cursor is a visible mark."""
    return "\n".join(as_printed(line.removesuffix("\r")) for line in text.split("\n"))
