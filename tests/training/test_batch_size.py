"""batch.tokens = "auto": measured once, written down, repeated."""

import io
import os
import tomllib
from pathlib import Path

import psutil
import pytest
import torch
from rich.console import Console

from transduce.core.errors import InputError
from transduce.data.batches import BatchConfig, Batches
from transduce.inference.inputs import batches_of
from transduce.recipe.recipe import Recipe, load_recipe
from transduce.runtime.environment import machine, peak_memory_bytes
from transduce.training import batch_size
from transduce.training.batch_size import SHARE, Trial, _where_growth_ends, with_measured_batch
from transduce.training.display import Display
from transduce.training.dry_run import dry_run
from transduce.training.initialization import new_training
from transduce.training.memory import _free_of_group, activation_bytes, free_bytes
from transduce.training.run import open_task, run_training

AUTO = ["batch.tokens=auto", "batch.effective_tokens=2048", "training.accumulate=1", "training.updates=4"]


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test here depends on which speed is measured."""
    monkeypatch.setattr(batch_size, "SAMPLED", 1)
    monkeypatch.setattr(batch_size, "REPEATED", 1)


def recipe(path: Path, *overrides: str) -> Recipe:
    return load_recipe(path, [*AUTO, *overrides])


def display() -> tuple[Display, io.StringIO]:
    shown = io.StringIO()
    return Display(Console(file=shown, width=500)), shown


def measured(wanted: Recipe, free: int) -> tuple[Recipe, str]:
    shown, _ = display()
    task, data = open_task(wanted, shown)
    told: list[str] = []
    found = with_measured_batch(wanted, new_training(wanted, task), task, data, told.append, free)
    (line,) = told
    return found, line


def test_what_does_not_fit_is_not_chosen(tiny_recipe: Path) -> None:
    wanted = recipe(tiny_recipe)
    none, line = measured(wanted, 1)
    assert (none.batch.tokens, none.training.accumulate) == (512, 4)
    assert "Even that may be too much" in line
    assert "an update of 2,048 positions is 4 x 512 (measured 512: " in line
    heavy = largest_activations(wanted, 512)
    some, line = measured(wanted, int(1.7 * heavy / SHARE["cpu"]))  # 512 fits, and twice as much will not
    assert (some.batch.tokens, some.training.accumulate) == (512, 4)
    assert "too much" not in line
    assert "1,024:" not in line
    much, line = measured(wanted, 2**40)
    assert much.batch.tokens * much.training.accumulate == 2048  # type: ignore[operator]
    assert "1,024: " in line


def largest_activations(wanted: Recipe, tokens: int) -> int:
    """Of all real batches."""
    task, data = open_task(wanted, display()[0])
    model = new_training(wanted, task).model
    load = batches_of([store for store, _ in data.corpora], task.columns, torch.device("cpu"))
    epoch = Batches(data.corpora, BatchConfig(tokens=tokens), 1).epoch(0)
    return max(activation_bytes(model, task.objective(model, wanted.training), load(rows), "fp32") for rows in epoch)


def test_the_heaviest_batch_is_heavier_than_all_real_ones(tiny_recipe: Path) -> None:
    wanted = recipe(tiny_recipe, "batch.effective_tokens=512")
    _, line = measured(wanted, 2**40)
    told = line.split("tokens/s, ")[1].split(" ")
    heaviest = float(told[0]) * {"kB": 1e3, "MB": 1e6}[told[1].rstrip(";,")]
    assert largest_activations(wanted, 512) <= heaviest * 1.05, "it is told with two digits"


def test_growth_ends_where_more_is_no_faster() -> None:
    speeds = {512: 100.0, 1024: 180.0, 2048: 199.0, 4096: 201.0}
    trials = [Trial(4096 // tokens, tokens, 0, speed) for tokens, speed in speeds.items()]
    assert _where_growth_ends(trials).tokens == 2048
    assert _where_growth_ends(trials[:1]).tokens == 512


def test_the_choice_is_written_down_and_repeated(tiny_recipe: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    first, shown = display()
    report = run_training(recipe(tiny_recipe), folder, first)
    assert shown.getvalue().count("batch.tokens = auto: an update of 2,048 positions is ") == 1
    resolved = tomllib.loads((folder / "recipe.toml").read_text())
    tokens, accumulate = resolved["batch"]["tokens"], resolved["training"]["accumulate"]
    assert tokens * accumulate == 2048
    assert report["training"]["batch"] == {"tokens": tokens, "accumulate": accumulate}
    before = (folder / "model.safetensors").read_bytes()
    again, shown = display()
    run_training(recipe(tiny_recipe), folder, again)
    assert "auto" not in shown.getvalue()
    assert (folder / "model.safetensors").read_bytes() == before
    other = tmp_path / "other"  # the numbers in a recipe give the same model
    numbers = [f"batch.tokens={tokens}", f"training.accumulate={accumulate}"]
    run_training(recipe(tiny_recipe, *numbers), other, display()[0])
    assert (other / "model.safetensors").read_bytes() == before
    with pytest.raises(InputError, match=r"batch\.effective_tokens"):
        run_training(recipe(tiny_recipe, "batch.effective_tokens=1024"), folder, display()[0])


def test_a_dry_run_shows_the_choice(tiny_recipe: Path) -> None:
    shown, text = display()
    figures = dry_run(recipe(tiny_recipe), shown)
    chosen = figures["batch"]
    assert chosen["tokens"] * chosen["accumulate"] == 2048
    assert f"{chosen['accumulate']} x {chosen['tokens']:,} positions at most" in text.getvalue()


def test_auto_decides_accumulation_too(tiny_recipe: Path) -> None:
    with pytest.raises(InputError, match=r"decides training\.accumulate"):
        recipe(tiny_recipe, "training.accumulate=2")


def test_free_memory_is_less_than_the_machine_has() -> None:
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < free_bytes(torch.device("cpu")) < pages
    assert machine()["memory_gib"] == round(pages / 2**30, 1)


def test_the_peak_of_this_process_counts_what_it_held_once() -> None:
    held = torch.ones(64 * 2**20, dtype=torch.uint8)
    resident = psutil.Process().memory_info().rss
    del held
    assert peak_memory_bytes() > resident - 2**20  # either is exact to some pages of each processor


def test_a_containers_limit_counts(tmp_path: Path) -> None:
    own, group = tmp_path / "cgroup", tmp_path / "root" / "mine"
    group.mkdir(parents=True)
    own.write_text("0::/mine\n")
    (group / "memory.current").write_text("700\n")
    (group / "memory.stat").write_text("anon 500\ninactive_file 150\n")
    (group / "memory.max").write_text("1000\n")
    assert _free_of_group(tmp_path / "root", own) == 450
    (group / "memory.max").write_text("max\n")
    assert _free_of_group(tmp_path / "root", own) is None
    assert _free_of_group(tmp_path / "nowhere", own) is None
