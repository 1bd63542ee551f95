"""Turn the figures of all trainings into compare.json: quality with intervals, speed, memory, growth, curves.

Quality is the mean over a variant's trainings. Its interval, and its difference to the first variant, come from the
paired bootstrap over sentences and trainings (`transduce.metrics.paired`).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any, NamedTuple, Self

import numpy as np

from transduce.compare.axis import across_lengths, across_points, across_tests
from transduce.compare.complexity import COMPLEXITIES
from transduce.compare.config import ComparisonConfig
from transduce.compare.worker import FAILED, MEASURED
from transduce.core.bounded_file import read_table
from transduce.evaluation.evaluate import verdict
from transduce.inference.likelihood import signature
from transduce.metrics.paired import mean_interval, paired_bootstrap
from transduce.metrics.score import decimals
from transduce.metrics.tally import Tally
from transduce.runtime.environment import library_versions, machine
from transduce.runtime.event_log import read_log
from transduce.tasks.base import Task
from transduce.tasks.protocols import TaskData

AGAIN = "Delete it, and run the same command: it is measured again."


class Costs(NamedTuple):
    """The costs of a variant, measured before training; see `transduce.compare.worker.cost`."""

    parameters: int
    operations_a_token: float
    growth: dict[str, Any]

    @classmethod
    def read(cls, path: Path) -> Self:
        """What was measured into `path`."""
        told = read_table(path, AGAIN)
        return cls(told["parameters"], told["operations_a_token"], told["growth"])


@dataclass(frozen=True)
class FinishedRun:
    """The results of a training.

    measured: None if it did not end; `failed` may then hold the reason.
    events: of its log.
    """

    seed: int
    run: Path
    measured: dict[str, Any] | None
    failed: str
    events: list[dict[str, Any]]

    @classmethod
    def read(cls, seed: int, run: Path) -> Self:
        """From its run directory, which may not be there yet."""
        failed = (run / FAILED).read_text(encoding="utf-8").strip() if (run / FAILED).exists() else ""
        path = run / MEASURED
        measured = read_table(path, AGAIN) if path.exists() and not failed else None
        return cls(seed, run, measured, failed, read_log(run / "log.jsonl"))


class Key(NamedTuple):
    """Identifies a figure: its test, its search ("" for likelihood) and its metric."""

    test: str
    search: str
    metric: str


def make_results(
    comparison: ComparisonConfig,
    task: Task,
    data: TaskData,
    finished: dict[str, list[FinishedRun]],
    costs: dict[str, Costs],
) -> dict[str, Any]:
    """All results, ready for JSON."""
    tallies = {
        name: [_tallies(each, comparison, task, data) for each in runs if each.measured]
        for name, runs in finished.items()
    }
    results = {
        "name": comparison.name,
        "budget": {"text": comparison.budget.text, "amount": comparison.budget.amount, "unit": comparison.budget.unit},
        "seeds": list(comparison.config.seeds),
        "baseline": next(iter(comparison.variants)),
        "searches": comparison.search_tables(next(iter(comparison.variants))),
        "decode_batch": comparison.config.decode_batch,
        "recipe": comparison.any_recipe.to_table(),
        "quality": _quality(comparison, tallies),
        "variants": {name: _variant(comparison, name, finished[name], costs[name]) for name in comparison.variants},
        "complexity": [row._asdict() for row in COMPLEXITIES],
        "data": data.provenance,
        "environment": {"machine": machine(), "versions": library_versions()},
    }
    axis = comparison.config.axis
    if axis is None:
        return results
    along = across_tests(axis, results) if axis.tests else across_lengths(axis, results, tallies, data.tests)
    return results | {"axis": axis.described(along)}


def joined_results(comparison: ComparisonConfig, points: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The results at all values of the axis, each with its folder, put side by side."""
    axis, last = comparison.config.axis, [*points.values()][-1]
    assert axis is not None
    told = {key: last[key] for key in ("name", "budget", "seeds", "baseline", "environment")}
    folders = [{"at": value, "folder": folder} for value, folder in zip(axis.values, points, strict=False)]
    told["name"] = comparison.name
    return {**told, "axis": axis.described(across_points(axis, [*points.values()])), "points": folders}


def _tallies(finished: FinishedRun, comparison: ComparisonConfig, task: Task, data: TaskData) -> dict[Key, Tally]:
    """One training's counts, figure by figure."""
    assert finished.measured
    found: dict[Key, Tally] = {}
    for test, measured in finished.measured["tests"].items():
        references, language = data.tests[test].references, data.tests[test].language
        for search in comparison.config.searches if references else ():
            path = finished.run / "outputs" / measured["decoding"][search]["outputs"]
            outputs = path.read_text(encoding="utf-8").split("\n")[:-1]
            for metric, tally in task.tallies(outputs, references, comparison.metrics, language).items():
                found[Key(test, search, metric)] = tally
        found[Key(test, "", "perplexity")] = _perplexity(measured["likelihood"], task)
        for name, tally in task.costs([nats for nats, _ in measured["likelihood"]]).items():
            found[Key(test, "", name)] = tally
    return found


def _perplexity(likelihood: Sequence[Sequence[float]], task: Task) -> Tally:
    rows_S2 = np.array(likelihood)
    signed = f"{signature(task.columns['target'].likelihood_unit)}|context:{task.context}"
    return Tally("perplexity", signed, rows_S2, _exponential_mean, lower_is_better=True)


