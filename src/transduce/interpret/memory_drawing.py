"""What a model of vectors read and answered, and what its memory did meanwhile, as in Graves et al. 2014, figure 6.

Time goes to the right. Above: inputs and outputs; vectors that are written and read; below: where each head was. Slots
that no head ever looked at are left out.

Shapes: T steps, F numbers of a vector, N slots that are shown.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console, ConsoleOptions
from rich.text import Text

from transduce.core.errors import InputError
from transduce.core.templates import render
from transduce.inference.prediction import Prediction
from transduce.inference.vectors import VectorPrediction
from transduce.interpret.attention import Attention
from transduce.interpret.drawing import in_style, new_figure, save
from transduce.interpret.notebook import png
from transduce.interpret.numbers import packed
from transduce.interpret.terminal import ASCII_SHADES, SHADES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEMPLATE = Path(__file__).with_name("memory_drawing.html.jinja")
LOOKED_AT, FEW = 0.05, 16  # a slot is shown if a head gave it more once; where there is none, the heaviest few
PIXELS = 6  # of a number
COLUMNS = 160  # steps that a terminal shows at most


class Panel(NamedTuple):
    """One matrix over time, (rows, T). slots: whether its rows are slots of the memory."""

    title: str
    values: NDArray[np.floating]
    slots: bool = False


@dataclass(frozen=True, eq=False)
class MemoryDrawing:
    """panels: from top to bottom. slots: (N,) which slots of the memory are shown.

    memory: (T, N, width) what these slots held after each step; None where the model has no memory.
    """

    panels: tuple[Panel, ...]
    slots: tuple[int, ...] = ()
    memory: NDArray[np.floating] | None = None

    @classmethod
    def of(cls, prediction: Prediction, attention: Attention | None = None) -> Self:
        """Of a prediction of vectors. Raises InputError for another one."""
        if not isinstance(prediction, VectorPrediction):
            raise InputError("this picture is of a prediction of vectors.")
        inputs_FT = np.array(json.loads(prediction.source), np.float64).T
        outputs_FT = np.zeros((len(prediction.probabilities[0]), inputs_FT.shape[1]))
        outputs_FT[:, -len(prediction.probabilities) :] = np.array(prediction.probabilities).T
        panels = [Panel("inputs", inputs_FT), Panel("outputs", outputs_FT)]
        if prediction.trace is None:
            return cls(tuple(panels))
        added, read, weighting, memory = (each[0].double().numpy() for each in prediction.trace())
        peaks = weighting.max((0, 1))
        slots = np.flatnonzero(peaks > LOOKED_AT)
        slots = slots if len(slots) else np.sort(np.argsort(-peaks, kind="stable")[:FEW])
        for name, each in (("added", added), ("read", read)):
            panels += [Panel(_numbered(name, head, each), each[:, head].T) for head in range(each.shape[1])]
        reads = read.shape[1]
        for name, heads in (("write weighting", weighting[:, reads:]), ("read weighting", weighting[:, :reads])):
            panels += [
                Panel(_numbered(name, head, heads), heads[:, head, slots].T, slots=True)
                for head in range(heads.shape[1])
            ]
        return cls(tuple(panels), tuple(slots.tolist()), memory[:, slots])

    def to_dict(self) -> dict[str, Any]:
        """Every panel, and the contents of the memory over time."""
        panels = [{"title": each.title, "slots": each.slots, **_packed(each.values)} for each in self.panels]
        memory = None if self.memory is None else _packed(self.memory)
        return {"panels": panels, "slots": list(self.slots), "memory": memory}

    def plot(self) -> "Figure":
        """A matplotlib figure. Raises InputError where there is no matplotlib."""
        return memory_figure(self)

    def write_figure(self, folder: Path) -> None:
        save(self.plot(), folder / "memory.png")

    def _repr_html_(self) -> str:
        panels = [
            {
                "title": each.title,
                "png": png(_shares(each)),
                "rows": each.values.shape[0],
                "steps": each.values.shape[1],
            }
            for each in self.panels
        ]
        return render(TEMPLATE, panels=panels, pixels=PIXELS)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        shades = ASCII_SHADES if options.ascii_only else SHADES
        steps = min(COLUMNS, max(10, options.max_width - 8), self.panels[0].values.shape[1])
        for panel in self.panels:
            cut = f" (the first {steps} of {panel.values.shape[1]} steps)" if steps < panel.values.shape[1] else ""
            yield Text(panel.title + cut, "bold")
            names = self.slots if panel.slots else range(len(panel.values))
            for name, row in zip(names, _shares(panel)[:, :steps], strict=True):
                places = np.rint(row * (len(shades) - 1)).astype(int)
                yield Text(f"{name:>5}  " + "".join(shades[place] for place in places), no_wrap=True)


@in_style
def memory_figure(drawing: MemoryDrawing) -> "Figure":
    """All panels, one below the other, over the same steps."""
    steps = drawing.panels[0].values.shape[1]
    heights = [max(4, len(each.values)) for each in drawing.panels]
    figure = new_figure(min(14.0, max(5.0, 0.12 * steps)), 0.09 * sum(heights) + 0.45 * len(heights))
    grid = figure.subplots(len(heights), 1, squeeze=False, sharex=True, height_ratios=heights)[:, 0]
    for axes, panel in zip(grid, drawing.panels, strict=True):
        axes.imshow(_shares(panel), cmap="Greys", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        axes.set_title(panel.title, loc="left", fontsize=9)
        axes.grid(visible=False)
        places = range(0, len(panel.values), max(1, len(panel.values) // 4)) if panel.slots else ()
        axes.set_yticks(places, [str(drawing.slots[place]) for place in places], fontsize=7)
    grid[-1].set_xlabel("step")
    return figure


def _packed(values: NDArray[np.floating]) -> dict[str, Any]:
    return packed(torch.from_numpy(np.ascontiguousarray(values, np.float32)))


def _numbered(name: str, head: int, weights: NDArray[np.floating]) -> str:
    return f"{name} (head {head + 1})" if weights.shape[1] > 1 else name


def _shares(panel: Panel) -> NDArray[np.floating]:
    """From 0 to 1: of its largest weight, or of 1; where numbers may be below 0, what is 0 is in the middle."""
    values = panel.values
    most = float(np.abs(values).max(initial=0.0)) or 1.0
    if panel.slots:
        return values / most
    return 0.5 + 0.5 * values / most if values.min(initial=0.0) < 0 else values / max(most, 1.0)
