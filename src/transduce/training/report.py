"""`report.json`: how good the finished model is, on what it was trained, how long that took and on which machine."""

import hashlib
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from torch import nn

from transduce.core.cache import cache_folder
from transduce.core.errors import InputError
from transduce.data.hold_out import HoldOut
from transduce.inference.generates import Generates
from transduce.inference.likelihood import (
    dataset_likelihood,
    dataset_log_probabilities,
    likelihood_context,
    signature,
)
from transduce.inference.prediction import count_unfinished
from transduce.inference.teacher_forcing import exposure, reports_exposure, unit_of
from transduce.metrics.bits import cost_tally
from transduce.metrics.exposure import signatures
from transduce.metrics.groups import group_tables, with_means
from transduce.recipe.recipe import Recipe
from transduce.runtime.environment import library_versions, machine, peak_memory_bytes, source_commit
from transduce.search.dispatch import quickest
from transduce.tasks.base import Task
from transduce.tasks.protocols import Baseline, Dataset, TaskData, Tell
from transduce.training.overlap import known_overlap
from transduce.training.progress import Progress
from transduce.training.run_directory import without_folders
from transduce.training.validation import spread, spread_tallies


def make_report(
    recipe: Recipe,
    path: Path,
    model: nn.Module,
    task: Task,
    data: TaskData,
    progress: Progress,
    precision: str,
    end: str,
    tell: Tell,
) -> dict[str, Any]:
    """Test the model, and the task's baseline, on every test set and put all figures together, ready for JSON.

    Args:
        path: the finished model file.
        end: why training ended.
    """
    report = {
        "name": recipe.name,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "ended": end,
        "model": {
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        },
        "training": {
            "seed": recipe.training.seed,
            "updates": progress.update,
            "epochs": progress.epoch,
            "target_tokens": progress.tokens,
            "seconds": round(progress.seconds, 1),
            "tokens_per_second": round(progress.tokens / max(progress.seconds, 1e-9), 1),
            "precision": precision,
            "batch": {"tokens": recipe.batch.tokens, "accumulate": recipe.training.accumulate},
            "batches_in_pieces": progress.in_pieces,
            "peak_memory_bytes": peak_memory_bytes(),
        },
        "validation": progress.best,
        **({"start": progress.start} if progress.start else {}),
        "validation_signatures": _signatures(recipe, model, task, data) if progress.best else {},
        "tests": {name: _test(recipe, model, task, dataset) for name, dataset in data.tests.items()},
        "progress": progress.to_dict(),
        "data": without_folders({**data.provenance, "train": _training_files(data)}),
        "environment": {"machine": machine(), "versions": library_versions(), "commit": source_commit()},
    }
    if (drawn := getattr(recipe.data, "hold_out", None)) and isinstance(drawn, HoldOut):
        report["hold_out"] = drawn.model_dump(mode="json")
    if repeated := known_overlap(recipe, cache_folder()):
        report["in_training"] = repeated
    baseline = score_baseline(task, data, tell)  # last: its memory and time are not the training's
    return report | ({"baseline": baseline} if baseline else {})


def _signatures(recipe: Recipe, model: nn.Module, task: Task, data: TaskData) -> dict[str, str]:
    """What each validation figure is: sacreBLEU's signature of a metric, and how its outputs were found."""
    decoded = recipe.training.decode_sentences
    texts = spread(data.validation.texts, decoded) if data.validation else []
    references = [reference for _, reference in texts]
    scores = spread_tallies(task, data.validation, references) if data.validation and references else {}
    method = f"search:{quickest(model).method}|" if isinstance(task, Generates) else ""
    searched = f"{method}sentences:at most {decoded}"
    found = {name: f"{score.signature}|{searched}" for name, score in scores.items()}
    if texts and reports_exposure(task, model, recipe.training.exposure_bias, quickest(model)):
        told = signatures(unit_of(references, task.tokenizers["target"].encode(references)))
        found |= {name: f"{each}|{searched}" for name, each in told.items()}
    return {"loss": f"{signature(task.objective(model).unit)}|context:{likelihood_context(model, task)}", **found}


