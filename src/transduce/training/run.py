"""A training from recipe to model file: open the data, train, choose the best weights, test, write the report."""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from transduce.core.atomic import write_json
from transduce.core.cache import cache_folder
from transduce.core.errors import InputError
from transduce.core.model_file import (
    NAME,
    ModelFile,
    lasting_tensors,
    load_model_file,
    read_model_file,
    save_model_file,
)
from transduce.data.columns.packed import pack
from transduce.data.corpus import name_row
from transduce.data.store import Store
from transduce.kernels.native import kernels
from transduce.pipeline.outline import load_weights, make_task, ngrams_in
from transduce.recipe.recipe import STAGES, Recipe, parse_recipe, unmeasured
from transduce.runtime.event_log import NAME as LOG
from transduce.runtime.event_log import REPORT, Log, SilentLog, read_log
from transduce.runtime.lock import run_lock
from transduce.runtime.process_group import ALONE, ProcessGroup
from transduce.runtime.settings import repeatable
from transduce.search.dispatch import quickest
from transduce.tasks.base import Task, TextTask, task_class
from transduce.tasks.column_cache import cached_columns
from transduce.tasks.protocols import TaskData
from transduce.training.batch_size import with_earlier_batch, with_measured_batch, write_chosen
from transduce.training.beginning import restore_or_start
from transduce.training.calibration import calibration_of
from transduce.training.checkpoint import Checkpoints, TrainingState
from transduce.training.diagnostics import MANY_EPOCHS, PATIENCE, few_draws, many_epochs
from transduce.training.display import Display
from transduce.training.examples import examples, opening_of
from transduce.training.fine_tuning import columns_of_start
from transduce.training.finished import Report, finished_report, note_plan, tell_finished
from transduce.training.held_out_files import write_held_out
from transduce.training.initialization import check_embeddings, device, new_training
from transduce.training.loop import Callbacks, train, why_ended
from transduce.training.model_provenance import config_of, provenance_of
from transduce.training.plots import figures_enabled, write_figures
from transduce.training.precision import resolve_precision
from transduce.training.prefetch import loader
from transduce.training.report import make_report
from transduce.training.run_directory import (
    check_data,
    check_recipe,
    claim,
    claim_data,
    fingerprints_of,
    is_begun,
    make_directory,
    resolved_table,
    with_earlier_draw,
)
from transduce.training.signals import stop_on_signals
from transduce.training.validation import Validator, spread, spread_tallies, target_entropy

NOTED_SENTENCES = 100  # references that a metric's note is looked for in


def run_training(
    recipe: Recipe,
    run: Path,
    display: Display,
    patience: float = 0.0,
    first: Sequence[str] = (),
    group: ProcessGroup = ALONE,
) -> Report:
    """Train `recipe` into the directory `run`, or go on where a stopped training of it stands; returns the report.

    A finished run is left as it is. One that is asked for more training.updates than it was planned for, more minutes
    or more patience goes on.

    Args:
        patience: seconds to wait for another process that trains there, and may only be saving.
        first: of the examples in the model file; behind them come validation sources.
        group: the processes that train together, all of which call this; the first one alone writes and returns more
            than an empty report.

    Raises:
        InputError: the data is wrong; `run` holds a training of another recipe, or somebody trains there; the recipe
            has stages before its own, see `transduce.distillation.pipeline.train_recipe`, or a search.shortlist.
        Interrupted: stopped by a signal; saved.
    """
    recipe = with_earlier_draw(recipe, run)
    _check(recipe)
    report = group.from_first(lambda: _finished(recipe, run, display))
    if report is not None:
        return report
    with contextlib.ExitStack() as stack:
        group.from_first(lambda: _enter(stack, run, recipe, patience))
        return train_in(run, recipe, display, first, group)


def _finished(recipe: Recipe, run: Path, display: Display) -> Report | None:
    """The report of a run that is left as it is, which is told."""
    report = finished_report(run, recipe)
    if report is not None:
        tell_finished(run, recipe, report, display)
    return report


def _enter(stack: contextlib.ExitStack, run: Path, recipe: Recipe, patience: float) -> None:
    make_directory(run, recipe)
    stack.enter_context(run_lock(run, patience))


def train_in(
    run: Path, recipe: Recipe, display: Display, first: Sequence[str] = (), group: ProcessGroup = ALONE
) -> Report:
    """As `run_training`, into a run that is not finished, where the caller is alone."""
    with repeatable(recipe.training.threads):
        return _train_in(run, recipe, display, first, group)


