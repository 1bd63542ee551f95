"""A training from recipe to model file: open the data, train, choose the best weights, test, write the report."""

import hashlib
import json
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import nn

from transduce.atomic import write_json, write_text
from transduce.data.batches import Batches
from transduce.errors import InputError
from transduce.inference import batches_of, dataset_likelihood, decode
from transduce.model_file import NAME, ModelFile, save_model_file
from transduce.names import resolve
from transduce.pipeline import load_weights, make_model, make_task, pack_tokenizers
from transduce.recipe import Recipe
from transduce.tasks.protocols import Dataset, Task, TaskData, Tokenizers
from transduce.tasks.tokenizers import cached_tokenizers
from transduce.training.allocator import keep_freed_memory
from transduce.training.average import MovingAverage
from transduce.training.checkpoint import Checkpoints, Trained
from transduce.training.display import Display
from transduce.training.environment import library_versions, machine, peak_memory_bytes
from transduce.training.figures import write_figures
from transduce.training.log import Log
from transduce.training.loop import Hands, derived_seed, train
from transduce.training.optimizer import Optimizers
from transduce.training.precision import resolve_precision
from transduce.training.progress import Progress
from transduce.training.signals import stop_on_signals
from transduce.training.validation import Validator, target_entropy

MAY_CHANGE = ("training.minutes", "training.log_every", "training.tensorboard", "data.root", "search")


def cache_folder() -> Path:
    """`TRANSDUCE_CACHE`, or a folder of the user's."""
    return Path(os.environ.get("TRANSDUCE_CACHE", Path.home() / ".cache" / "transduce"))


def run_training(recipe: Recipe, run: Path, display: Display) -> dict[str, Any]:
    """Train `recipe` into the directory `run`, or go on where a stopped training of it stands; returns the report.

    Raises:
        InputError: the data is wrong, or `run` holds a training of another recipe.
        Interrupted: stopped by a signal; saved.
    """
    keep_freed_memory()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS repeats itself only with this
    torch.use_deterministic_algorithms(True)
    _claim(run, recipe)
    task, data = open_task(recipe, display)
    _check_metrics(recipe, task, data)
    _claim_data(run, data)
    trained = new_training(recipe, task)
    checkpoints = Checkpoints(run, recipe.training.keep)
    progress = checkpoints.restore_newest(trained, display.warn)
    if progress:
        trained = Trained(trained.model, trained.optimizers, trained.average, progress)
        display.tell(f"Going on after update {progress.update}.")
    reason = _train(recipe, run, task, data, trained, checkpoints, display)
    display.tell(f"Training ended: {reason}.")
    return _finish(recipe, run, task, data, trained, checkpoints, display, reason)


def open_task(recipe: Recipe, display: Display) -> tuple[Task, TaskData]:
    """The task with its tokenizers, and its data."""
    kind = resolve("tasks", recipe.task.kind)  # type: ignore[attr-defined]
    tokenizers: Tokenizers = cached_tokenizers(cache_folder(), kind, recipe.tokenizer, recipe.data)
    task = make_task(recipe, tokenizers)
    return task, task.open(cache_folder(), display.tell)


def new_training(recipe: Recipe, task: Task) -> Trained:
    """A model at its random start, which depends on the seed alone."""
    torch.manual_seed(derived_seed(recipe.training.seed, 0))
    model = make_model(recipe, task).to(device())
    average = MovingAverage(model, recipe.training.average)
    return Trained(model, Optimizers(model, recipe.training), average, Progress())


