"""Attention and training as figures; `drawing` says how they are made.

Shapes: H heads, T queries (rows), S keys (columns).

Exposure bias as a figure: error rates of outputs and of teacher forcing, over training and by position.
"""

import math
from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len

from transduce.core.errors import InputError
from transduce.interpret.colours import HEADS, ink, readable_on
from transduce.interpret.drawing import Points, few_ticks, in_style, marker, new_figure
from transduce.interpret.terminal import checked

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


FREE, FORCED = HEADS[0], HEADS[1]

Array = NDArray[np.floating[Any]]
Record = Mapping[str, Any]

INK, FAINT, EMPTY = "#1d2433", "#6b7385", "#f3f4f7"
TRAIN, VALIDATION = HEADS[0], HEADS[1]
MANY = 24  # rows or columns from which cells and labels are drawn smaller
GAP = 1.3  # inches between the two columns of words
STRIP = 0.13  # width of a head's square, in gaps


class Spotlight(NamedTuple):
    """One sentence and what one of its words attends to.

    words: the sentence.
    query: the index of the word that attends.
    weights: (S,), or (H, S) for several heads.
    title: a line above the sentence.
    """

    words: Sequence[str]
    query: int
    weights: Array
    title: str = ""


@in_style
def attention_figure(rows: Sequence[str], columns: Sequence[str], weights: Array, title: str = "") -> "Figure":
    """A heat map of `weights` (T, S): queries downwards, keys across, the darker the heavier.

    Raises:
        InputError: the labels do not fit the matrix, or a weight is negative or not finite; no matplotlib.
    """
    weights = checked(weights, (len(rows), len(columns)))
    if not weights.size:
        raise InputError("an attention figure needs at least one row and one column.")
    cell, size = (0.42, 10.0) if max(weights.shape) <= MANY else (0.24, 7.5)  # inches, points
    height, width = cell * len(rows), cell * len(columns)
    label = 0.0095 * size  # inches a letter takes
    wide = max(width + label * _longest(rows) + 1.2, 4.5)
    titles = wrap(title, int(wide / 0.11))  # inches a letter of it takes
    figure = new_figure(wide, height + 0.75 * label * _longest(columns) + 0.5 + 0.25 * len(titles))
    axes = figure.subplots()
    image = axes.imshow(weights, cmap=_colour_map(), vmin=0, vmax=weights.max() or 1, aspect="equal")
    axes.set_xticks(range(len(columns)), columns, rotation=45, ha="left", rotation_mode="anchor", fontsize=size)
    axes.set_yticks(range(len(rows)), rows, fontsize=size)
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0, labelcolor=INK)
    _grid_between_cells(axes, *weights.shape)
    shrink = min(1.0, 2.4 / height)
    bar = figure.colorbar(image, ax=axes, shrink=shrink, aspect=shrink * height / 0.13, pad=0.03)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=0)
    bar.ax.grid(visible=False)
    if titles:
        figure.suptitle("\n".join(titles))
    return figure


@in_style
def spotlight_figure(examples: Sequence[Spotlight]) -> "Figure":
    """Sentences side by side: lines from one word to the words it attends to, the heavier the stronger.

    One head also shades the words; several have a colour each, and a square before each word.

    Raises:
        InputError: no example, or one whose words, query and weights do not fit together; no matplotlib.
    """
    sheaves = _checked_examples(examples)
    longest = max(_longest(example.words) for example in examples)
    tallest = max(len(example.words) for example in examples)
    word = 0.105 * longest / GAP + 0.15  # width of the longest word, the gap being 1
    strips = max(map(_room_of_strips, sheaves))
    figure = new_figure(GAP * (1 + 2 * word + strips) * len(examples), 0.3 * tallest + 0.75)
    panels = figure.subplots(1, len(examples), squeeze=False)[0]
    for axes, example, sheaf in zip(panels, examples, sheaves, strict=True):
        _sheaf_of_lines(axes, example, sheaf, word)
        axes.set(xlim=(-word, 1 + word + strips), ylim=(tallest - 0.4, -0.6))
    return figure


