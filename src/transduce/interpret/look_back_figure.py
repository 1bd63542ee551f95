"""What a model looks back at as a figure: the text once a line, one below the other, as in Cheng et al. 2016."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.cells import cell_len

from transduce.core.errors import InputError
from transduce.interpret.colours import RGB, ink, readable_on
from transduce.interpret.drawing import in_style, new_figure
from transduce.interpret.shaded_text import LinePart

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LETTER, GAP, LINE = 0.085, 0.1, 0.27  # inches
NOW, LATER = "#c0392b", "#b6bdc9"


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
            colour: str | RGB = {"now": NOW, "later": LATER}.get(part.state, "#1d2433")
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