def _test(recipe: Recipe, model: nn.Module, task: Task, dataset: Dataset) -> dict[str, Any]:
    """Likelihood, and for tasks with outputs the metrics of what the recipe's search finds."""
    likelihood = dataset_likelihood(model, task, dataset.store)
    result: dict[str, Any] = {"likelihood": {**likelihood.to_dict(), "context": likelihood_context(model, task)}}
    if dataset.texts:
        start = time.monotonic()
        outputs = task.predictor.predict(model, [source for source, _ in dataset.texts], recipe.search)
        result["seconds"] = round(time.monotonic() - start, 2)
        if isinstance(task, Generates):
            result["search"] = recipe.search.model_dump(mode="json", exclude_none=True)
            result["unfinished"] = count_unfinished(outputs)
        texts = [each.text for each in outputs]
        counted = task.tallies(texts, dataset.references, language=dataset.language)
        scores = {name: tally.score() for name, tally in with_means(counted, dataset.groups).items()}
        if groups := group_tables(counted, dataset.groups):
            result["groups"] = groups
        if reports_exposure(task, model, recipe.training.exposure_bias, recipe.search):
            found = exposure(model, task, dataset.texts, outputs)
            scores |= {name: tally.score() for name, tally in found.tallies().items()}
            result["errors_by_position"] = found.by_position()
        if likelihood.unit == "bit":
            each = dataset_log_probabilities(model, task, dataset.store)
            scores["cost"] = cost_tally([nats for _, each_BN in each for nats in each_BN.sum(1).tolist()]).score()
        result["scores"] = {name: score.to_dict() for name, score in scores.items()}
        confusion = task.confusion(texts, dataset.references)
        result |= {"confusion": confusion.to_dict()} if confusion else {}
    return result


def score_baseline(task: Task, data: TaskData, tell: Tell) -> dict[str, Any] | None:
    """The test scores of the task's baseline; None where there is none, or nothing to score."""
    start = time.monotonic()
    try:
        baseline = task.baseline(data, tell) if data.tests else None
        if baseline is None:
            return None
        found = {name: _of_baseline(baseline, task, dataset) for name, dataset in data.tests.items()}
    except InputError as error:
        tell(f"Baseline left out: {error}")  # the model is trained, and its scores are what was asked for
        return None
    tests = {name: each for name, each in found.items() if each}
    if not tests:
        return None
    seconds = round(time.monotonic() - start, 2)
    tell(f"Baseline: {baseline.name}, trained on the same files and tested in {seconds:.1f} s.")
    return {"name": baseline.name, "settings": baseline.settings, "seconds": seconds, "tests": tests}


def _of_baseline(baseline: Baseline, task: Task, dataset: Dataset) -> dict[str, Any]:
    """Its likelihood of a test set, where it gives one, and the scores of what it writes."""
    found: dict[str, Any] = {}
    if baseline.likelihood is not None:
        found["likelihood"] = {**baseline.likelihood(dataset.store).to_dict(), "context": baseline.name}
    if baseline.predict is not None and dataset.texts:
        outputs = baseline.predict([source for source, _ in dataset.texts])
        counted = task.tallies(outputs, dataset.references, language=dataset.language)
        found["scores"] = {name: tally.score().to_dict() for name, tally in with_means(counted, dataset.groups).items()}
    return found


def _training_files(data: TaskData) -> list[dict[str, Any]]:
    """Each training file with what became of its lines."""
    counted = ("examples", "tokens", "dropped", "unknown", "lines", "predicted")
    entries = data.provenance["train"]
    stores = [store for store, _ in data.corpora][:: len(data.corpora) // len(entries)]  # one of each file's cuts
    return [
        {**entry, **{key: store.metadata[key] for key in counted if key in store.metadata}}
        for entry, store in zip(entries, stores, strict=True)
    ]
