"""What a model looks back at, word by word: one line a word, in which the words before it are shaded.

This is the picture of Cheng et al. 2016 (figure 1), in which a long short-term memory-network reads a sentence. It is
drawn of any attention of a decoder to its own past.

Shapes: T tokens that are read, the start token first; W words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.text import Text
from torch import nn

from transduce.core.errors import InputError
from transduce.core.templates import render
from transduce.inference.prediction import Prediction
from transduce.interpret.attention import Attention, reading_of
from transduce.interpret.colours import RGB, ink, readable_on
from transduce.interpret.drawing import in_style, new_figure
from transduce.interpret.shaded_text import Array, LinePart, ShadedPart, colours, heaviest, parts
from transduce.interpret.terminal import ASCII_SHADES, SHADES, add_shaded, as_printed
from transduce.interpret.token_spans import Word
from transduce.interpret.words import by_words
from transduce.tasks.base import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure


LETTER, GAP, LINE = 0.085, 0.1, 0.27  # inches
NOW_DRAWN, LATER_DRAWN = "#c0392b", "#b6bdc9"

TEMPLATE = Path(__file__).with_name("look_back.html.jinja")
NOW, LATER = "color:#c0392b;font-weight:bold", "color:#9aa4b5"


@dataclass(frozen=True, eq=False)
class LookBack:
    """Words in the order in which they were read.

    weights: (W, 1 + W) a row for each word as it is read: what it gives to the start of the text, then to each word.
    start: the name of the start token, in front of all words.
    title: which attention this is.
    prompt: how many tokens the model was given, before it went on by itself.
    """

    text: str
    words: tuple[Word, ...]
    weights: Array
    start: str
    title: str
    prompt: int = 0

    @classmethod
    def of(cls, prediction: Prediction, attention: Attention | None = None) -> Self:
        """Of a language model that read a prompt and went on."""
        return cls.within(attention or prediction.attention())

    @classmethod
    def within(cls, attention: Attention, name: str | None = None, head: int | None = None) -> Self:
        """Of one module and head, counted from 0; by default the mean of all.

        Raises:
            InputError: there is no such module or head, or none that attends to the words before.
        """
        layers = [layer for layer in attention.of("decoder") if layer.part.causal]
        if name is None and not layers:
            raise InputError("this model does not attend to the words before.")
        if name is None and len(layers) > 1:
            weights_TT = torch.stack([layer.weights.mean(0) for layer in layers]).mean(0)
            title = "mean of all layers and heads"
        else:
            layer = attention.layer(name or layers[0].name)
            if not layer.part.causal:
                raise InputError(f"{layer.name}: does not attend to the words before.")
            _, _, weights_TT, title = attention.matrix(layer.name, head)
        words = [word for word in attention.target.words if max(word.tokens) + 1 < len(weights_TT)]
        groups = [[token + 1 for token in word.tokens] for word in words]  # the start token is read first
        rows_WT = by_words(groups, weights_TT.double().numpy(), "queries")
        weights = np.concatenate((rows_WT[:, :1], by_words(groups, rows_WT)), 1)
        return cls(attention.target.text, tuple(words), weights, attention.start, title)

    @property
    def max_weight(self) -> float:
        """The largest weight of a word; the start may have more."""
        return heaviest(self.weights[:, 1:])

    def line(self, row: int) -> list[LinePart]:
        """The text as it is when a word is read: what is before, the word itself, what is later."""
        weights = self.weights[row]
        found = [LinePart(self.start, "before", min(1.0, float(weights[0]) / self.max_weight), float(weights[0]))]
        found.append(LinePart(" ", ""))
        for text, word in parts(self.text, self.words):
            if word < 0:
                found.append(LinePart(text, ""))
            elif word > row:
                found.append(LinePart(text, "later"))
            else:
                weight = float(weights[1 + word])
                found.append(LinePart(text, "now" if word == row else "before", weight / self.max_weight, weight))
        return found

    def to_dict(self) -> dict[str, Any]:
        """How much of the text was given; the page has all weights, and draws those of any layer and head."""
        return {"prompt": self.prompt}

    def plot(self) -> "Figure":
        """A matplotlib figure. Raises InputError where there is no matplotlib, or no word."""
        return look_back_figure(self.title, [self.line(row) for row in range(len(self.words))])

    def _repr_html_(self) -> str:
        lines = [
            [_mark(piece, f"{word.text} → {piece.text}") for piece in self.line(row)]
            for row, word in enumerate(self.words)
        ]
        return render(TEMPLATE, title=self.title, lines=lines)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        shades = ASCII_SHADES if options.ascii_only else SHADES
        for row in range(len(self.words)):
            line = Text()
            for piece in self.line(row):
                if piece.state == "before":
                    add_shaded(line, piece.text, piece.share or 0.0, shades)
                else:
                    shown = as_printed(piece.text)
                    style = {"now": "bold red", "later": "dim"}.get(piece.state, "")
                    line.append(f"[{shown}]" if piece.state == "now" else shown, style)
            yield line


def look_back(model: nn.Module, task: Task, text: str, name: str | None = None, head: int | None = None) -> LookBack:
    """What a language model looks back at while it reads a text, to which it adds nothing. See `LookBack.within`."""
    return LookBack.within(reading_of(model, task, text), name, head)


def _mark(piece: LinePart, label: str) -> ShadedPart:
    if piece.state == "before":
        return ShadedPart(piece.text, colours(piece.share or 0.0), f"{label}: {piece.weight:.3f}")
    return ShadedPart(piece.text, {"now": NOW, "later": LATER}.get(piece.state, ""))


@in_style
def look_back_figure(title: str, lines: Sequence[Sequence[LinePart]]) -> "Figure":
    """A line for each word: the word itself is red, those before it are shaded, those behind it are pale.

    Raises:
        InputError: there is no word; no matplotlib.
    """
    from matplotlib.patches import Rectangle

    if not lines:
        raise InputError("a figure of what a model looks back at needs a word.")
    words = [[part for part in line if part.text.strip()] for line in lines]
    widths = [LETTER * max(cell_len(part.text), 1) + GAP for part in words[0]]
    height = LINE * len(lines) + 0.35
    figure = new_figure(sum(widths) + 0.2, height)
    figure.set_layout_engine("none")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(-0.1, sum(widths) + 0.1), ylim=(height - 0.3, -0.3))
    axes.axis("off")
    axes.text(0, -0.14, title, fontsize=9, va="center", color="#586070")
    for row, line in enumerate(words):
        left = 0.0
        for part, width in zip(line, widths, strict=True):
            colour: str | RGB = {"now": NOW_DRAWN, "later": LATER_DRAWN}.get(part.state, "#1d2433")
            if part.state == "before":
                paper = ink(part.share or 0.0)
                colour = readable_on(paper)
                place = (left, LINE * row + 0.02)
                axes.add_patch(Rectangle(place, width - 0.02, LINE - 0.04, facecolor=paper, linewidth=0))
            weight = "bold" if part.state == "now" else "normal"
            middle = (left + (width - 0.02) / 2, LINE * row + LINE / 2)
            axes.text(*middle, part.text, ha="center", va="center", fontsize=9, color=colour, fontweight=weight)
            left += width
    return figure