def device() -> torch.device:
    """An accelerator if there is one."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _train(
    recipe: Recipe, run: Path, task: Task, data: TaskData, trained: Trained, checkpoints: Checkpoints, display: Display
) -> str:
    config = recipe.training
    batches = Batches(data.corpora, recipe.batch, config.seed)
    load = batches_of(batches.stores, task, device())
    validate = None
    if data.validation:
        entropy = target_entropy(batches.stores[0])
        validate = Validator(trained.model, task, data.validation, config, display, entropy)
    precision = resolve_precision(config.precision, device())
    log = Log(run, trained.progress.update, config.tensorboard)
    hands = Hands(validate, display.show, display.tell)
    try:
        with stop_on_signals() as stop, display.open(config.updates, trained.progress.update):
            return train(config, trained, batches, load, checkpoints, log, hands, stop, precision)
    finally:
        log.close()


def _finish(
    recipe: Recipe,
    run: Path,
    task: Task,
    data: TaskData,
    trained: Trained,
    checkpoints: Checkpoints,
    display: Display,
    reason: str,
) -> dict[str, Any]:
    progress, model = trained.progress, trained.model
    if progress.best:
        load_weights(model, checkpoints.load_best(progress))
    else:
        load_weights(model, trained.average.tensors() or dict(model.named_parameters()))
    weights = {name: weight.detach() for name, weight in model.named_parameters()}
    path = run / NAME
    file = ModelFile(
        weights, _config(recipe), pack_tokenizers(task.tokenizers), _provenance(recipe, data), progress.best
    )
    save_model_file(path, file)
    report = {
        "name": recipe.name,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "ended": reason,
        "model": {
            "parameters": sum(weight.numel() for weight in weights.values()),
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        },
        "training": {
            "seed": recipe.training.seed,
            "updates": progress.update,
            "epochs": progress.epoch,
            "target_tokens": progress.tokens,
            "seconds": round(progress.seconds, 1),
            "tokens_per_second": round(progress.tokens / max(progress.seconds, 1e-9), 1),
            "precision": resolve_precision(recipe.training.precision, device()),
            "peak_memory_bytes": peak_memory_bytes(),
        },
        "validation": progress.best,
        "tests": {name: _test(recipe, model, task, dataset, display) for name, dataset in data.tests.items()},
        "data": {**data.provenance, "train": _training_files(data)},
        "environment": {"machine": machine(), "versions": library_versions()},
    }
    write_figures(run, model, task, data, display.tell)
    write_json(run / "report.json", report)
    return report


def _test(recipe: Recipe, model: nn.Module, task: Task, dataset: Dataset, display: Display) -> dict[str, Any]:
    """Likelihood, and for tasks with outputs the metrics of what the recipe's search finds."""
    likelihood = dataset_likelihood(model, task, dataset.store)
    result: dict[str, Any] = {"likelihood": likelihood.to_dict()}
    if dataset.texts:
        start = time.monotonic()
        outputs = decode(model, task, [source for source, _ in dataset.texts], recipe.search)
        result["seconds"] = round(time.monotonic() - start, 2)
        result["search"] = recipe.search.model_dump(mode="json", exclude_none=True)
        scores = task.evaluate([each.text for each in outputs], [reference for _, reference in dataset.texts])
        result["scores"] = {name: score.to_dict() for name, score in scores.items()}
    return result


def _claim(run: Path, recipe: Recipe) -> None:
    """Write the resolved recipe into a new run; refuse a run of another one.

    Raises:
        InputError: which keys differ.
    """
    import tomli_w

    table = recipe.to_table()
    resolved = run / "recipe.toml"
    if resolved.exists():
        different = sorted(_differences(_read_toml(resolved), json.loads(json.dumps(table))))
        different = [key for key in different if not key.startswith(MAY_CHANGE)]
        if different:
            raise InputError(
                f"{run}: holds a training of another recipe; these keys differ: {', '.join(different)}. "
                "Choose another directory with --run, or delete this one."
            )
    run.mkdir(parents=True, exist_ok=True)
    write_text(resolved, tomli_w.dumps(table))


def _claim_data(run: Path, data: TaskData) -> None:
    """Note in a new run what its files hold; refuse to go on with a run whose files have changed since.

    Raises:
        InputError: which files changed.
    """
    noted, now = run / "data.json", json.loads(json.dumps(data.provenance))
    if noted.exists():
        before = json.loads(noted.read_text(encoding="utf-8"))
        changed = sorted(_differences(before, now))
        if changed:
            raise InputError(
                f"{run}: its training began with other data; changed since: {', '.join(changed)} (fingerprints are in "
                f"{noted}). Bring the files back, choose another directory with --run, or delete this one."
            )
    write_json(noted, now)


def _check_metrics(recipe: Recipe, task: Task, data: TaskData) -> None:
    """A wrong metric is told now, not at the first validation.

    Raises:
        InputError: an unknown metric; best = "bleu" where nothing measures BLEU.
    """
    measured = task.evaluate(["."], ["."]) if recipe.training.decode_sentences else {}
    if data.validation and recipe.training.best == "bleu" and "bleu" not in measured:
        raise InputError(
            'training.best = "bleu", but validation does not measure it: that takes a task with outputs, "bleu" in '
            'task.metrics and training.decode_sentences above 0. Or choose best = "loss".'
        )


def _training_files(data: TaskData) -> list[dict[str, Any]]:
    """Each training file with what became of its lines."""
    counted = ("examples", "tokens", "dropped", "unknown", "lines", "predicted")
    return [
        {**entry, **{key: store.metadata[key] for key in counted if key in store.metadata}}
        for entry, (store, _) in zip(data.provenance["train"], data.corpora, strict=True)
    ]


def _read_toml(path: Path) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(path.read_text(encoding="utf-8"))


def _differences(one: Mapping[str, Any], other: Mapping[str, Any], above: str = "") -> list[str]:
    """The dotted keys whose values differ."""
    found = []
    for key in {*one, *other}:
        here, there = one.get(key), other.get(key)
        if isinstance(here, dict) and isinstance(there, dict):
            found += _differences(here, there, f"{above}{key}.")
        elif here != there:
            found.append(f"{above}{key}")
    return found


def _config(recipe: Recipe) -> dict[str, Any]:
    """The recipe without what belongs to this machine."""
    table = recipe.to_table()
    table["data"].pop("root", None)
    return table


def _provenance(recipe: Recipe, data: TaskData) -> dict[str, Any]:
    return {"data": data.provenance, "seed": recipe.training.seed, "versions": library_versions()}
