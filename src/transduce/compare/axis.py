"""The axis of a comparison: what else changes beside the variants, and what each variant scores along it.

    [compare.axis]
    key = "data.train.pairs"           # variants x values x seeds: each is a training of its own
    values = [1000, 2000, 5000]

    [compare.axis]
    tests = { short = 10, long = 60 }  # trained once: the tests of the recipe stand at these places

    [compare.axis]
    lengths = [22, 30, 48]             # trained once: each test in parts, by the length of the reference

Shapes: S sentences.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import mean
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.metrics.paired import mean_interval
from transduce.metrics.tally import Tally
from transduce.tasks.protocols import Dataset

Number = int | float
Figure = dict[str, Any]
TOLD = ("test", "search", "metric", "name", "signature", "lower_is_better", "digits")  # of a figure


class AxisConfig(Config):
    """What changes beside the variants: a key of the recipe, the tests, or the length of the tests' references."""

    name: str = ""
    """What tables and figures call the axis. Unset: the key, or what is counted."""
    key: str = ""
    """A key of the recipe that takes each of the values in turn, such as data.train.pairs."""
    values: tuple[Number, ...] = ()
    """Each variant is trained once with each value and each seed."""
    tests: dict[str, Number] = Field(default_factory=dict)
    """Instead of a key: tests of the recipe by name, each with its place on the axis, such as the length of its
    examples."""
    lengths: tuple[int, ...] = ()
    """Instead of a key: each test is scored in parts. A part holds the references of up to so many tokens that are
    longer than those of the part before."""
    logarithmic: bool = False
    """Whether figures show the logarithm of the axis; crossings are interpolated on it."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [name for name in ("values", "tests", "lengths") if getattr(self, name)]
        if len(given) != 1:
            raise ValueError(f"expected one of key with values, tests, lengths; got {', '.join(given) or 'none'}")
        if bool(self.key) != bool(self.values):
            raise ValueError("key and values: expected both, or neither")
        places = self.places
        if len(places) < 2 or any(one >= other for one, other in pairwise(places)):
            raise ValueError(f"{given[0]}: expected two numbers or more, each above the one before; got {list(places)}")
        if self.logarithmic and places[0] <= 0:
            raise ValueError(f"logarithmic: expected numbers above 0; got {places[0]}")
        return self

    @property
    def places(self) -> tuple[Number, ...]:
        """Along the axis; of lengths the longest of each part."""
        return self.values or tuple(self.tests.values()) or self.lengths

    @property
    def title(self) -> str:
        """What tables and figures call it."""
        return self.name or self.key or ("test" if self.tests else "tokens of the reference")

    @property
    def labels(self) -> list[str]:
        if not self.lengths:
            return [f"{place:,}" for place in self.places]
        firsts = [1, *(length + 1 for length in self.lengths)]
        return [f"{first} to {last}" for first, last in zip(firsts, self.lengths, strict=False)]

    def described(self, figures: list[Figure]) -> dict[str, Any]:
        """The axis with what was found along it, for JSON."""
        told = {"title": self.title, "places": list(self.places), "labels": self.labels}
        return {**told, "logarithmic": self.logarithmic, "figures": figures}


def across_points(axis: AxisConfig, points: Sequence[Mapping[str, Any]]) -> list[Figure]:
    """Of results at the first values, or all: their figures, put side by side."""
    found: dict[tuple[str, ...], Figure] = {}
    for place, results in zip(axis.values, points, strict=False):
        for figure in results["quality"]:
            key = figure["test"], figure["search"], figure["metric"]
            joined = found.setdefault(key, {name: figure[name] for name in TOLD} | {"variants": {}})
            _add(joined, place, figure, results)
    return list(found.values())


def across_tests(axis: AxisConfig, results: Mapping[str, Any]) -> list[Figure]:
    """Of results of tests at places of the axis: the figures of one metric, put side by side."""
    found: dict[tuple[str, ...], Figure] = {}
    ordered = sorted(results["quality"], key=lambda figure: axis.tests.get(figure["test"], 0))
    for figure in ordered:
        if figure["test"] in axis.tests:
            key = figure["search"], figure["metric"]
            joined = found.setdefault(key, {name: figure[name] for name in TOLD} | {"test": "", "variants": {}})
            _add(joined, axis.tests[figure["test"]], figure, results)
    decisive = [(figure["search"], figure["metric"]) for figure in results["quality"]]
    return [found[key] for key in dict.fromkeys(decisive) if key in found]


def across_lengths(
    axis: AxisConfig,
    results: Mapping[str, Any],
    tallies: Mapping[str, Sequence[Mapping[Any, Tally]]],
    tests: Mapping[str, Dataset],
) -> list[Figure]:
    """Each figure in parts by the length of the reference.

    Args:
        tallies: of each variant, of each of its finished trainings, by (test, search, metric).
        tests: the `Dataset` of each test, by name.
    """
    found = []
    for figure in results["quality"]:
        key = figure["test"], figure["search"], figure["metric"]
        length_S = tests[figure["test"]].store.all_lengths("target")
        joined: Figure = {name: figure[name] for name in TOLD} | {"variants": {}}
        for name in figure["variants"]:
            runs = [run[key] for run in tallies[name]]
            joined["variants"][name] = list(_parts(axis, runs, length_S, seeds_of(results, name)))
        if any(joined["variants"].values()):
            found.append(joined)
    return found


def check_lengths(axis: AxisConfig | None, tests: Mapping[str, Dataset]) -> None:
    """Raises InputError where a reference is longer than the last part of the axis goes."""
    longest = {name: int(test.store.all_lengths("target").max()) for name, test in tests.items()}
    problems = [
        f'compare.axis.lengths: test "{name}" has a reference of {length} tokens; the last part ends at '
        f"{axis.lengths[-1]}. Add a part."
        for name, length in longest.items()
        if axis and axis.lengths and length > axis.lengths[-1]
    ]
    if problems:
        raise InputError(problems)


def seeds_of(results: Mapping[str, Any], variant: str) -> list[str]:
    """Of the variant's trainings that are finished."""
    return [str(run["seed"]) for run in results["variants"][variant]["runs"] if run["state"] == "finished"]


def _add(joined: Figure, place: Number, figure: Figure, results: Mapping[str, Any]) -> None:
    for name, value in figure["variants"].items():
        runs = dict(zip(seeds_of(results, name), value["runs"], strict=True))
        point = {"at": place, "value": value["value"], "interval": value["interval"], "runs": runs}
        joined["variants"].setdefault(name, []).append(point)


def _parts(
    axis: AxisConfig, runs: list[Tally], length_S: NDArray[np.int64], seeds: list[str]
) -> Iterator[dict[str, Any]]:
    """Those parts that have an example; none where outputs and lengths are not of the same examples."""
    if not runs or len(runs[0].statistics_SN) != len(length_S):
        return
    before = 0
    for longest in axis.lengths:
        inside_S = (length_S > before) & (length_S <= longest)
        before = longest
        if not inside_S.any():
            continue
        part = [replace(run, statistics_SN=run.statistics_SN[inside_S]) for run in runs]
        values, interval = [run.value for run in part], mean_interval(part)
        yield {
            "at": longest,
            "value": mean(values),
            "interval": list(interval) if interval else None,
            "runs": dict(zip(seeds, values, strict=True)),
            "examples": int(inside_S.sum()),
        }