@in_style
def training_curves(records: Sequence[Record]) -> "Figure":
    """Loss, perplexity, BLEU, learning rate and speed over the updates, a panel for each that was recorded.

    Args:
        records: the lines of log.jsonl. "train" and "validation" events are drawn, others are not; where
            a resumed run recorded an update again, the later record counts.

    Raises:
        InputError: nothing to draw; no matplotlib.
    """
    panels = _panels(records)
    if not panels:
        raise InputError(
            'training curves: the log holds no "train" or "validation" record with an "update" and a number.'
        )
    columns = min(len(panels), 3)
    rows = math.ceil(len(panels) / columns)
    figure = new_figure(4.2 * columns, 2.9 * rows + 0.1)
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, (title, curves) in zip(grid, panels.items(), strict=False):
        for (label, colour), points in curves.items():
            _curve(axes, label, colour, points)
        _plain(axes, title, legend=len(curves) > 1)
    for unused in grid[len(panels) :]:
        unused.remove()
    return figure


# ---- attention -----------------------------------------------------------------------------------


def _checked_examples(examples: Sequence[Spotlight]) -> list[Array]:
    """The weights of each example, all as (H, S)."""
    problems, sheaves = [], []
    for number, example in enumerate(examples, start=1):
        weights = np.asarray(example.weights)
        heads = weights.shape[0] if weights.ndim == 2 else 1
        try:
            shape = (heads, len(example.words)) if weights.ndim == 2 else (len(example.words),)
            sheaves.append(checked(weights, shape).reshape(heads, -1))
        except InputError as error:
            problems.append(f"example {number}: {error}")
        if not 0 <= example.query < len(example.words):
            problems.append(f"example {number}: query {example.query} is not one of its {len(example.words)} words.")
    if not examples:
        problems.append("a spotlight figure needs at least one example.")
    if problems:
        raise InputError(problems)
    return sheaves


def _sheaf_of_lines(axes: "Axes", example: Spotlight, weights_HS: Array, word_width: float) -> None:
    """The sentence twice, queries on the left, keys on the right, and the lines between."""
    shares_HS = weights_HS / (weights_HS.max() or 1)
    axes.axis("off")
    for i, word in enumerate(example.words):
        asks = i == example.query
        axes.text(-0.04, i, word, ha="right", va="center", color=INK if asks else FAINT,
                  fontsize=11, fontweight="bold" if asks else "normal")  # fmt: skip
        _key(axes, word, i, shares_HS[:, i], word_width)
    for head, i in np.argwhere(shares_HS > 0.01):
        share = shares_HS[head, i]
        axes.plot([0, 1], [example.query, i], color=_head_colour(head), alpha=float(share),
                  linewidth=0.6 + 2.4 * share, solid_capstyle="round")  # fmt: skip
    if example.title:
        axes.set_title(example.title, loc="center", fontweight="normal", pad=10)


def _key(axes: "Axes", word: str, row: int, shares_H: Array, width: float) -> None:
    """A word that is attended to: shaded by ink for one head, after a square for each of several."""
    if len(shares_H) == 1:
        shade = ink(shares_H[0])
        _box(axes, (1.02, row), width - 0.02, shade)
        colour: Any = readable_on(shade)
    else:
        for head, share in enumerate(shares_H):
            corner = (1.02 + STRIP * head, row)
            _box(axes, corner, STRIP * 0.92, EMPTY)
            _box(axes, corner, STRIP * 0.92, (_head_colour(head), float(share)))
        colour = INK
    left = 1.07 + _room_of_strips(shares_H)
    axes.text(left, row, word, ha="left", va="center", color=colour, fontsize=11)


def _box(axes: "Axes", place: tuple[float, float], width: float, colour: Any) -> None:
    """A filled box on a row. place: its left edge, and the row at its middle; colour: any of matplotlib's."""
    from matplotlib.patches import Rectangle

    left, row = place
    axes.add_patch(Rectangle((left, row - 0.45), width, 0.9, facecolor=colour, linewidth=0))


def _room_of_strips(weights_H: Array) -> float:
    """What the squares of the heads take, in gaps; a single head has none."""
    return STRIP * len(weights_H) if len(weights_H) > 1 else 0.0


def _head_colour(head: int) -> str:
    return HEADS[head % len(HEADS)]


