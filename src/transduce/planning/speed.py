"""How fast this machine trains a recipe: the very model on the very batches, for a few seconds."""

import math
import time
from collections.abc import Callable
from itertools import chain, count, islice
from typing import NamedTuple

from torch import nn

from transduce.inference.inputs import batches_of
from transduce.inference.likelihood import dataset_likelihood
from transduce.recipe.recipe import Recipe
from transduce.runtime.settings import repeatable
from transduce.search.dispatch import quickest
from transduce.search.settings import Search
from transduce.tasks.protocols import Dataset, Task, TaskData
from transduce.training.display import Display
from transduce.training.initialization import device, new_training
from transduce.training.loop import make_update
from transduce.training.precision import resolve_precision
from transduce.training.run import open_task
from transduce.training.validation import spread

WARMING, FEWEST, MOST, SECONDS = 3, 6, 100, 5.0  # updates that are not timed, and those that are; how long
TRANSLATED = 64  # sentences
COUNTING = 1.5e-4  # seconds a pair, of co-occurrence embeddings
LOADING = 2.0  # seconds for what is done once: a checkpoint, the model file, figures, the report
WORSE = 1.3  # early validations translate with a poor model, whose outputs are too long


class Speed(NamedTuple):
    """Seconds of an update, a validation, the final tests, and of what comes before the first update."""

    update: float
    validation: float
    tests: float
    start: float


def measure(recipe: Recipe, display: Display) -> Speed:
    """What an update, a validation and the tests of `recipe` take here.

    Raises:
        InputError: what `open_task` refuses.
    """
    with repeatable(recipe.training.threads):
        task, data = open_task(recipe, display)
        _tell_long(recipe, data, display)
        trained = new_training(recipe, task)
        batches = data.batches(recipe.batch, recipe.training.seed)
        load = batches_of(batches.stores, task.columns, device())
        precision = resolve_precision(recipe.training.precision, device())
        rows = chain.from_iterable(batches.epoch(epoch) for epoch in count())

        def update() -> None:
            made = [load(each) for each in islice(rows, recipe.training.accumulate)]
            make_update(recipe.training, trained, made, precision)
            trained.progress.update += 1

        for _ in range(WARMING):
            update()
        begun, made = time.perf_counter(), 0
        while made < FEWEST or (made < MOST and time.perf_counter() - begun < SECONDS):
            update()
            made += 1
        seconds = (time.perf_counter() - begun) / made
        pairs = sum(len(store) for store, _ in data.corpora)
        start = COUNTING * pairs if recipe.training.embeddings == "cooccurrence" else 0.0
        return Speed(seconds, *_held_out(recipe, trained.model, task, data), start)


def _tell_long(recipe: Recipe, data: TaskData, display: Display) -> None:
    """Held-out pairs with more tokens than training keeps, which may take longer than all others."""
    most = getattr(getattr(recipe.data, "filters", None), "max_tokens", math.inf)
    for name, dataset in {"the validation": data.validation, **data.tests}.items():
        lengths = [dataset.store.all_lengths(side) for side in ("source", "target")] if dataset else []
        longest = [max(both) for both in zip(*lengths, strict=True)]
        longer = sum(length > most for length in longest)
        if longer:
            have = "has" if longer == 1 else "have"
            display.warn(
                f"{name}: {longer:,} of {len(longest):,} pairs {have} more than {most:,} tokens, up to "
                f"{max(longest):,}. Training drops such pairs, but held-out ones are kept, and slow. "
                "Leave them out of the file, or raise data.filters.max_tokens."
            )


def _held_out(recipe: Recipe, model: nn.Module, task: Task, data: TaskData) -> tuple[float, float]:
    """Seconds of a validation, and of all tests."""
    validation = 0.0
    if data.validation:
        decoded = min(recipe.training.decode_sentences, len(data.validation.texts))
        validation = _likelihood(model, task, data.validation)
        validation += WORSE * decoded * _translation(model, task, data.validation, quickest(model))
    tests = LOADING
    for dataset in data.tests.values():
        each = _translation(model, task, dataset, recipe.search)
        tests += _likelihood(model, task, dataset) + len(dataset.texts) * each
    return validation, tests


def _likelihood(model: nn.Module, task: Task, dataset: Dataset) -> float:
    return _seconds(lambda: dataset_likelihood(model, task, dataset.store))


def _translation(model: nn.Module, task: Task, dataset: Dataset, search: Search) -> float:
    """Seconds a sentence. The model knows no end yet: outputs are as long as the references on average."""
    texts = [source for source, _ in spread(dataset.texts, TRANSLATED)]
    if not texts:
        return 0.0
    length = math.ceil(dataset.store.metadata["tokens"]["target"] / max(1, len(dataset.store)))
    fixed = {"max_length_factor": 0.0, "max_length_offset": length + 1, "min_length": length}
    limited = search.model_copy(update=fixed)
    task.predictor.predict(model, texts[:2], limited)  # packs the weights
    return _seconds(lambda: task.predictor.predict(model, texts, limited)) / len(texts)


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
