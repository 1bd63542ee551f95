"""Comparisons along an axis: a key of the recipe, the tests, or the length of their references."""

import json
from pathlib import Path
from statistics import mean
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from rich.console import Console

from compared import measured_briefly, without_curves, work
from transduce.compare import run as comparing
from transduce.compare.axis import AxisConfig
from transduce.compare.chart import Band, band_chart
from transduce.compare.config import load_comparison
from transduce.compare.run import run_comparison
from transduce.compare.show import show
from transduce.core.errors import InputError
from transduce.metrics.bleu import bleu_tally
from transduce.metrics.paired import mean_interval
from transduce.training.display import Display

QUIET = Display(Console(quiet=True))
COMMON = 'base = "tiny.toml"\n[compare]\nbudget = "300tok"\nlengths = [4, 8]\nseeds = [1, 2]\n'
GREEDY = '[compare.searches]\ngreedy = { method = "greedy" }\n'
TWO = '[variants.pre]\n[variants."post | norm"]\nmodel = { norm = "post" }\n'
PAIRS = '[compare.axis]\nname = "pairs"\nkey = "data.train.pairs"\nvalues = [20, 60]\nlogarithmic = true\n'


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is done, in this process."""
    done: list[str] = []

    def noted(job: dict[str, Any], path: Path, lock: int | None) -> int:
        done.append(job["where"])
        return work(job, path, lock)

    measured_briefly(monkeypatch)
    without_curves(monkeypatch)
    monkeypatch.setattr(comparing, "_run_worker", noted)
    return done


def written(tiny_recipe: Path, text: str) -> Path:
    path = tiny_recipe.with_name("along.toml")
    path.write_text(text)
    return path


def problem(tiny_recipe: Path, axis: str) -> str:
    with pytest.raises(InputError) as caught:
        load_comparison(written(tiny_recipe, COMMON + axis + TWO))
    return str(caught.value)


def test_each_value_has_its_own_recipes(tiny_recipe: Path) -> None:
    comparison = load_comparison(written(tiny_recipe, COMMON + PAIRS + TWO), ["training.clip=2"])
    assert list(comparison.points) == [20, 60]
    for value, point in comparison.points.items():
        assert point.name == f"along, pairs = {value}"
        assert not point.points
        for recipe in point.variants.values():
            assert [files.pairs for files in recipe.data.train] == [value]  # type: ignore[attr-defined]
            assert recipe.training.clip == 2
    assert comparison.name == "along"
    sizes = load_comparison(
        written(tiny_recipe, COMMON + '[compare.axis]\nkey = "model.d_model"\nvalues = [8, 16]\n' + TWO)
    )
    assert [each.variants["pre"].model.d_model for each in sizes.points.values()] == [8, 16]  # type: ignore[attr-defined]
    assert sizes.config.axis
    assert sizes.config.axis.title == "model.d_model"


@pytest.mark.parametrize(
    ("axis", "said"),
    [
        ("[compare.axis]\n", "compare.axis: expected one of key with values, tests, lengths; got none."),
        ('key = "a"\n', "expected one of key with values, tests, lengths; got none"),
        ("values = [1, 2]\n", "key and values: expected both, or neither"),
        ('key = "a"\nvalues = [1, 2]\nlengths = [1, 2]\n', "got values, lengths"),
        ("lengths = [4]\n", "lengths: expected two numbers or more, each above the one before; got [4]"),
        ("lengths = [4, 4]\n", "each above the one before; got [4, 4]"),
        ('key = "training.clip"\nvalues = [0, 1]\nlogarithmic = true\n', "expected numbers above 0; got 0"),
        ('key = "training.clip"\nvalues = ["a", "b"]\n', "compare.axis.values.0"),
        ('key = "training.cilp"\nvalues = [0, 1]\n', 'unknown key training.cilp. Did you mean "clip"?'),
        ('key = "training.updates.x"\nvalues = [0, 1]\n', "compare.axis.key: training.updates is not a section."),
        ("tests = { hold_out = 1, held_out = 2 }\n", 'data.test has no "hold_out". Did you mean "held_out"?'),
        ("vlaues = [1]\n", 'unknown key compare.axis.vlaues. Did you mean "values"?'),
    ],
)
def test_what_is_wrong_is_said(tiny_recipe: Path, axis: str, said: str) -> None:
    assert said in problem(tiny_recipe, "[compare.axis]\n" * ("[" not in axis[:1]) + axis)


def test_variants_along_a_key_are_trained_at_each_value_and_what_is_finished_is_kept(
    tiny_recipe: Path, tiny_corpus: Path, tmp_path: Path, jobs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = written(tiny_recipe, COMMON + GREEDY + PAIRS + TWO), tmp_path / "run"
    trainings = [f"{name}, seed {seed}" for seed in (1, 2) for name in ("pre", "post | norm")]
    real = comparing._run_worker

    def stopped(job: dict[str, Any], path: Path, lock: int | None) -> int:
        if len(jobs) == 7:  # in the middle of the second value
            raise KeyboardInterrupt
        return real(job, path, lock)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(comparing, "_run_worker", stopped)
        run_comparison(load_comparison(path), folder, QUIET)
    assert [each["at"] for each in told(folder)["points"]] == [20]  # what there is, is told
    jobs.clear()
    results = run_comparison(load_comparison(path), folder, QUIET)
    assert jobs == trainings[1:]
    assert results == told(folder)
    assert results["points"] == [{"at": 20, "folder": "pairs-20"}, {"at": 60, "folder": "pairs-60"}]
    check_figures(results, folder, tiny_corpus)
    check_pages(results, folder)


def told(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "compare.json").read_text())
    return found


def check_figures(results: dict[str, Any], folder: Path, corpus: Path) -> None:
    """Against the outputs of each training."""
    references = (corpus / "test.words").read_text().splitlines()
    bleu = results["axis"]["figures"][0]
    assert (bleu["search"], bleu["metric"], bleu["test"]) == ("greedy", "bleu", "held_out")
    for variant, name in (("pre", "pre"), ("post | norm", "post-norm")):
        points = bleu["variants"][variant]
        assert [point["at"] for point in points] == [20, 60]
        for point in points:
            runs = [folder / f"pairs-{point['at']}" / f"{name}-seed{seed}" for seed in (1, 2)]
            outputs = [(run / "outputs" / "held_out.greedy.txt").read_text().split("\n")[:-1] for run in runs]
            tallies = [bleu_tally(each, references) for each in outputs]
            assert point["runs"] == {str(seed): tally.value for seed, tally in enumerate(tallies, 1)}
            assert point["value"] == pytest.approx(mean(point["runs"].values()))
            assert point["interval"] == list(mean_interval(tallies) or ())
            recipe = json.loads((runs[0] / "measured.json").read_text())["recipe"]
            assert recipe["data"]["train"][0]["pairs"] == point["at"]
    assert {figure["metric"] for figure in results["axis"]["figures"]} == {"bleu", "exact_match", "perplexity"}


def check_pages(results: dict[str, Any], folder: Path) -> None:
    """Table, sentence and chart, on the page and on the terminal."""
    markdown, page = (folder / "compare.md").read_text(), (folder / "compare.html").read_text()
    with (folder / "shown.txt").open("w") as file:
        show(results, Console(file=file))
    shown = (folder / "shown.txt").read_text()
    point = results["axis"]["figures"][0]["variants"]["pre"][1]
    value = "{:.2f} [{:.2f}, {:.2f}]".format(point["value"], *point["interval"])
    for text in (markdown, page, shown):
        assert value in text
        assert "BLEU greedy held_out by pairs" in text
        assert "Seed by seed, they cross" in text
    assert "| variant | 20 | 60 |" in markdown
    assert "pairs-60/compare.html" in markdown
    assert (folder / "pairs-60" / "compare.html").exists()
    assert "![axis-held_out](figures/axis-held_out.svg)" in markdown
    drawn = {element.text for element in ElementTree.parse(folder / "figures" / "axis-held_out.svg").iter()}
    assert {"pre", "post | norm", "20", "60", "pairs"} <= drawn
    assert page.count("<img ") == 1


def test_tests_that_stand_on_the_axis_are_put_side_by_side(
    tiny_recipe: Path, tiny_corpus: Path, tmp_path: Path, jobs: list[str]
) -> None:
    tests = '[data.test]\nlong = { source = "valid.digits", target = "valid.words" }\n'
    axis = '[compare.axis]\nname = "difficulty"\ntests = { held_out = 3, long = 7.5 }\n'
    results = run_comparison(
        load_comparison(written(tiny_recipe, COMMON + GREEDY + axis + tests + TWO)), tmp_path / "run", QUIET
    )
    figures = {(each["test"], each["search"], each["metric"]): each["variants"] for each in results["quality"]}
    along = results["axis"]["figures"]
    assert [(each["search"], each["metric"]) for each in along] == [
        ("greedy", "bleu"), ("greedy", "exact_match"), ("", "perplexity")
    ]  # fmt: skip
    for figure in along:
        for name, points in figure["variants"].items():
            assert [point["at"] for point in points] == [3, 7.5]
            for point, test in zip(points, ("held_out", "long"), strict=True):
                value = figures[test, figure["search"], figure["metric"]][name]
                assert (point["value"], point["interval"]) == (value["value"], value["interval"])
                assert list(point["runs"].values()) == value["runs"]
    markdown = (tmp_path / "run" / "compare.md").read_text()
    assert markdown.index("## BLEU greedy by difficulty") < markdown.index("## Quality, speed, memory")
    assert "| variant | 3 | 7.5 |" in markdown
    assert len([name for name in jobs if "seed" in name]) == 4  # trained once


def test_a_test_in_parts_by_length_counts_each_example_once(
    tiny_recipe: Path, tiny_corpus: Path, tmp_path: Path, jobs: list[str]
) -> None:
    references = (tiny_corpus / "test.words").read_text().splitlines()
    lengths = np.array([len(line.split()) for line in references])
    middle, longest = int(np.median(lengths)), int(lengths.max())
    assert lengths.min() < middle < longest

    def compared(*parts: int) -> dict[str, Any]:
        text = f"{COMMON}{GREEDY}[compare.axis]\nlengths = {list(parts)}\n{TWO}"
        return run_comparison(load_comparison(written(tiny_recipe, text)), tmp_path / "run", QUIET)

    with pytest.raises(InputError, match=f'test "held_out" has a reference of {longest} tokens; the last part ends at'):
        compared(1, 2)
    assert not jobs
    folder = tmp_path / "run"
    results = compared(middle, longest, 99)
    bleu, match, _ = results["axis"]["figures"]
    outputs = (folder / "post-norm-seed2" / "outputs" / "held_out.greedy.txt").read_text().split("\n")[:-1]
    points = bleu["variants"]["post | norm"]
    assert [point["at"] for point in points] == [middle, longest]  # no example is longer
    for point, rows in zip(points, (lengths <= middle, lengths > middle), strict=True):
        inside = [(outputs[row], references[row]) for row in np.flatnonzero(rows)]
        assert point["examples"] == len(inside)
        assert point["runs"]["2"] == bleu_tally(*zip(*inside, strict=True)).value
    whole = next(each for each in results["quality"] if each["metric"] == match["metric"])["variants"]["pre"]["value"]
    parts = [(point["value"], point["examples"]) for point in match["variants"]["pre"]]
    assert whole == pytest.approx(sum(value * count for value, count in parts) / len(lengths))
    assert (
        f"| variant | 1 to {middle} | {middle + 1} to {longest} | {longest + 1} to 99 |"
        in (folder / "compare.md").read_text()
    )


def test_a_band_is_drawn_from_its_lower_to_its_upper_end() -> None:
    points = [
        {"at": 10, "value": 2.0, "interval": [1.0, 4.0], "runs": {"1": 2.0}},
        {"at": 1000, "value": 3.0, "interval": None, "runs": {"1": 2.5, "2": 3.5}},
    ]
    band = Band.of("a", points)
    assert band == Band("a", [(10, 2.0), (1000, 3.0)], [1.0, 2.5], [4.0, 3.5])
    [axes] = band_chart("t", "x", "y", [band, band._replace(name="b")], logarithmic=True).axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["10", "1,000"]
    assert axes.get_xscale() == "log"
    corners = axes.collections[0].get_paths()[0].vertices
    assert {(10, 1), (10, 4), (1000, 2.5), (1000, 3.5)} <= {tuple(corner) for corner in np.asarray(corners)}


def test_places_are_named_as_people_write_them() -> None:
    assert AxisConfig(lengths=(22, 30)).labels == ["1 to 22", "23 to 30"]
    assert AxisConfig(key="a", values=(1000, 29000)).labels == ["1,000", "29,000"]
    assert AxisConfig(key="a", values=(0.1, 1)).labels == ["0.1", "1"]