def _train_in(run: Path, recipe: Recipe, display: Display, first: Sequence[str], group: ProcessGroup) -> Report:
    recipe = group.from_first(lambda: _checked(recipe, run))
    task, data = group.first_before_others(lambda: open_task(recipe, display))
    lower_is_better = _check_metrics(recipe, task, data, display)
    recipe = group.from_first(lambda: _claimed(recipe, run, task, data, display))
    trained = replace(new_training(recipe, task, display.tell), group=group)
    if recipe.training.parallel == "fsdp":
        from transduce.training.sharding import check_shardable

        group.from_first(lambda: check_shardable(recipe.training, trained.model))
    task.check_examples(trained.model, data)
    checkpoints = Checkpoints(run, recipe.training.keep)
    trained = restore_or_start(recipe, run, task, data, trained, checkpoints, display)
    for each in few_draws(recipe.training.sampled_words, task.columns["target"].spec.size, recipe.training.updates):
        display.warn(each)
    patient = _patient(recipe, data, display)
    for each in task.advise(data, recipe.search):
        display.warn(each)
    note_plan(recipe, trained.progress, display, read_log(run / LOG))
    if recipe.training.parallel == "fsdp" and group.world > 1:
        from transduce.training.sharding import sharded

        trained = sharded(trained, recipe.training)
    end = _train(patient, run, task, data, trained, checkpoints, display, lower_is_better)
    if trained.group.lockstep:
        from transduce.training.sharding import unsharded

        trained = unsharded(trained, new_training(recipe, task))
    if not group.first:
        return {}
    display.tell(f"Training ended: {end}.")
    return _finish(recipe, run, task, data, trained, checkpoints, display, end, first)