def _grid_between_cells(axes: "Axes", rows: int, columns: int) -> None:
    axes.set_xticks(np.arange(columns + 1) - 0.5, minor=True)
    axes.set_yticks(np.arange(rows + 1) - 0.5, minor=True)
    axes.grid(visible=False)
    axes.grid(which="minor", color="white", linewidth=1, alpha=1)
    axes.tick_params(which="minor", length=0)
    axes.spines[:].set_visible(False)


def _colour_map() -> Any:
    from matplotlib.colors import ListedColormap

    return ListedColormap([ink(i / 255) for i in range(256)], name="ink")


# ---- training ------------------------------------------------------------------------------------

CURVES = (  # panel, event, key, label, colour
    ("Loss", "train", "loss", "training", TRAIN),
    ("Loss", "validation", "loss", "validation", VALIDATION),
    ("Perplexity", "validation", "perplexity", "validation", VALIDATION),
    ("BLEU", "validation", "bleu", "validation", VALIDATION),
    ("Learning rate", "train", "learning_rate", "training", TRAIN),
    ("Tokens per second", "train", "tokens_per_second", "training", TRAIN),
)


def _panels(records: Sequence[Record]) -> dict[str, dict[tuple[str, str], Points]]:
    panels: dict[str, dict[tuple[str, str], Points]] = {}
    for panel, event, key, label, colour in CURVES:
        found = {r["update"]: r[key] for r in records if r.get("event") == event and _numbers(r, "update", key)}
        if found:
            panels.setdefault(panel, {})[label, colour] = sorted(found.items())
    return panels


def _numbers(record: Record, *keys: str) -> bool:
    return all(isinstance(record.get(key), int | float) for key in keys)


def _curve(axes: "Axes", label: str, colour: str, points: Points) -> None:
    updates, values = zip(*points, strict=True)
    axes.plot(updates, values, color=colour, label=label, marker=marker(points))


def _plain(axes: "Axes", title: str, legend: bool) -> None:
    """What is needed to read the curves. Perplexity spans decades. Speed from 0: its noise looks as small as it is."""
    from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

    axes.set_title(title)
    axes.set_xlabel("update")
    few_ticks(axes, integer=True)
    if title == "Perplexity":
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    if title == "Tokens per second":
        axes.set_ylim(0, 1.05 * axes.dataLim.y1)  # a margin of what is shown, not of the noise
        axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    if legend:
        axes.legend()


def _longest(labels: Sequence[str]) -> int:
    """In columns of a terminal: Chinese and Japanese letters are twice as wide."""
    return max(map(cell_len, labels), default=0)


@in_style
def exposure_figure(records: Sequence[Mapping[str, Any]], by_position: Mapping[str, Sequence[float]]) -> "Figure":
    """Two panels: validation over the updates, and the positions of a test set's references.

    Args:
        records: the lines of log.jsonl; those of validations that measured exposure bias are drawn.
        by_position: what `transduce.metrics.exposure.Exposure.by_position` gave.

    Raises:
        InputError: nothing to draw; no matplotlib.
    """
    measured = {each["update"]: each for each in records if "exposure_bias" in each}
    forced = [(update, each["teacher_forced"]) for update, each in sorted(measured.items())]
    free = [(update, each["teacher_forced"] + each["exposure_bias"]) for update, each in sorted(measured.items())]
    places = range(1, len(by_position.get("references", ())) + 1)
    if not measured and not places:
        raise InputError("exposure bias: nobody measured it.")
    figure = new_figure(8.4, 3.0)
    over_updates, over_positions = figure.subplots(1, 2)
    _panel(over_updates, "Validation", "update", free, forced)
    _panel(
        over_positions,
        "Test, by position",
        "position in the reference, in tokens",
        list(zip(places, by_position.get("free_running", ()), strict=True)),
        list(zip(places, by_position.get("teacher_forced", ()), strict=True)),
    )
    over_updates.set_ylabel("errors, % of tokens")
    return figure


def _panel(axes: "Axes", title: str, along: str, free: Points, forced: Points) -> None:
    for label, colour, points in (("outputs", FREE, free), ("teacher-forced", FORCED, forced)):
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, label=label, marker=marker(points))
    axes.set_title(title)
    axes.set_xlabel(along)
    axes.set_ylim(bottom=0)
    few_ticks(axes, integer=True)
    if free:
        axes.legend()