def _exponential_mean(sums_2: Any) -> float:
    return math.exp(min(-float(sums_2[0]) / float(sums_2[1]), 700.0))


def _quality(comparison: ComparisonConfig, tallies: dict[str, list[dict[Key, Tally]]]) -> list[dict[str, Any]]:
    """One entry a figure, with every variant's value in it; what decides comes first."""
    keys = dict.fromkeys(key for runs in tallies.values() for run in runs for key in run)
    decisive = list(comparison.config.searches)[-1]
    ordered = sorted(keys, key=lambda key: (key.search != decisive, key.search == ""))
    return [_figure(key, {name: [run[key] for run in runs] for name, runs in tallies.items()}) for key in ordered]


def _figure(key: Key, systems: dict[str, list[Tally]]) -> dict[str, Any]:
    first = next(iter(systems))
    any_tally = next(tally for runs in systems.values() for tally in runs)
    digits = 2 if key.metric == "perplexity" else decimals(any_tally.signature)
    return {
        **key._asdict(),
        "name": any_tally.name,
        "signature": any_tally.signature,
        "lower_is_better": any_tally.lower_is_better,
        "digits": digits,
        **({"note": any_tally.note} if any_tally.note else {}),
        "variants": {
            name: _value(runs) | _against(first, systems[first], name, runs, digits)
            for name, runs in systems.items()
            if runs
        },
    }


def _value(runs: list[Tally]) -> dict[str, Any]:
    interval = mean_interval(runs)
    values = [tally.value for tally in runs]
    return {"value": mean(values), "interval": list(interval) if interval else None, "runs": values}


def _against(first: str, base: list[Tally], name: str, runs: list[Tally], digits: int) -> dict[str, Any]:
    if name == first or not base:
        return {}
    difference = paired_bootstrap(base, runs)
    said = verdict(first, name, runs[0].name, difference, digits)
    return {"difference": {**difference.to_dict(), "verdict": said}}


def _variant(comparison: ComparisonConfig, name: str, finished: list[FinishedRun], costs: Costs) -> dict[str, Any]:
    recipe = comparison.variants[name]
    done = [each.measured for each in finished if each.measured]
    peaks = [each["memory"]["peak_bytes"] for each in done if each["memory"]["peak_bytes"]]
    grown = [each["memory"]["training_bytes"] for each in done if each["memory"]["training_bytes"]]
    return {
        "kind": recipe.model.kind,  # type: ignore[attr-defined]
        "encoder": _encoder(recipe.model),
        "changes": comparison.changes[name],
        "searches": comparison.search_tables(name),
        "parameters": costs.parameters,
        "operations_a_token": costs.operations_a_token,
        "growth": costs.growth,
        "training_tokens_a_second": _mean([speed for each in finished if (speed := _training_speed(each))]),
        "decoding_tokens_a_second": _decoding_speed(comparison, done),
        "memory": {"peak_bytes": max(peaks, default=None), "training_bytes": max(grown, default=None)},
        "runs": [_run(each, costs) for each in finished],
    }


def _encoder(model: Any) -> str:
    """What the model is built from, where its kind does not say it."""
    flat = "flat" if getattr(model, "attention", "") == "flat" else ""
    return getattr(model, "encoder", getattr(model, "network", flat))


def _run(finished: FinishedRun, costs: Costs) -> dict[str, Any]:
    told: dict[str, Any] = {"seed": finished.seed, "directory": finished.run.name, "curve": _curve(finished, costs)}
    if finished.measured is None:
        return {**told, "state": "failed" if finished.failed else "waiting", "failed": finished.failed}
    training = finished.measured["training"]
    return {
        **told,
        "state": "finished",
        "updates": training["updates"],
        "target_tokens": training["target_tokens"],
        "minutes": training["seconds"] / 60,
        "operations": training["target_tokens"] * costs.operations_a_token,
        "ended": finished.measured["ended"],
        "sha256": finished.measured["model"]["sha256"],
        "machine": finished.measured["environment"]["machine"],
    }


def _curve(finished: FinishedRun, costs: Costs) -> list[dict[str, float]]:
    """Every validation with what had been spent by then."""
    return [
        {
            "updates": event["update"],
            "minutes": event["seconds"] / 60,
            "tokens": event["tokens"],
            "flops": event["tokens"] * costs.operations_a_token,
            "loss": event["loss"],
        }
        for event in finished.events
        if event["event"] == "validation"
    ]


def _training_speed(finished: FinishedRun) -> float | None:
    """Median over the log's lines, in target tokens a second, validations left out; None without a line."""
    speeds = [event["tokens_per_second"] for event in finished.events if event["event"] == "train"]
    return median(speeds) if speeds else None


def _decoding_speed(comparison: ComparisonConfig, done: list[dict[str, Any]]) -> dict[str, float | None]:
    """By search: target tokens a second, over all tests."""
    found = {}
    for search in comparison.config.searches:
        timed = [test["decoding"][search] for each in done for test in each["tests"].values() if test["decoding"]]
        seconds = sum(each["seconds"] for each in timed)
        found[search] = sum(each["tokens"] for each in timed) / seconds if seconds else None
    return found


def _mean(values: list[float]) -> float | None:
    return mean(values) if values else None
