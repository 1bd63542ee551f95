"""A confusion matrix as a table in a terminal and as a figure."""

from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table
from rich.text import Text

from transduce.interpret.colours import readable_on
from transduce.interpret.drawing import in_style, new_figure
from transduce.metrics.confusion import OTHERS, Confusion

if TYPE_CHECKING:
    from matplotlib.figure import Figure

IN_TABLE, IN_FIGURE = 10, 20  # labels that are shown, the most frequent ones
LONGEST = 24  # characters of a label


def confusion_table(confusion: Confusion, title: str) -> Table:
    """True labels downwards, predicted ones across, then precision, recall and F1 of each label in per cent."""
    shown, scores = confusion.of_most_frequent(IN_TABLE), confusion.scores()
    table = Table(
        title=Text(title), title_justify="left", title_style="", box=None, header_style="bold", pad_edge=False
    )
    table.add_column(Text("true \\ predicted"))
    for label in shown.labels:
        table.add_column(Text(_short(label)), justify="right")
    for name in ("precision", "recall", "F1"):
        table.add_column(name, justify="right")
    merged = len(shown.labels) < len(confusion.labels)
    for place, (label, row) in enumerate(zip(shown.labels, shown.counts_CC.tolist(), strict=True)):
        others = merged and place == len(row) - 1
        name = f"{len(confusion.labels) - IN_TABLE:,} {OTHERS}" if others else _short(label)
        figures = () if others else (f"{each:.1f}" for each in scores[label][:3])
        table.add_row(Text(name), *(f"{count:,}" for count in row), *figures)
    return table


@in_style
def confusion_figure(confusion: Confusion, title: str = "") -> "Figure":
    """A heat map: each row shaded by its shares, each cell with its count. Raises InputError without matplotlib."""
    from transduce.interpret.figures import INK

    shown = confusion.of_most_frequent(IN_FIGURE)
    counts = shown.counts_CC
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    names = [_short(label) for label in shown.labels]
    size, cell = (9.0, 0.5) if len(names) <= 12 else (7.5, 0.4)  # points, inches
    side, label = cell * len(names), 0.0105 * size * max(map(_width, names))
    figure = new_figure(side + label + 1.2, side + label + 1.0)
    axes = figure.subplots()
    image = axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="equal")
    axes.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor", fontsize=size)
    axes.set_yticks(range(len(names)), names, fontsize=size)
    axes.tick_params(length=0, labelcolor=INK)
    axes.grid(visible=False)
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    for row, column in np.argwhere(counts).tolist():
        colour = readable_on(image.cmap(float(shares[row, column]))[:3])
        axes.text(column, row, f"{counts[row, column]:,}", ha="center", va="center", fontsize=size - 1, color=colour)
    if title:
        figure.suptitle(title)
    return figure


def _short(label: str) -> str:
    return label if len(label) <= LONGEST else label[: LONGEST - 1] + "…"


def _width(text: str) -> int:
    """In letters; wide characters, as Chinese ones, take two."""
    return sum(2 if ord(each) >= 0x1100 else 1 for each in text)
