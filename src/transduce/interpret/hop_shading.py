"""Which sentence each hop of a memory network read: the story, a line a sentence, shaded hop by hop.

The picture of Sukhbaatar et al. 2015, figure 2.

Shapes: K hops, M sentences.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions
from rich.text import Text

from transduce.core.errors import InputError
from transduce.core.templates import render
from transduce.data.structures.stories import story_of
from transduce.inference.prediction import Prediction
from transduce.interpret.attention import Attention
from transduce.interpret.drawing import in_style, new_figure, save
from transduce.interpret.shaded_text import Array, colours
from transduce.interpret.terminal import ASCII_SHADES, LONGEST_LABEL, SHADES, as_printed, bar_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEMPLATE = Path(__file__).with_name("hop_shading.html.jinja")
BARS = 5  # answers with a bar, the likeliest
FACT = "*"  # marks a supporting fact


@dataclass(frozen=True, eq=False)
class HopShading:
    """A story of M sentences, a question, and what each of K hops gave to each sentence, (K, M).

    empty: (K,) what each gave to empty slots. facts: the places of the supporting facts, where they are known.
    probabilities: of every answer, the likeliest first.
    """

    sentences: tuple[str, ...]
    question: str
    hops: Array
    empty: Array
    facts: tuple[int, ...]
    probabilities: dict[str, float]

    @classmethod
    def of(cls, prediction: Prediction, attention: Attention | None = None) -> Self:
        """Of an answered question; without hops of an ensemble."""
        probabilities = dict(prediction.details()["probabilities"])
        story = story_of(prediction.source)
        sentences = story.sentences[:-1]
        try:
            found = attention or prediction.attention()
            layers = [layer.weights[0, 0] for layer in found.of("other") if layer.weights.shape[-1] == len(sentences)]
        except InputError:  # an ensemble, or an empty text
            layers = []
        hops_KM = torch.stack(layers).double().numpy() if layers else np.zeros((0, len(sentences)))
        empty_K = np.clip(1 - hops_KM.sum(1), 0, 1)
        return cls(tuple(sentences), story.question, hops_KM, empty_K, story.facts, probabilities)

    def to_dict(self) -> dict[str, Any]:
        return {
            "sentences": list(self.sentences),
            "question": self.question,
            "hops": self.hops.tolist(),
            "empty": self.empty.tolist(),
            "facts": list(self.facts),
            "probabilities": self.probabilities,
        }

    def plot(self) -> "Figure":
        """A matplotlib figure. Raises InputError where there is no matplotlib."""
        return hop_figure(self)

    def write_figure(self, folder: Path) -> None:
        save(self.plot(), folder / "hops.png")

    def _repr_html_(self) -> str:
        lines = [
            {
                "text": sentence,
                "fact": place in self.facts,
                "cells": [(f"{weight:.2f}", colours(float(weight))) for weight in self.hops[:, place]],
            }
            for place, sentence in enumerate(self.sentences)
        ]
        bars = list(self.probabilities.items())[:BARS]
        empty = [(f"{weight:.2f}", colours(float(weight))) for weight in self.empty]
        return render(TEMPLATE, lines=lines, question=self.question, empty=empty, bars=bars, known=bool(self.facts))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        bars = list(self.probabilities.items())[:BARS]
        margin = min(max((cell_len(label) for label, _ in bars), default=0), LONGEST_LABEL) + 1
        for place, (label, probability) in enumerate(bars):
            yield bar_line(label, probability, probability, margin, options, place == 0)
        if not len(self.hops):
            yield Text("What was read is known of single models of stories alone.", "dim")
            return
        names = "".join(f"{f'hop {number}':<7}" for number in range(1, len(self.hops) + 1))
        yield Text(f"{names}  {as_printed(self.question)}", "bold")
        for place, sentence in enumerate(self.sentences):
            line = self._shades(self.hops[:, place], options)
            line.append(FACT + " " if place in self.facts else "  ")
            yield line.append(as_printed(sentence), "bold" if place in self.facts else "")
        if self.empty.max(initial=0.0) >= 0.005:
            yield self._shades(self.empty, options).append("  (empty slots)", "dim")
        if self.facts:
            yield Text(f"{FACT} supporting facts", "dim")

    def _shades(self, weights: Array, options: ConsoleOptions) -> Text:
        shades = ASCII_SHADES if options.ascii_only else SHADES
        line = Text(no_wrap=True)
        for weight in weights.tolist():
            shade = shades[round(min(weight, 1.0) * (len(shades) - 1))]
            line.append(f"{shade}{shade} {weight:.2f}"[:7].ljust(7).replace("0.00", "  . "))
        return line


@in_style
def hop_figure(drawing: HopShading) -> "Figure":
    """Sentences downwards, hops across."""
    count, hops = len(drawing.sentences), max(1, len(drawing.hops))
    figure = new_figure(3.6 + 0.6 * hops, 0.9 + 0.24 * max(1, count))
    axes = figure.subplots()
    axes.grid(visible=False)
    axes.imshow(drawing.hops.T.reshape(count, -1), cmap="Blues", vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    marked = (f"{each} {FACT}" if place in drawing.facts else each for place, each in enumerate(drawing.sentences))
    axes.set_yticks(range(count), list(marked), fontsize=8)
    axes.set_xticks(range(len(drawing.hops)), [f"hop {number + 1}" for number in range(len(drawing.hops))], fontsize=8)
    for (place, hop), weight in np.ndenumerate(drawing.hops.T):
        if weight >= 0.005:
            colour = "white" if weight > 0.5 else "black"
            axes.text(hop, place, f"{weight:.2f}", ha="center", va="center", fontsize=7, color=colour)
    answer = next(iter(drawing.probabilities), "")
    axes.set_title(f"{drawing.question} {answer}", loc="left", fontsize=9)
    return figure
