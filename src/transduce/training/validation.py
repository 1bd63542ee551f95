"""How good is the model right now: loss on held-out examples, metrics of decoded ones, samples, alarms."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TypeVar

import numpy as np
from torch import nn

from transduce.data.columns import Column
from transduce.data.store import Store
from transduce.inference.likelihood import dataset_likelihood
from transduce.inference.prediction import Prediction
from transduce.inference.teacher_forcing import exposure, reports_exposure
from transduce.metrics.tally import Tally, pooled
from transduce.recipe.training import TrainingConfig
from transduce.runtime.process_group import ALONE, ProcessGroup
from transduce.search.settings import Search
from transduce.tasks.base import Task
from transduce.tasks.protocols import Dataset
from transduce.training.diagnostics import alarms, unigram_entropy
from transduce.training.display import Display
from transduce.training.loop import KEPT

Item = TypeVar("Item")
ENTROPY_SAMPLE = 20_000  # training examples that the unigram entropy is taken from


@dataclass(frozen=True)
class Validator:
    """Validates a model as it stands.

    entropy: unigram entropy of the training targets, nats a token.
    keep: given the sources, outputs and references that are shown.
    group: the processes that share the work; all get the same results, those of one.
    search: how outputs are found, if the task searches; None: the quickest way.
    kept: further examples, which get the same metrics under `KEPT`; see `training.kept`.
    """

    model: nn.Module
    task: Task
    dataset: Dataset
    config: TrainingConfig
    display: Display
    entropy: float
    keep: Callable[[list[tuple[str, str, str]]], None] = lambda shown: None
    group: ProcessGroup = ALONE
    search: Search | None = None
    kept: Dataset | None = None

    def __call__(self) -> dict[str, float]:
        """`loss` (nats a token), `perplexity` (e^loss), and the task's metrics by name; tells what a person wants."""
        likelihood = dataset_likelihood(self.model, self.task, self.dataset.store, self.group)
        loss, unit = likelihood.loss, likelihood.unit
        texts, predictions = self._predicted(self.dataset)
        sources, references = [source for source, _ in texts], [reference for _, reference in texts]
        outputs = [each.text for each in predictions]
        metrics = self._metrics(self.dataset, loss, outputs)
        if texts and reports_exposure(self.task, self.model, self.config.exposure_bias, self.search):
            found = exposure(self.model, self.task, texts, predictions).tallies()
            metrics |= {name: tally.value for name, tally in found.items()}
        metrics |= self._metrics_of_kept()
        self.display.validated(metrics)
        shown = list(zip(sources, outputs, references, strict=True))[: self.config.samples]
        self.display.samples(shown)
        if shown:
            self.keep(shown)
        for alarm in alarms(sources, outputs, references, loss, self.entropy, unit):
            self.display.warn(f"Alarm: {alarm}")
        return metrics

    def _predicted(self, dataset: Dataset) -> tuple[list[tuple[str, str]], list[Prediction]]:
        """The texts that are decoded, and their predictions."""
        texts = spread(dataset.texts, self.config.decode_sentences)
        predict = partial(self.task.predictor.predict, self.model, settings=self.search)
        return texts, self.group.share_out([source for source, _ in texts], predict)

    def _metrics(self, dataset: Dataset, loss: float, outputs: list[str]) -> dict[str, float]:
        metrics = {"loss": loss, "perplexity": math.exp(min(loss, 700.0))}
        scores = spread_tallies(self.task, dataset, outputs) if outputs else {}
        return metrics | {name: tally.value for name, tally in scores.items()}

    def _metrics_of_kept(self) -> dict[str, float]:
        """Nothing without such examples."""
        if self.kept is None:
            return {}
        loss = dataset_likelihood(self.model, self.task, self.kept.store, self.group).loss
        _, predictions = self._predicted(self.kept)
        found = self._metrics(self.kept, loss, [each.text for each in predictions])
        return {f"{KEPT}{name}": value for name, value in found.items()}


def spread(texts: list[Item], count: int) -> list[Item]:
    """`count` of the texts, evenly spread over all of them."""
    if count >= len(texts):
        return texts
    return [texts[place * len(texts) // count] for place in range(count)]


def spread_tallies(task: Task, dataset: Dataset, outputs: list[str]) -> dict[str, Tally]:
    """What the recipe's metrics count of outputs for so many texts, spread over all; each language by its own rules."""
    references, languages = spread(dataset.references, len(outputs)), spread(dataset.languages, len(outputs))
    if not languages:
        return task.tallies(outputs, references, language=dataset.language)
    found = []
    for language in sorted(set(languages), key=str):
        rows = [row for row, each in enumerate(languages) if each == language]
        found.append(task.tallies([outputs[row] for row in rows], [references[row] for row in rows], language=language))
    return {name: pooled([each[name] for each in found]) for name in found[0]}


def target_entropy(store: Store, target: Column) -> float:
    """Unigram entropy of training targets, evenly spread, with the ends of texts."""
    rows = np.linspace(0, len(store) - 1, min(len(store), ENTROPY_SAMPLE)).astype(np.int64)
    targets = store.read("target", rows)
    return unigram_entropy(chain.from_iterable(target.closed(each.tolist()) for each in targets))
