"""Run one part of a comparison, a training or a measurement of costs, in its own process with its own memory.

`python -m transduce.compare.worker JOB.json`, started by `transduce.compare.run`; see
`transduce.runtime.child_process`.
"""

import importlib
import time
from pathlib import Path
from typing import Any

import psutil

from transduce.compare.config import folder_name
from transduce.compare.growth import measure_growth
from transduce.compare.operations import operations_a_token
from transduce.core.atomic import write_json, write_text
from transduce.core.bounded_file import read_table
from transduce.core.errors import TransduceError
from transduce.data.collate import units_of_each
from transduce.data.store import Store
from transduce.inference.likelihood import dataset_log_probabilities
from transduce.pipeline.outline import make_model
from transduce.pipeline.pipeline import Pipeline, load
from transduce.recipe.recipe import Recipe, parse_recipe
from transduce.runtime.allocator import keep_freed_memory
from transduce.runtime.child_process import answer
from transduce.runtime.console import make_console
from transduce.runtime.environment import peak_memory_bytes
from transduce.runtime.settings import repeatable, threads
from transduce.search.settings import Search
from transduce.tasks.base import Task
from transduce.training.display import Display
from transduce.training.run import open_task, run_training

MEASURED = "measured.json"
FAILED = "failed.txt"
MEMORY = "memory.json"
IMPORTED_LATER = ("torch._dynamo", "sacrebleu", "sacremoses", "pyarrow.ipc", "tokenizers", "tomli_w")  # by any training


def train(arguments: dict[str, Any]) -> None:
    """Train, or go on; then decode the tests by every search. `measured.json` in the run directory is the last step."""
    run, display = Path(arguments["run"]), Display(make_console())
    run.mkdir(parents=True, exist_ok=True)
    (run / FAILED).unlink(missing_ok=True)
    for name in IMPORTED_LATER:
        importlib.import_module(name)
    keep_freed_memory()
    before = psutil.Process().memory_info().rss
    recipe = parse_recipe(arguments["recipe"], arguments["where"])
    with repeatable(recipe.training.threads):  # so that decoding is measured under the settings of the training
        _train(arguments, recipe, run, display, before)


def _train(arguments: dict[str, Any], recipe: Recipe, run: Path, display: Display, before: int) -> None:
    try:
        report = run_training(recipe, run, display)
    except TransduceError as error:
        _note_memory(run, before, peak_memory_bytes())
        write_text(run / FAILED, str(error) + "\n")
        raise
    memory = _note_memory(run, before, report["training"]["peak_memory_bytes"])
    tests = measure_tests(
        load(run, trust_code=None), parse_recipe(arguments["tests"], arguments["where"]), arguments, run, display
    )
    figures = {"memory": memory, "model": report["model"], "training": report["training"], "ended": report["ended"]}
    settings = {
        "recipe": arguments["recipe"],
        "searches": arguments["searches"],
        "decode_batch": arguments["decode_batch"],
    }
    write_json(run / MEASURED, {**settings, **figures, "tests": tests, "environment": report["environment"]})


def measure_tests(
    pipeline: Pipeline, recipe: Recipe, arguments: dict[str, Any], run: Path, display: Display
) -> dict[str, Any]:
    """For every test: the likelihood of each example, and the outputs of each search with the time they took."""
    task, data = open_task(recipe, display)
    found: dict[str, Any] = {}
    for name, dataset in data.tests.items():
        found[name] = {"likelihood": example_likelihoods(pipeline, task, dataset.store), "decoding": {}}
        sources = [source for source, _ in dataset.texts]
        for search, keys in arguments["searches"].items() if sources else ():
            start = time.monotonic()
            outputs = task.predictor.predict(
                pipeline.model, sources, Search.model_validate(keys), arguments["decode_batch"]
            )
            seconds = time.monotonic() - start
            tokens = sum(len(each.token_log_probabilities) for each in outputs)
            path = run / "outputs" / f"{folder_name(name)}.{search}.txt"
            path.parent.mkdir(exist_ok=True)
            write_text(path, "".join(each.text.replace("\n", " ") + "\n" for each in outputs))
            found[name]["decoding"][search] = {"outputs": path.name, "seconds": seconds, "tokens": tokens}
            display.tell(f"{name}, {search}: {len(outputs)} sentences in {seconds:.1f} s.")
    return found


def example_likelihoods(pipeline: Pipeline, task: Task, store: Store) -> list[list[float]]:
    """[log-probability in nats, target tokens] of every example, in an order that is the same for every model."""
    found = []
    for batch, each_BN in dataset_log_probabilities(pipeline.model, task, store):
        nats_B = each_BN.sum(-1)
        found += [[float(nats), int(units)] for nats, units in zip(nats_B, units_of_each(batch.targets), strict=True)]
    return found


def costs(arguments: dict[str, Any]) -> None:
    """What each of the models costs, one file each."""
    display = Display(make_console())
    for each in arguments["models"]:
        write_json(each["into"], {"recipe": each["recipe"], "lengths": each["lengths"], **cost(each, display)})
        display.tell(f"  {each['where']}: measured")


def cost(arguments: dict[str, Any], display: Display) -> dict[str, Any]:
    """A model's parameters, operations of a target token in training, and growth with length."""
    recipe = parse_recipe(arguments["recipe"], arguments["where"])
    with threads(recipe.training.threads):
        task, data = open_task(recipe, display)
        model = make_model(recipe, task)
        batches = data.batches(recipe.batch, recipe.training.seed)
        return {
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "operations_a_token": operations_a_token(recipe, model, task, batches),
            "growth": measure_growth(recipe, arguments["lengths"]),
        }


def _note_memory(run: Path, before: int, peak: int) -> dict[str, int]:
    """The largest of all processes that worked on this training: the last of them may have had little to do."""
    now = {"peak_bytes": peak, "training_bytes": peak - before}
    path = run / MEMORY
    if path.exists():
        earlier = read_table(path, "Delete it: memory is measured anew.")
        now = {key: max(value, earlier[key]) for key, value in now.items()}
    write_json(path, now)
    return now


if __name__ == "__main__":
    answer({"train": train, "costs": costs})
