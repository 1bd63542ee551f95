"""What a task opens: the examples of a training, and its baseline."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from transduce.core.errors import InputError
from transduce.data.batches import BatchConfig, Batches, BatchPlan
from transduce.data.columns import Column
from transduce.data.store import Store
from transduce.data.stream_batches import StreamBatches
from transduce.inference.likelihood import Likelihood
from transduce.inference.prediction import cut_line

Tell = Callable[[str], None]  # tells the user one line


@dataclass(frozen=True)
class Dataset:
    """Held-out examples.

    store: encoded, for their likelihood.
    texts: inputs and references, for decoding; empty for a task that is judged by likelihood alone.
    several: all references of each, where some have more than one, the one in `texts` first.
    groups: what each of `texts` belongs to, such as one of several tasks, for a table of scores; none: to nothing.
    language: code of the references' language, where a model writes several; None: the recipe's.
    languages: that of each of `texts`, where they are not all of one.
    """

    store: Store
    texts: list[tuple[str, str]] = field(default_factory=list)
    several: list[list[str]] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    language: str | None = None
    languages: list[str | None] = field(default_factory=list)

    @property
    def references(self) -> list[list[str]]:
        """All references of each of `texts`."""
        return self.several or [[reference] for _, reference in self.texts]


@dataclass(frozen=True)
class TaskData:
    """Everything that a training reads.

    corpora: each with its weight.
    validation: None when the recipe names no validation files.
    tests: by name.
    provenance: fingerprints and counts by file, for the model file.
    window: tokens of a row where training reads one running text in order, as parallel streams (`StreamBatches`); None:
        examples are shuffled.
    cuts: so many of `corpora` in a row hold the same examples, cut into tokens in different ways.
    drawn: the batches of a training with this seed, of a task that does not cut them by length, as where examples are
        generated.
    """

    corpora: list[tuple[Store, float]]
    validation: Dataset | None
    tests: dict[str, Dataset]
    provenance: dict[str, Any]
    window: int | None = None
    cuts: int = 1
    drawn: Callable[[int], BatchPlan] | None = None

    def cut_lines(self, source: Column | None) -> list[str]:
        """What is to be told of texts that have more tokens than a model reads, where it reads the first of them."""
        if source is None or source.room is None or not source.cuts:
            return []
        held_out = {**({"validation": self.validation} if self.validation else {}), **self.tests}
        stores = {"training": [store for store, _ in self.corpora]}
        stores |= {name: [each.store] for name, each in held_out.items()}
        lengths = {name: np.concatenate([each.all_lengths("source") for each in some]) for name, some in stores.items()}
        longer = {name: int((found > source.room).sum()) for name, found in lengths.items()}
        return [
            f"{name}: {cut_line(count, len(lengths[name]), source.room)}" for name, count in longer.items() if count
        ]

    def examples(self, most: int) -> tuple[list[Any], list[Any]]:
        """Sources and targets of the training, each example once: all, or every second, third .. so that the sources
        have `most` positions at most.
        """
        stores = [store for store, _ in self.corpora[:: self.cuts]]
        step = max(1, -(-sum(int(store.all_lengths("source").sum()) for store in stores) // most))
        rows = [np.arange(0, len(store), step) for store in stores]
        sources, targets = (
            [each for store, taken in zip(stores, rows, strict=True) for each in store.read(side, taken)]
            for side in ("source", "target")
        )
        return sources, targets

    def batches(self, config: BatchConfig, seed: int) -> BatchPlan:
        """Which examples go into which batch of a training.

        Raises:
            InputError: the settings do not suit the data.
        """
        if self.drawn is not None:
            return self.drawn(seed)
        if self.window is None:
            return Batches(self.corpora, config, seed, self.cuts)
        if config.tokens == "auto" or len(self.corpora) > 1:
            raise InputError("parallel streams: expected one text, and a number as batch.tokens.")
        return StreamBatches(self.corpora[0][0], config.tokens // self.window)


@dataclass(frozen=True)
class Baseline:
    """A simple system, trained on the same files as the model, whose test scores are shown beside the model's.

    name: what tables call it, such as "bag of n-grams".
    predict: inputs to outputs, in their order, as the task's metrics take them; None: it writes nothing.
    settings: what one needs to train it again, ready for JSON.
    likelihood: how probable all targets of a store are to it; None: it gives no probabilities.
    """

    name: str
    predict: Callable[[Sequence[str]], Sequence[str]] | None
    settings: dict[str, Any] = field(default_factory=dict)
    likelihood: Callable[[Store], Likelihood] | None = None
