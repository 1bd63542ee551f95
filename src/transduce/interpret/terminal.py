"""Attention in the terminal: a matrix as a map of shaded cells, one query as bars or as shaded words.

Colour and shade characters say the same: where the terminal has colour, a cell is one smooth colour; where it
has none (a pipe, a log, NO_COLOR), the cell's characters ░▒▓█ show through.

Shapes: T queries (rows), S keys (columns).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.console import Console, ConsoleOptions
from rich.style import Style
from rich.text import Text

from transduce.core.errors import InputError
from transduce.interpret.colours import RGB, glow, readable_on
from transduce.interpret.words import graphemes

Array = NDArray[np.floating[Any]]

SHADES, ASCII_SHADES = " ░▒▓█", " .:*#"
HEIGHTS, ASCII_HEIGHTS = "▁▂▃▄▅▆▇█", ".:#"
EIGHTHS, ASCII_EIGHTHS = " ▏▎▍▌▋▊▉", "        "
CELL = 2  # terminal columns a weight takes, so that a cell is about square
LONGEST_LABEL = 24
BAR = 32  # terminal columns of the longest bar
BAR_COLOUR = "#3a8fb7"  # stands out on dark and light terminals alike


def heat_map(rows: Sequence[str], columns: Sequence[str], weights: Array) -> "HeatMap":
    """A map of `weights` (T, S): a row for every query, a column for every key, its word read downwards.

    A map wider than the terminal is continued below, as many columns at a time as fit.

    Raises:
        InputError: the labels do not fit the matrix, or a weight is negative or not finite.
    """
    return HeatMap(_printable(rows), _printable(columns), checked(weights, (len(rows), len(columns))))


def spotlight(tokens: Sequence[str], weights: Array, query: str | None = None) -> "TerminalSpotlight":
    """What one query attends to: every word of the sentence with a bar for its weight (S,).

    Raises:
        InputError: the words do not fit the weights, or a weight is negative or not finite.
    """
    return TerminalSpotlight(_printable(tokens), checked(weights, (len(tokens),)), query)


def shaded_text(
    text: str, spans: Sequence[tuple[int, int]], weights: Array, heading: str = "", max_weight: float | None = None
) -> "ShadedText":
    """A text as it stands, each of its words, which are characters [start, end), shaded by its weight (W,).

    Args:
        heading: what stands in front.
        max_weight: the weight of the strongest shade; None = the largest.

    Raises:
        InputError: the words do not fit the weights, or a weight is negative or not finite.
    """
    weights = checked(weights, (len(spans),))
    return ShadedText(text, list(spans), weights / (max_weight or _heaviest(weights)), heading)


def bar_line(
    label: str, value: float, share: float, margin: int, options: ConsoleOptions, strong: bool = False
) -> Text:
    """A line with a number and a bar as long as `share`, in 0..1. strong: the number stands out."""
    width = max(min(BAR, options.max_width - margin - len("0.00 ")), 1)
    line = Text(set_cell_size(_shortened(as_printed(label)), margin), no_wrap=True)
    line.append(f"{value:.2f} ", "bold" if strong else "dim")
    return line.append(_bar(share, width, options.ascii_only), BAR_COLOUR)


@dataclass(frozen=True)
class HeatMap:
    rows: list[str]
    columns: list[str]
    weights: Array

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        margin = min(max(map(cell_len, self.rows), default=0), LONGEST_LABEL) + 1
        fitting = max((options.max_width - margin) // CELL, 1)
        heaviest = _heaviest(self.weights)
        for first in range(0, len(self.columns), fitting):
            block = slice(first, first + fitting)
            yield from _headings(self.columns[block], margin)
            for label, weights in zip(self.rows, self.weights[:, block], strict=True):
                yield _row(label, weights / heaviest, margin, options.ascii_only)
            yield Text()
        yield _legend(heaviest, margin, options.ascii_only)


@dataclass(frozen=True)
class TerminalSpotlight:
    tokens: list[str]
    weights: Array
    query: str | None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        if self.query is not None:
            yield Text.assemble((self.query, "bold"), " attends to")
        margin = min(max(map(cell_len, self.tokens), default=0), LONGEST_LABEL) + 1
        heaviest = _heaviest(self.weights)
        for token, weight in zip(self.tokens, self.weights, strict=True):
            yield bar_line(token, weight, weight / heaviest, margin, options, weight == heaviest)


@dataclass(frozen=True)
class ShadedText:
    text: str
    spans: list[tuple[int, int]]
    shares: Array
    heading: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        shades = ASCII_SHADES if options.ascii_only else SHADES
        line = Text.assemble((self.heading, "bold"))
        at = 0
        for number in sorted(range(len(self.spans)), key=self.spans.__getitem__):
            start, end = self.spans[number]
            line.append(as_printed(self.text[at:start]))
            add_shaded(line, self.text[max(at, start) : end], float(self.shares[number]), shades)
            at = max(at, end)
        yield line.append(as_printed(self.text[at:]))


def add_shaded(line: Text, word: str, share: float, shades: str) -> None:
    """A word with the colour of its share in 0..1 behind it; where there is no colour, a shade character says it."""
    share = min(share, 1.0)
    background = glow(share)
    line.append(as_printed(word), Style(color=_color(readable_on(background)), bgcolor=_color(background)))
    line.append(_shade(share, shades).strip(), _solid(background))


def bar_of_height(share: float, ascii_only: bool) -> str:
    """A character that is as high as its share in 0..1."""
    heights = ASCII_HEIGHTS if ascii_only else HEIGHTS
    return heights[min(round(share * len(heights)), len(heights)) - 1] if share * len(heights) >= 0.5 else " "


def as_printed(text: str) -> str:
    """A text in which whatever would move the cursor is a visible mark."""
    return "".join(_printable([text]))


def checked(weights: Array, shape: tuple[int, ...]) -> Array:
    """`weights` as float64 of that shape.

    Raises:
        InputError: another shape, a negative weight, or one that is not finite.
    """
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != shape:
        raise InputError(f"attention weights: expected shape {shape}, one entry a label; got {weights.shape}.")
    wrong = ~(np.isfinite(weights) & (weights >= 0))
    if wrong.any():
        where = tuple(int(i) for i in np.argwhere(wrong)[0])
        raise InputError(
            f"attention weights: {int(wrong.sum())} of {weights.size} are negative or not finite, "
            f"the first at {where}: {weights[where]}. Expected weights as softmax gives them, 0 or more."
        )
    return weights


def _headings(columns: Sequence[str], margin: int) -> Iterator[Text]:
    """Column labels, written downwards, ending on the same line."""
    labels = [graphemes(_shortened(column)) for column in columns]
    height = max(map(len, labels), default=0)
    for line in range(height):
        letters = (label[line - height] if height - line <= len(label) else " " for label in labels)
        yield Text(" " * margin + "".join(set_cell_size(letter, CELL) for letter in letters), no_wrap=True)


def _row(label: str, shares: Array, margin: int, ascii_only: bool) -> Text:
    shades = ASCII_SHADES if ascii_only else SHADES
    room = margin - 1
    label = _shortened(label)
    line = Text(" " * (room - cell_len(label)) + label + " ", no_wrap=True)
    for share in shares:
        line.append(_shade(share, shades) * CELL, _solid(glow(share)))
    return line


def _legend(max_weight: float, margin: int, ascii_only: bool) -> Text:
    shades = ASCII_SHADES if ascii_only else SHADES
    line = Text(" " * margin, no_wrap=True).append("0 ", "dim")
    for share in np.linspace(0, 1, 16):
        line.append(_shade(share, shades), _solid(glow(share)))
    return line.append(f" {max_weight:.2f}", "dim")


def _bar(length: float, width: int, ascii_only: bool) -> str:
    whole, part = divmod(round(length * width * 8), 8)
    full, parts = ("#", ASCII_EIGHTHS) if ascii_only else ("█", EIGHTHS)
    return full * whole + (parts[part].strip() if part else "")


def _shade(share: Any, shades: str) -> str:
    """The character nearest to a share in 0..1."""
    return shades[round(float(share) * (len(shades) - 1))]


def _solid(colour: RGB) -> Style:
    """Characters that vanish into their background: seen only where there is no colour."""
    return Style(color=_color(colour), bgcolor=_color(colour))


def _color(colour: RGB) -> Color:
    red, green, blue = (round(255 * channel) for channel in colour)
    return Color.from_rgb(red, green, blue)


def _heaviest(weights: Array) -> float:
    """The largest weight, to which the scale reaches; 1 where there is none above 0."""
    return float(weights.max(initial=0.0)) or 1.0


def _printable(labels: Sequence[str]) -> list[str]:
    """Labels in which whatever would move the cursor is a visible mark."""
    return ["".join(map(_visible, graphemes(label))) for label in labels]


def _visible(grapheme: str) -> str:
    """As it is where its first character is seen: what joins the parts of an emoji is not, and belongs to it."""
    if grapheme[0].isprintable():
        return grapheme
    return "".join("␣" if c.isspace() else "�" for c in grapheme)


def _shortened(label: str) -> str:
    return label if cell_len(label) <= LONGEST_LABEL else set_cell_size(label, LONGEST_LABEL - 1) + "…"
