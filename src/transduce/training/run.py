"""A training from recipe to model file: open the data, train, choose the best weights, test, write the report."""

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

from transduce.allocator import keep_freed_memory
from transduce.atomic import write_json
from transduce.data.batches import Batches
from transduce.data.corpus import name_row
from transduce.data.files import fingerprint
from transduce.data.store import Store
from transduce.environment import library_versions
from transduce.errors import InputError
from transduce.inputs import batches_of
from transduce.model_file import NAME, ModelFile, find_model_file, lasting_tensors, load_model_file, save_model_file
from transduce.names import resolve
from transduce.pipeline import load_weights, make_task, pack_tokenizers, unpack_tokenizers
from transduce.recipe import Recipe
from transduce.tasks.protocols import Task, TaskData
from transduce.tasks.tokenizers import cached_tokenizers
from transduce.training.batch_size import with_earlier_batch, with_measured_batch, write_chosen
from transduce.training.checkpoint import Checkpoints, Trained
from transduce.training.display import Display
from transduce.training.examples import examples
from transduce.training.figures import write_figures
from transduce.training.log import NAME as LOG
from transduce.training.log import Log, read_log
from transduce.training.loop import Hands, train
from transduce.training.precision import resolve_precision
from transduce.training.report import make_report
from transduce.training.run_directory import claim, claim_data
from transduce.training.signals import stop_on_signals
from transduce.training.start import check_embeddings, count_embeddings, device, new_training
from transduce.training.validation import Validator, target_entropy


def cache_folder() -> Path:
    """`TRANSDUCE_CACHE`, or a folder of the user's."""
    return Path(os.environ.get("TRANSDUCE_CACHE", Path.home() / ".cache" / "transduce"))


def run_training(recipe: Recipe, run: Path, display: Display, first: Sequence[str] = ()) -> dict[str, Any]:
    """Train `recipe` into the directory `run`, or go on where a stopped training of it stands; returns the report.

    Args:
        first: of the examples in the model file; behind them come validation sources.

    Raises:
        InputError: the data is wrong; `run` holds a training of another recipe; the recipe has [teachers], which
            `transduce.taught.train_taught` trains first, or a search.shortlist.
        Interrupted: stopped by a signal; saved.
    """
    if recipe.teachers:
        raise InputError(f"{recipe.name}: [teachers] come first, which is done by `transduce train` or train_taught.")
    if recipe.search.shortlist is not None:
        raise InputError(
            f"{recipe.name}: search.shortlist is of words that are found once the model is trained: leave it out, then "
            "`transduce shortlist` the run, and ask predict for it."
        )
    check_embeddings(recipe)
    keep_freed_memory()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # cuBLAS repeats itself only with this
    torch.use_deterministic_algorithms(True)
    # Costs 7 % of a step, and nothing here reads memory that was not written.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    if recipe.training.threads:
        torch.set_num_threads(recipe.training.threads)
    recipe = with_earlier_batch(recipe, run)
    claim(run, recipe)
    task, data = open_task(recipe, display)
    _check_metrics(recipe, task, data)
    claim_data(run, data)
    if recipe.batch.tokens == "auto":
        recipe = with_measured_batch(recipe, new_training(recipe, task), task, data, display.tell)
        write_chosen(recipe, run)
    trained = new_training(recipe, task, display.tell)
    checkpoints = Checkpoints(run, recipe.training.keep)
    progress = checkpoints.restore_newest(trained, display.warn)
    if progress:
        trained = Trained(trained.model, trained.optimizers, trained.average, progress)
        display.tell(f"Going on after update {progress.update}.")
    elif recipe.training.embeddings == "cooccurrence":
        count_embeddings(trained, recipe, task, data, display)
    end = _train(recipe, run, task, data, trained, checkpoints, display)
    display.tell(f"Training ended: {end}.")
    return _finish(recipe, run, task, data, trained, checkpoints, display, end, first)


def open_task(recipe: Recipe, display: Display) -> tuple[Task, TaskData]:
    """The task with its tokenizers, learnt from the data or those of the model to start from; and its data."""
    if recipe.training.start:
        tokenizers = unpack_tokenizers(load_model_file(recipe.training.start).tokenizers)
    else:
        kind = resolve("tasks", recipe.task.kind)  # type: ignore[attr-defined]
        tokenizers = cached_tokenizers(cache_folder(), kind, recipe.tokenizer, recipe.data)
    task = make_task(recipe, tokenizers)
    return task, task.open(cache_folder(), display.tell)


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


def _train(
    recipe: Recipe, run: Path, task: Task, data: TaskData, trained: Trained, checkpoints: Checkpoints, display: Display
) -> str:
    config = recipe.training
    batches = Batches(data.corpora, recipe.batch, config.seed)
    load = batches_of(batches.stores, task, device())
    precision = resolve_precision(config.precision, device())
    cuts = {event["update"]: event["rows"] for event in read_log(run / LOG) if event["event"] == "in_pieces"}
    log = Log(run, trained.progress.update, config.tensorboard)  # which forgets what came after that update

    def keep(shown: list[tuple[str, str, str]]) -> None:
        names = ("source", "output", "reference")
        log.write("samples", trained.progress.update, samples=[dict(zip(names, row, strict=True)) for row in shown])

    validate = None
    if data.validation:
        entropy = target_entropy(batches.stores[0])
        validate = Validator(trained.model, task, data.validation, config, display, entropy, keep)
    name = partial(_name, batches.stores, data)
    hands = Hands(validate, display.show, display.warn, name)
    try:
        with stop_on_signals() as stop, display.open(config.updates, trained.progress.update):
            return train(config, trained, batches, load, checkpoints, log, hands, stop, precision, cuts=cuts)
    finally:
        log.close()


def _name(stores: list[Store], data: TaskData, store: int, row: int) -> str:
    return name_row(stores[store], row, data.provenance["train"])


def _finish(
    recipe: Recipe,
    run: Path,
    task: Task,
    data: TaskData,
    trained: Trained,
    checkpoints: Checkpoints,
    display: Display,
    end: str,
    first: Sequence[str],
) -> dict[str, Any]:
    """The best weights (without validation, the averaged ones) into the model file; report and figures beside it."""
    progress, model = trained.progress, trained.model
    if progress.best:
        load_weights(model, checkpoints.load_best(progress))
    else:
        load_weights(model, trained.average.tensors() or lasting_tensors(model))
    weights = {name: weight.detach() for name, weight in lasting_tensors(model).items()}
    tokenizers, provenance = pack_tokenizers(task.tokenizers), _provenance(recipe, data)
    provenance["examples"] = examples(task, data.validation, recipe.training.examples, first)
    save_model_file(run / NAME, ModelFile(weights, _config(recipe), tokenizers, provenance, progress.best))
    precision = resolve_precision(recipe.training.precision, device())
    report = make_report(recipe, run / NAME, model, task, data, progress, precision, end)
    write_figures(run, model, task, data, display.tell)
    write_json(run / "report.json", report)
    return report


def _config(recipe: Recipe) -> dict[str, Any]:
    """The recipe without what belongs to this machine."""
    table = recipe.to_table()
    table["data"].pop("root", None)
    table["training"].pop("start", None)
    return table


def _provenance(recipe: Recipe, data: TaskData) -> dict[str, Any]:
    started = {"start": fingerprint(find_model_file(recipe.training.start))} if recipe.training.start else {}
    return {"data": data.provenance, "seed": recipe.training.seed, "versions": library_versions(), **started}
