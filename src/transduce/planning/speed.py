"""How fast this machine trains a recipe: the very model on the very batches, for a few seconds."""

import math
import time
from collections.abc import Callable, Sequence
from itertools import chain, count, islice
from statistics import fmean, median
from typing import NamedTuple

from torch import nn

from transduce.inference.inputs import batches_of
from transduce.inference.likelihood import dataset_log_probabilities
from transduce.recipe.recipe import Recipe
from transduce.recipe.training import Replay
from transduce.runtime.settings import repeatable
from transduce.search.dispatch import quickest
from transduce.search.settings import Search
from transduce.tasks.base import Task
from transduce.tasks.protocols import Dataset, TaskData
from transduce.training.checkpoint import TrainingState
from transduce.training.display import Display
from transduce.training.initialization import device, new_training
from transduce.training.loop import make_update
from transduce.training.precision import resolve_precision
from transduce.training.run import open_task
from transduce.training.validation import spread

WARMING, FEWEST, MOST, SECONDS = 3, 6, 100, 5.0  # updates that are not timed, and those that are; how long
SLOW = 2.0  # times the median: a slow moment, such as of another program
FEW, MANY = 2, 64  # sentences that are translated: the first pack the weights
TOGETHER = 3.0  # times as long take many in one batch as few do (2.5 to 3.7 with models 64 to 256 wide)
COUNTING = 1.5e-4  # seconds a pair, of co-occurrence embeddings
LOADING = 2.0  # seconds for what is done once: a checkpoint, the model file, figures, the report
SENTENCES = 2.0  # that are translated for each pair of [replay] that a model writes
WORSE = 1.3  # early validations translate with a poor model, whose outputs are too long


class Speed(NamedTuple):
    """Seconds of an update, a validation, the final tests, of what comes before the first update, and of translating a
    sentence."""

    update: float
    validation: float
    tests: float
    start: float
    sentence: float = 0.0

    def of_a_smaller_model(self, work: float) -> "Speed":
        """For a model that has this share of the work to do. Loading takes as long."""
        tests = LOADING + work * max(0.0, self.tests - LOADING)
        return Speed(work * self.update, work * self.validation, tests, self.start, work * self.sentence)


def measure(recipe: Recipe, display: Display, seconds: float = math.inf) -> Speed:
    """What an update, a validation and the tests of `recipe` take here.

    seconds: for measuring, when the data is open. What does not fit is extrapolated from what does, one batch at least.

    Raises:
        InputError: what `open_task` refuses.
    """
    with repeatable(recipe.training.threads):
        task, data = open_task(recipe, display)
        _tell_long(recipe, data, display)
        trained = new_training(recipe, task)
        begun = time.perf_counter()
        update = _update(recipe, trained, task, data, seconds / 2)
        validation, tests, sentence = _held_out(recipe, trained.model, task, data, begun + seconds)
        pairs = sum(len(store) for store, _ in data.corpora)
        start = COUNTING * pairs if recipe.training.embeddings == "cooccurrence" else 0.0
        measured = Speed(update, validation, tests, start, sentence)
        return _with_replay(measured, recipe.replay) if recipe.replay else measured


def _with_replay(speed: Speed, asked: Replay) -> Speed:
    """With the pairs that are made first, those that are measured besides, and what the first model can do."""
    kept = WORSE * asked.kept * speed.sentence
    validation, made = speed.validation + kept, (asked.pairs + asked.kept) * SENTENCES * speed.sentence
    return Speed(
        speed.update,
        validation,
        speed.tests + kept,
        speed.start + validation + (made if asked.kind == "generated" else 0.0),
        speed.sentence,
    )


def _update(recipe: Recipe, trained: TrainingState, task: Task, data: TaskData, limit: float) -> float:
    batches = data.batches(recipe.batch, recipe.training.seed)
    load = batches_of(batches.stores, task.columns, device())
    precision = resolve_precision(recipe.training.precision, device())
    rows = chain.from_iterable(batches.epoch(epoch) for epoch in count())

    def update() -> None:
        made = [load(each) for each in islice(rows, recipe.training.accumulate)]
        make_update(recipe.training, trained, made, precision)
        trained.progress.update += 1

    return steady(timed(update, limit))


