"""Which words a classifier looked at: the weights of its attention pooling, beside the probability of every label.

    alpha_r = softmax over the words for hop r;   the mean is over the hops

Shapes: R hops, S tokens, W words.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions
from rich.text import Text

from transduce.core.errors import InputError
from transduce.core.templates import render
from transduce.inference.prediction import Prediction
from transduce.interpret.attention import Attention
from transduce.interpret.shaded_text import Array, heaviest, marks, of_words, placed, read_by, words_of
from transduce.interpret.terminal import LONGEST_LABEL, as_printed, bar_line, shaded_text
from transduce.interpret.token_spans import Word

TEMPLATE = Path(__file__).with_name("word_shading.html.jinja")
BARS = 12  # labels with a bar, the likeliest


@dataclass(frozen=True, eq=False)
class WordShading:
    """A text, its words, and what of each hop stands on each word (R, W); R is 0 for a model that pools otherwise.

    probabilities: of every label, the likeliest first.
    """

    text: str
    words: tuple[Word, ...]
    hops: Array
    probabilities: dict[str, float]

    @classmethod
    def of(cls, prediction: Prediction, attention: Attention | None = None) -> Self:
        """The words of a classified text; without weights where the model has none."""
        probabilities = dict(prediction.details()["probabilities"])
        try:
            found = attention or prediction.attention()
        except InputError:  # an ensemble, or an empty text
            return cls(prediction.source, (), np.zeros((0, 0)), probabilities)
        source = read_by(found)
        words = words_of(source)
        layers = [layer.weights[:, 0] for layer in found.of("cross")]
        hops_RS = torch.cat(layers).double().numpy() if layers else np.zeros((0, len(source.tokens)))
        return cls(prediction.source, tuple(words), of_words(words, hops_RS), probabilities)

    @property
    def mean(self) -> Array:
        """(W,) the mean of the hops."""
        return self.hops.mean(0) if len(self.hops) else np.zeros(len(self.words))

    def to_dict(self) -> dict[str, Any]:
        """For the page: the words, the weights of each hop and their mean, and all probabilities."""
        return {
            "text": self.text,
            "words": placed(self.words),
            "hops": self.hops.tolist(),
            "mean": self.mean.tolist(),
            "probabilities": self.probabilities,
        }

    def _rows(self) -> list[tuple[str, Array]]:
        """What is shaded: the mean, and where there are several hops, each of them."""
        if len(self.hops) < 2:
            return [("", each) for each in self.hops]
        return [("mean", self.mean), *((f"hop {number}", each) for number, each in enumerate(self.hops, 1))]

    def _repr_html_(self) -> str:
        rows = [(name, marks(self.text, self.words, each, heaviest(each))) for name, each in self._rows()]
        bars = list(self.probabilities.items())[:BARS]
        more = len(self.probabilities) - len(bars)
        return render(TEMPLATE, rows=rows, bars=bars, more=more, text=self.text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Any]:
        bars = list(self.probabilities.items())[:BARS]
        margin = min(max(cell_len(label) for label, _ in bars), LONGEST_LABEL) + 1
        for place, (label, probability) in enumerate(bars):
            yield bar_line(label, probability, probability, margin, options, place == 0)
        if len(self.probabilities) > len(bars):
            yield Text(f"and {len(self.probabilities) - len(bars)} more labels", "dim")
        spans = [(word.start, word.end) for word in self.words]
        for name, weights in self._rows():
            yield shaded_text(self.text, spans, weights, f"{set_cell_size(name, 7)}" if name else "")
        if not len(self.hops) and self.text.strip():
            yield Text(as_printed(self.text))
            yield Text("This model has no attention over the words that decided the label.", "dim")