def _patient(recipe: Recipe, data: TaskData, display: Display) -> Recipe:
    """With `PATIENCE`, which is told, where the default of `training.updates` is many epochs and nothing else ends it.

    It follows from recipe and data, so a resumed training has the same.
    """
    config = recipe.training
    if "updates" in config.model_fields_set or config.minutes is not None or config.patience is not None:
        return recipe
    most = config.updates * config.accumulate // MANY_EPOCHS + 1
    batches = sum(1 for _ in islice(data.batches(recipe.batch, config.seed).epoch(0), most))
    told = many_epochs(config.updates, max(1, batches // config.accumulate))
    for each in told:
        display.warn(each)
    return recipe.model_copy(update={"training": config.model_copy(update={"patience": PATIENCE})}) if told else recipe


def _checked(recipe: Recipe, run: Path) -> Recipe:
    recipe = with_earlier_batch(recipe, run)
    check_recipe(run, recipe)
    return recipe


def _claimed(recipe: Recipe, run: Path, task: Task, data: TaskData, display: Display) -> Recipe:
    """With a number for batch.tokens = "auto". The run is claimed first; where that is refused, its notes stay."""
    fingerprints = {**data.provenance, **fingerprints_of(recipe)}
    check_data(run, fingerprints)
    claim(run, recipe)
    claim_data(run, fingerprints)
    write_held_out(recipe, run, data, display)
    if recipe.batch.tokens == "auto":
        recipe = with_measured_batch(recipe, new_training(recipe, task), task, data, display.tell)
        write_chosen(recipe, run)
    return recipe


def finish_training(recipe: Recipe, run: Path, display: Display) -> Report:
    """Model file, report and figures of a training that was stopped, from its best checkpoint so far.

    It goes on afterwards as if nothing had been. Whatever `recipe` says of updates, minutes and patience, those of the
    run are meant.

    Raises:
        InputError: there is no checkpoint, or none of this recipe; the data has changed; somebody trains there.
    """
    recipe = with_earlier_draw(recipe, run)
    _check(recipe)
    check_recipe(run, recipe)
    if not is_begun(run):
        raise InputError(
            f"{run}: there is no checkpoint yet, so there is nothing to finish. Start with `transduce train`."
        )
    make_directory(run, recipe)
    recipe = _as_planned(with_earlier_batch(recipe, run), run)
    report = finished_report(run, recipe)
    if report is not None:
        tell_finished(run, recipe, report, display)
        return report
    with run_lock(run), repeatable(recipe.training.threads):
        task, data = open_task(recipe, display)
        check_data(run, {**data.provenance, **fingerprints_of(recipe)})
        trained, checkpoints = new_training(recipe, task), Checkpoints(run, recipe.training.keep)
        progress = checkpoints.restore_newest(trained, display.warn)
        if progress is None:
            raise InputError(f"{run}: all its checkpoints are damaged, so there is nothing to finish.")
        trained = replace(trained, progress=progress)
        end = why_ended(recipe.training, progress) or (
            f"finished early, after update {progress.update} of {recipe.training.updates}"
        )
        best = progress.best.get("update")
        from_ = f"the best validation so far, after update {best:.0f}" if best is not None else "the newest checkpoint"
        display.tell(f"{run}: {end}. The model is that of {from_}; `transduce train` can go on as before.")
        return _finish(recipe, run, task, data, trained, checkpoints, display, end)


def _as_planned(recipe: Recipe, run: Path) -> Recipe:
    """With the limits that the run has noted."""
    table, noted = recipe.to_table(), (resolved_table(run) or {}).get("training", {})
    limits = ("updates", "minutes", "patience")
    kept = {key: value for key, value in table["training"].items() if key not in limits}
    table["training"] = kept | {key: noted[key] for key in limits if key in noted}
    return parse_recipe(table, recipe.name)


def _check(recipe: Recipe) -> None:
    """Raises InputError for what training does not do."""
    if first := next((section for section in STAGES if getattr(recipe, section)), None):
        raise InputError(f"{recipe.name}: [{first}] comes first; `transduce train` or train_recipe does both.")
    _check_search(recipe)
    check_embeddings(recipe)
    kernels(), figures_enabled()  # a wrong TRANSDUCE_NATIVE or TRANSDUCE_FIGURES is refused before anything is written


def _check_search(recipe: Recipe) -> None:
    """Raises InputError for search settings of which the model, once trained, could make nothing."""
    search, task = recipe.search, task_class(recipe)
    if search.shortlist is not None:
        raise InputError(
            f"{recipe.name}: search.shortlist needs a trained model: leave it out here, run `transduce shortlist` on "
            "the finished run, and give predict --shortlist."
        )
    if search.lm_weight and not (issubclass(task, TextTask) and "source" in task.kinds):
        raise InputError(f"{recipe.name}: search.lm_weight is for models that write text for a source: leave it out.")
    if search.ctc_weight and not getattr(recipe.model, "ctc_weight", 0):
        raise InputError(
            f"{recipe.name}: search.ctc_weight is for a model with CTC on its encoder: leave it out, or set "
            "model.ctc_weight above 0."
        )


def open_task(recipe: Recipe, display: Display) -> tuple[Task, TaskData]:
    """The task with its columns, learnt from the data or those of the model to start from; and its data.

    Raises:
        InputError: see `cached_columns`, `load_model_file` and the task's `open`.
    """
    learn = partial(cached_columns, cache_folder(), task_class(recipe), data=recipe.data)
    start = recipe.training.start
    begun = load_model_file(start, trust_code=None) if start else None
    columns = columns_of_start(begun, recipe, learn) if begun else learn(recipe.tokenizer)
    task = make_task(recipe, columns)
    data = task.open(cache_folder(), display.tell_once)
    for line in data.cut_lines(task.columns.get("source")):
        display.tell_once(line)
    return task, data


def _check_metrics(recipe: Recipe, task: Task, data: TaskData, display: Display) -> bool:
    """Whether less of `training.best` is better. A wrong metric is told now, not at the first validation.

    Raises:
        InputError: an unknown metric; a `best` that nothing measures.
    """
    best, directions = recipe.training.best, {"loss": True, "perplexity": True}
    decoded = min(recipe.training.decode_sentences, NOTED_SENTENCES)
    references = [reference for _, reference in spread(data.validation.texts, decoded)] if data.validation else []
    if data.validation and references:
        counted = spread_tallies(task, data.validation, references)
    else:
        counted = task.tallies([task.any_output], [task.any_output])  # an unknown metric is refused
    for note in dict.fromkeys(tally.note for tally in counted.values() if tally.note):
        display.tell(note)
    if data.validation and recipe.training.decode_sentences:
        directions |= {name: tally.lower_is_better for name, tally in counted.items()}
    if data.validation and best not in directions:
        raise InputError(unmeasured(best, directions))
    _check_kept(recipe, data)
    return directions.get(best, True)


def _check_kept(recipe: Recipe, data: TaskData) -> None:
    """Raises InputError where `training.kept` names no test set, or there is no validation beside it."""
    kept = recipe.training.kept
    if kept is not None and kept not in data.tests:
        names = ", ".join(data.tests) or "none"
        raise InputError(f"training.kept = {kept!r}: expected the name of a test set of [data]; there are: {names}.")
    if kept is not None and data.validation is None:
        raise InputError("training.kept is measured beside a validation: name data.validation, or data.hold_out.")


def _train(
    recipe: Recipe,
    run: Path,
    task: Task,
    data: TaskData,
    trained: TrainingState,
    checkpoints: Checkpoints,
    display: Display,
    lower_is_better: bool,
) -> str:
    config = recipe.training
    batches = data.batches(recipe.batch, config.seed)
    load = loader(batches.stores, task.columns, device())
    precision = resolve_precision(config.precision, device())
    events = read_log(run / LOG)
    cuts = {event["update"]: event["rows"] for event in events if event["event"] == "in_pieces"}
    if trained.group.world > 1:
        cuts = {update: every[trained.group.rank] for update, every in cuts.items()}
    group = trained.group
    log = (
        Log(run, trained.progress.update, config.tensorboard) if group.first else SilentLog()
    )  # forgets what came later

    def keep(shown: list[tuple[str, str, str]]) -> None:
        names = ("source", "output", "reference")
        log.write("samples", trained.progress.update, samples=[dict(zip(names, row, strict=True)) for row in shown])

    validate: Callable[[], dict[str, float]] | None = None
    if data.validation:
        entropy = target_entropy(batches.stores[0], task.columns["target"])
        search = quickest(trained.model, recipe.search)
        kept = data.tests[config.kept] if config.kept else None
        validate = Validator(trained.model, task, data.validation, config, display, entropy, keep, group, search, kept)
        validate = _with_whole_model(validate) if group.lockstep else validate
    name = partial(_name, batches.stores, data)
    callbacks = Callbacks(validate, display.show, display.warn, name, lower_is_better)
    try:
        with (
            stop_on_signals() as stop,
            display.open(config.updates, trained.progress, config.minutes, trained.objective.unit),
        ):
            return train(
                config, trained, batches, load, checkpoints, log, callbacks, stop, precision, cuts=cuts, plans=events
            )
    finally:
        log.close()


def _with_whole_model(validate: Validator) -> Callable[[], dict[str, float]]:
    from transduce.training.sharding import gathered_weights

    def validated() -> dict[str, float]:
        with gathered_weights(validate.model):
            return validate()

    return validated


def _name(stores: list[Store], data: TaskData, store: int, row: int) -> str:
    return name_row(stores[store], row, data.provenance["train"])


def _finish(
    recipe: Recipe,
    run: Path,
    task: Task,
    data: TaskData,
    trained: TrainingState,
    checkpoints: Checkpoints,
    display: Display,
    end: str,
    first: Sequence[str] = (),
) -> Report:
    """The best weights (without validation, the averaged ones) into the model file; report and figures beside it."""
    begun = time.monotonic()
    progress, model = trained.progress, trained.model
    if progress.best:
        load_weights(model, checkpoints.load_best(progress))
    else:
        load_weights(model, trained.average.tensors() or lasting_tensors(model))
    if recipe.search.lm_weight:
        assert isinstance(task, TextTask)
        task.ngrams = task.count_ngrams(data, display.tell)
    weights = {name: weight.detach() for name, weight in lasting_tensors(model).items()}
    (tokenizers, columns), provenance = pack(task.columns), provenance_of(recipe, task, data, progress)
    provenance["examples"] = examples(task, data.validation, recipe.training.examples, first)
    if calibrated := calibration_of(model, task, data.validation, recipe.search):
        provenance["confidence"] = calibrated.to_dict()
    if opens := opening_of(model, task, provenance["examples"], recipe.search):
        provenance["opening"] = opens
    file = ModelFile(
        weights, config_of(recipe), tokenizers, provenance, progress.best, columns=columns, ngrams=ngrams_in(task)
    )
    save_model_file(run / NAME, replace(file, lexicon=_lexicon(run / NAME, tokenizers)))
    precision = resolve_precision(recipe.training.precision, device())
    report = make_report(recipe, run / NAME, model, task, data, progress, precision, end, display.tell)
    if figures_enabled():
        write_figures(run, model, task, data, report["tests"], display.tell)
    report["finishing_seconds"] = round(time.monotonic() - begun, 1)
    write_json(run / REPORT, report)
    return report


def _lexicon(path: Path, tokenizers: dict[str, str]) -> Any:
    """The shortlist of the model file that a new one replaces: it is of the data and the tokenizers, not of weights."""
    try:
        before = read_model_file(path)
    except InputError:
        return None
    return before.lexicon if before.tokenizers == tokenizers else None