def timed(update: Callable[[], object], limit: float) -> list[float]:
    """Seconds of each of some updates, of which the first may be slow, as long as there is time for further ones."""
    found = list[float]()
    while not found or sum(found) < limit:
        found.append(_seconds(update))
        measured = found[WARMING:]
        if len(measured) == MOST or (len(measured) >= FEWEST and sum(measured) >= SECONDS):
            break
    return found[WARMING:] or found[-1:]


def steady(seconds: Sequence[float]) -> float:
    """Their mean, for which a slow moment counts as one that is twice as slow as usual."""
    most = SLOW * median(seconds)
    return fmean(min(each, most) for each in seconds)


def _tell_long(recipe: Recipe, data: TaskData, display: Display) -> None:
    """Held-out pairs with more tokens than training keeps, which may take longer than all others."""
    most = getattr(getattr(recipe.data, "filters", None), "max_tokens", None)
    if most is None:
        return
    for name, dataset in {"the validation": data.validation, **data.tests}.items():
        lengths = [dataset.store.all_lengths(side) for side in ("source", "target")] if dataset else []
        longest = [max(both) for both in zip(*lengths, strict=True)]
        longer = sum(length > most for length in longest)
        if longer:
            have = "has" if longer == 1 else "have"
            display.tell_once(
                f"{name}: {longer:,} of {len(longest):,} pairs {have} more than {most:,} tokens, up to "
                f"{max(longest):,}. Training drops such pairs, but held-out ones are kept, and slow. "
                "Leave them out of the file, or raise data.filters.max_tokens.",
                warning=True,
            )


def _held_out(recipe: Recipe, model: nn.Module, task: Task, data: TaskData, until: float) -> tuple[float, float, float]:
    """Seconds of a validation, of all tests, and of translating a sentence for the former."""
    datasets = [*([data.validation] if data.validation else []), *data.tests.values()]
    limit = max(0.0, until - time.perf_counter()) / max(1, 2 * len(datasets))  # of a likelihood, or of translating
    validation, tests, sentence = 0.0, LOADING, 0.0
    if data.validation:
        decoded = min(recipe.training.decode_sentences, len(data.validation.texts))
        validation = _likelihood(model, task, data.validation, limit)
        sentence = _translation(model, task, data.validation, quickest(model), limit)
        validation += WORSE * decoded * sentence
    for dataset in data.tests.values():
        each = _translation(model, task, dataset, recipe.search, limit)
        tests += _likelihood(model, task, dataset, limit) + len(dataset.texts) * each
    return validation, tests, sentence


def _likelihood(model: nn.Module, task: Task, dataset: Dataset, limit: float) -> float:
    """Seconds for all of it. Units are tokens of texts with their ends, or examples."""
    begun, seen, passed, of_text = time.perf_counter(), 0, 0.0, task.columns["target"].is_text
    for batch, each_BN in dataset_log_probabilities(model, task, dataset.store):
        seen, passed = seen + (batch.units if of_text else len(each_BN)), time.perf_counter() - begun
        if passed > limit:
            break
    with_ends = dataset.store.metadata["tokens"]["target"] + len(dataset.store)
    units = with_ends if of_text else len(dataset.store)
    return passed * units / max(1, seen)


def _translation(model: nn.Module, task: Task, dataset: Dataset, search: Search, limit: float) -> float:
    """Seconds a sentence. The model knows no end yet: outputs are as long as the references on average."""
    if not dataset.texts:
        return 0.0
    length = math.ceil(dataset.store.metadata["tokens"]["target"] / max(1, len(dataset.store)))
    fixed = {"max_length_factor": 0.0, "max_length_offset": length + 1, "min_length": length}
    limited = search.model_copy(update=fixed)

    def translate(count: int) -> float:
        texts = [source for source, _ in spread(dataset.texts, count)]
        return _seconds(lambda: task.predictor.predict(model, texts, limited)) / len(texts)

    return of_a_batch(translate, limit)


def of_a_batch(seconds_for: Callable[[int], float], limit: float) -> float:
    """Seconds a sentence where many are translated at once; seconds_for: the same for so many.

    Without time for many, it follows from few.
    """
    few = FEW * seconds_for(FEW)
    if few + TOGETHER * few < limit:
        return seconds_for(MANY)
    return TOGETHER * few / MANY


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun
