"""Comparisons from file to page in processes of their own: killed, continued, failed, changed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from compared import few_resamples, measured_briefly, without_curves
from tiny_recipe import TINY_RECIPE
from transduce.compare import run as comparing
from transduce.compare.config import ComparisonConfig, load_comparison
from transduce.compare.results import Costs
from transduce.compare.run import run_comparison
from transduce.compare.show import show
from transduce.core.errors import InputError
from transduce.inference.likelihood import dataset_likelihood
from transduce.metrics.bleu import bleu_tally
from transduce.metrics.paired import mean_interval, paired_bootstrap
from transduce.pipeline.pipeline import load
from transduce.recipe.recipe import load_recipe
from transduce.runtime.event_log import read_log
from transduce.training.display import Display
from transduce.training.run import open_task

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are killed with POSIX signals")

QUIET = Display(Console(quiet=True))


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "transduce", "compare", *map(str, arguments)]


def compare(*arguments: object) -> subprocess.CompletedProcess[str]:
    """`transduce compare ...` to its end."""
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False, timeout=600)


def stopped(log: Path, number: signal.Signals, *arguments: object) -> tuple[int, str]:
    """The same, but sent a signal once `log` has a line; exit code and standard error."""
    with subprocess.Popen(command(*arguments), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not read_log(log):
            time.sleep(0.01)
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
    return process.returncode, said


def told(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "compare.json").read_text(encoding="utf-8"))


@pytest.fixture(autouse=True)
def briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Intervals of few resamples, which `metrics` tests, and what is written again in this process has no curves."""
    few_resamples(monkeypatch)
    without_curves(monkeypatch)


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A cache of the tests' own, and no matplotlib, which takes long and which a comparison can do without."""
    without = tmp_path_factory.mktemp("without")
    (without / "matplotlib.py").write_text("raise ImportError('not installed')\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRANSDUCE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        patch.setenv("PYTHONPATH", str(without), prepend=os.pathsep)
        yield


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory, tiny_corpus: Path) -> Path:
    """Two variants of the tiny recipe, two seeds, some 40 updates each."""
    folder = tmp_path_factory.mktemp("comparison")
    recipe = TINY_RECIPE.replace("[data]", f'[data]\nroot = "{tiny_corpus}"')
    (folder / "tiny.toml").write_text(recipe, encoding="utf-8")
    (folder / "norms.toml").write_text(
        'base = "tiny.toml"\n[compare]\nbudget = "8ktok"\nseeds = [1, 2]\nlengths = [4, 8, 16]\n'
        'metrics = ["bleu", "chrf"]\n[training]\nlog_every = 1\n'
        '[variants.pre]\n[variants."post | norm"]\nmodel = { norm = "post" }\n',
        encoding="utf-8",
    )
    return folder / "norms.toml"


@pytest.fixture(scope="module")
def finished(file: Path) -> Path:
    """The directory of a finished comparison, trained in this process."""
    folder = file.parent / "here"
    with pytest.MonkeyPatch.context() as patch, (file.parent / "shown.txt").open("w", encoding="utf-8") as shown:
        measured_briefly(patch)
        patch.setitem(sys.modules, "matplotlib", None)
        patch.setenv("TRANSDUCE_CACHE", str(file.parent / "cache"))
        console = Console(file=shown)
        show(run_comparison(load_comparison(file), folder, Display(console)), console)
        console.print(folder / "compare.html", soft_wrap=True)
    (file.parent / "shown.txt").rename(folder / "shown.txt")
    return folder


@pytest.fixture(scope="module")
def killed(file: Path, surroundings: None) -> Path:
    """The directory of the same comparison, with its first seed, in processes of its own: the first training was killed
    in the middle, with its parent, and continued."""
    folder = file.parent / "runs"
    one_seed = file.parent / "killed" / file.name
    one_seed.parent.mkdir()
    text = file.read_text().replace("seeds = [1, 2]", "seeds = [1]").replace('"tiny.toml"', '"../tiny.toml"')
    one_seed.write_text(text, encoding="utf-8")
    code, _ = stopped(folder / "pre-seed1" / "log.jsonl", signal.SIGKILL, one_seed, "--run", folder)
    assert code == -signal.SIGKILL
    assert not (folder / "compare.json").exists()
    done = compare(one_seed, "--run", folder)
    assert done.returncode == 0, done.stderr
    (folder / "shown.txt").write_text(done.stdout, encoding="utf-8")
    return folder


@pytest.mark.slow
def test_one_that_was_killed_with_its_parent_ends_as_one_that_was_not(
    file: Path, killed: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the same bytes of every model, the same figures, and the same pages but for what was measured."""
    whole, shown = told(finished), (killed / "shown.txt").read_text()
    assert "Going on after update" in shown  # what the orphan saved when its parent died
    for name, variant in told(killed)["variants"].items():
        run, other = variant["runs"][0], whole["variants"][name]["runs"][0]
        for key in ("seed", "directory", "state", "updates", "target_tokens", "sha256"):
            assert run[key] == other[key], key
        assert variant["training_tokens_a_second"] > 0
        assert all(speed > 0 for speed in variant["decoding_tokens_a_second"].values())
        assert variant["growth"]["lengths"] == [4, 8, 16]
    for one, other in zip(told(killed)["quality"], whole["quality"], strict=True):
        for name, figure in one["variants"].items():
            assert figure["runs"] == other["variants"][name]["runs"][:1]
    beam = next(each for each in told(killed)["quality"] if (each["search"], each["metric"]) == ("beam", "bleu"))
    for text in (shown, (killed / "compare.md").read_text(), (killed / "compare.html").read_text()):
        assert (
            "{:.2f} [{:.2f}, {:.2f}]".format(beam["variants"]["pre"]["value"], *beam["variants"]["pre"]["interval"])
            in text
        )
        assert beam["variants"]["post | norm"]["difference"]["verdict"] in text
    assert str(killed / "compare.html") in shown
    assert "Figures left out: drawing figures needs matplotlib" in shown
    monkeypatch.setattr(comparing, "_run_worker", lambda *job: pytest.fail("there is nothing to do"))
    run_comparison(load_comparison(file.parent / "killed" / file.name), killed, QUIET)


def test_the_budget_is_spent_and_no_more(finished: Path) -> None:
    results = told(finished)
    spent: dict[int, set[tuple[int, int]]] = {}
    for variant in results["variants"].values():
        for run in variant["runs"]:
            events = read_log(finished / run["directory"] / "log.jsonl")
            tokens = [event["tokens"] for event in events if event["event"] == "validation"]
            assert run["state"] == "finished"
            assert run["target_tokens"] == tokens[-1] >= 8000
            assert tokens[-1] - 8000 < 400  # an update's worth
            assert run["operations"] == pytest.approx(run["target_tokens"] * variant["operations_a_token"])
            spent.setdefault(run["seed"], set()).add((run["updates"], run["target_tokens"]))
            assert run["updates"] == max(event["update"] for event in events)
    assert all(len(each) == 1 for each in spent.values())  # same seed, same batches, whichever the variant


def test_quality_is_the_mean_with_the_interval_of_the_paired_bootstrap(finished: Path, tiny_corpus: Path) -> None:
    results = told(finished)
    references = (tiny_corpus / "test.words").read_text().splitlines()

    def tallies(variant: str, search: str) -> list[Any]:
        paths = [finished / f"{variant}-seed{seed}" / "outputs" / f"held_out.{search}.txt" for seed in (1, 2)]
        return [bleu_tally(path.read_text().split("\n")[:-1], references) for path in paths]

    figures = {(each["search"], each["metric"]): each for each in results["quality"]}
    assert list(figures) == [
        ("beam", "bleu"), ("beam", "chrf"), ("greedy", "bleu"), ("greedy", "chrf"), ("", "perplexity")
    ]  # fmt: skip
    for search in ("greedy", "beam"):
        pre, post = tallies("pre", search), tallies("post-norm", search)
        figure = figures[search, "bleu"]
        assert figure["variants"]["pre"]["runs"] == [tally.value for tally in pre]
        assert figure["variants"]["pre"]["value"] == pytest.approx(sum(tally.value for tally in pre) / 2)
        assert figure["variants"]["pre"]["interval"] == list(mean_interval(pre) or ())
        difference = figure["variants"]["post | norm"]["difference"]
        assert difference.items() >= paired_bootstrap(pre, post).to_dict().items()
        assert "BLEU" in difference["verdict"]
        assert "difference" not in figure["variants"]["pre"]


def test_perplexity_is_that_of_the_tests(finished: Path) -> None:
    [figure] = [each for each in told(finished)["quality"] if each["metric"] == "perplexity"]
    task, data = open_task(load_recipe(finished.parent / "tiny.toml"), QUIET)
    model = load(finished / "pre-seed2").model
    likelihood = dataset_likelihood(model, task, data.tests["held_out"].store)
    assert figure["variants"]["pre"]["runs"][1] == pytest.approx(likelihood.perplexity)
    assert "base:e" in figure["signature"]


def test_speed_and_growth_are_measured(finished: Path) -> None:
    for variant in told(finished)["variants"].values():
        assert variant["training_tokens_a_second"] > 0
        assert all(speed > 0 for speed in variant["decoding_tokens_a_second"].values())
        assert variant["growth"]["lengths"] == [4, 8, 16]
        assert variant["parameters"] > 1000


@pytest.mark.slow
def test_memory_is_measured_in_processes_of_their_own(killed: Path) -> None:
    for variant in told(killed)["variants"].values():
        assert 0 < variant["memory"]["training_bytes"] < variant["memory"]["peak_bytes"]


def test_the_tables_say_it_all(finished: Path) -> None:
    results, shown = told(finished), (finished / "shown.txt").read_text()
    markdown, page = (finished / "compare.md").read_text(), (finished / "compare.html").read_text()
    beam = next(each for each in results["quality"] if (each["search"], each["metric"]) == ("beam", "bleu"))
    value = beam["variants"]["pre"]
    figure = "{:.2f} [{:.2f}, {:.2f}]".format(value["value"], *value["interval"])
    verdict = beam["variants"]["post | norm"]["difference"]["verdict"]
    for text in (shown, markdown, page):
        assert figure in text
        assert verdict in text
        assert beam["signature"] in text
        assert "O(n² d)" in text
        assert "Budget 8ktok a training, 2 trainings of each variant." in text
    assert f"{results['variants']['pre']['parameters']:,}" in shown
    assert "| post \\| norm |" in markdown
    assert "\n| held_out | greedy | bleu | pre |" in markdown  # by the name that a recipe gives it
    assert "\n| --- | --- | --- | --- | ---: | ---: |\n" in markdown  # words to the left, figures to the right
    for text in (markdown, page):
        assert "O(log_k n) dilated" in text  # the whole table of the textbooks
        assert "chrf" in text
        assert "torch" in text
    assert str(finished / "compare.html") in shown


def test_without_matplotlib_only_the_figures_are_missing_and_it_says_so(finished: Path) -> None:
    assert "Figures left out: drawing figures needs matplotlib" in (finished / "shown.txt").read_text()
    assert "figures/" not in (finished / "compare.md").read_text()
    assert "<img" not in (finished / "compare.html").read_text()


def test_what_is_finished_is_not_done_again(file: Path, finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = told(finished)
    monkeypatch.setattr(comparing, "_run_worker", lambda *job: pytest.fail("there is nothing to do"))
    again = run_comparison(load_comparison(file), finished, QUIET)
    assert again["quality"] == before["quality"]
    assert again["variants"] == before["variants"]


def test_a_new_variant_is_trained_and_nothing_else(file: Path, finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[dict[str, Any]] = []
    monkeypatch.setattr(comparing, "_run_worker", lambda job, *rest: jobs.append(job) or 1)
    text = file.read_text() + "[variants.third]\nmodel = { positions = 'none' }\n"
    other = file.with_name("three.toml")
    other.write_text(text)
    with pytest.raises(Exception, match="code 1"):
        run_comparison(load_comparison(other), finished, QUIET)
    assert [each["where"] for each in jobs[0]["models"]] == ["third"]


def test_a_changed_recipe_is_refused(file: Path, finished: Path) -> None:
    text = file.read_text().replace('norm = "post"', 'norm = "post", dropout = 0.3')
    other = file.with_name("changed.toml")
    other.write_text(text)
    with pytest.raises(InputError) as caught:
        refuse(load_comparison(other, ["training.clip=0.5"]), finished)
    assert len(caught.value.problems) == 4
    assert "pre, seed 1 was trained with another recipe; these keys differ: training.clip." in caught.value.problems[0]
    assert (
        "post | norm, seed 2 was trained with another recipe; these keys differ: model.dropout, training.clip"
        in (caught.value.problems[3])
    )
    with pytest.raises(InputError, match=r"these keys differ: training\.updates"):
        refuse(load_comparison(file, [], "9ktok"), finished)


def refuse(comparison: ComparisonConfig, folder: Path) -> None:
    """Run as far as the plan, with costs that were measured of another recipe."""
    measured = Costs.read(folder / "costs" / "pre.json")
    task, data = open_task(comparison.any_recipe, QUIET)
    costs = dict.fromkeys(comparison.variants, measured)
    comparing._refuse_changed(comparison, comparing._plan(comparison, folder, data, task.columns, costs))


@pytest.fixture(scope="module")
def timed(file: Path, surroundings: None) -> tuple[Path, Path]:
    """A comparison under a budget of time, stopped once and continued, in which one variant cannot but fail."""
    path = file.with_name("timed.toml")
    path.write_text(
        'base = "tiny.toml"\n[compare]\nlengths = [4, 8]\n[compare.searches]\ngreedy = { method = "greedy" }\n'
        '[training]\nschedule = "constant"\nlog_every = 1\npatience = 1\nclip = 0\noptimizer = "adamw"\n'
        "[variants.good]\n[variants.hopeless]\ntraining = { learning_rate = 1e30, warmup = 0 }\n"
    )
    folder = file.parent / "timed"
    arguments = (path, "--budget", "3s", "--run", folder)
    code, said = stopped(folder / "good-seed1" / "log.jsonl", signal.SIGTERM, *arguments)
    assert code == 130
    assert "The same command goes on from here." in said
    done = compare(*arguments)
    assert done.returncode == 0, done.stderr
    (folder / "shown.txt").write_text(done.stdout, encoding="utf-8")
    return path, folder


@pytest.mark.slow
def test_time_is_summed_over_stops(timed: tuple[Path, Path]) -> None:
    folder = timed[1]
    assert "Going on after update" in (folder / "shown.txt").read_text()
    [run] = told(folder)["variants"]["good"]["runs"]
    assert run["ended"] == "0.05 minutes used"
    seconds = [event["seconds"] for event in read_log(folder / "good-seed1" / "log.jsonl")]
    assert seconds == sorted(seconds)
    assert 60 * run["minutes"] >= 3
    assert [second for second in seconds if second < 3][-1] > 0  # no second was begun anew
    assert seconds[0] < seconds[-1] <= 60 * run["minutes"] + 0.1


@pytest.mark.slow
def test_a_training_that_fails_is_told_and_the_others_go_on(timed: tuple[Path, Path]) -> None:
    folder = timed[1]
    results = told(folder)
    [run] = results["variants"]["hopeless"]["runs"]
    assert run["state"] == "failed"
    assert "training.learning_rate" in run["failed"]
    assert set(results["quality"][0]["variants"]) == {"good"}
    assert "hopeless (0 of 1 trained, 1 failed)" in (folder / "compare.md").read_text()


@pytest.mark.slow
def test_a_larger_budget_of_time_goes_on_and_a_smaller_one_is_refused(
    timed: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, folder = timed
    with pytest.raises(InputError, match=r"good, seed 1 was trained for longer than 1s"):
        run_comparison(load_comparison(path, [], "1s"), folder, QUIET)
    jobs: list[dict[str, Any]] = []
    monkeypatch.setattr(comparing, "_run_worker", lambda job, *rest: jobs.append(job) or 0)
    run_comparison(load_comparison(path, [], "6s"), folder, QUIET)
    assert [(job["where"], job["recipe"]["training"]["minutes"]) for job in jobs] == [
        ("good, seed 1", 0.1), ("hopeless, seed 1", 0.1)
    ]  # fmt: skip


def test_two_comparisons_do_not_share_a_directory(file: Path, finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    monkeypatch.setattr(comparing, "PATIENCE", 0.1)
    with (finished / ".lock").open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="another comparison is running there"):
            run_comparison(load_comparison(file), finished, QUIET)


def test_a_worker_whose_parent_is_gone_leaves() -> None:
    code = "import transduce.runtime.child_process as apart; apart.leave_when_alone()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    assert process.stdin
    process.stdin.close()
    assert process.wait(60) == -signal.SIGTERM
