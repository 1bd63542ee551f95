"""What holds for the whole process is as it was, once Transduce has done its work."""

import gc
import locale
import os
import random
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

import transduce
from transduce.core.errors import InputError
from transduce.recipe.recipe import load_recipe
from transduce.runtime.settings import repeatable, switch_interval, threads
from transduce.training.display import Display
from transduce.training.run import finish_training, run_training


def world() -> dict[str, Any]:
    """Everything that one piece of code can set under the feet of another."""
    import torch._inductor.config as inductor

    return {
        "threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "deterministic": (
            torch.are_deterministic_algorithms_enabled(),
            torch.is_deterministic_algorithms_warn_only_enabled(),
            torch.utils.deterministic.fill_uninitialized_memory,
            inductor.deterministic,
        ),
        "products": (
            torch.get_float32_matmul_precision(),
            torch.backends.mkldnn.enabled,
            torch.backends.cudnn.benchmark,
            torch.backends.cudnn.deterministic,
            torch.backends.cuda.matmul.allow_tf32,
        ),
        "denormals": float(torch.tensor(1e-39) * 1.0) > 0,
        "default type": torch.get_default_dtype(),
        "gradients": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_autocast_enabled("cpu")),
        "random numbers": (torch.get_rng_state().tolist(), repr(random.getstate()), repr(np.random.get_state())),
        "environment": sorted(os.environ.items()),
        "folder": Path.cwd(),
        "locale": locale.setlocale(locale.LC_ALL),
        "warnings": list(warnings.filters),
        "floating-point errors": np.geterr(),
        "signals": [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)],
        "interpreter": (sys.getswitchinterval(), sys.getrecursionlimit(), gc.get_threshold(), sys.excepthook),
    }


def changed(before: dict[str, Any]) -> list[str]:
    return [name for name, value in world().items() if value != before[name]]


@pytest.fixture
def one_update(tiny_recipe: Path) -> Any:
    """Of the tiny recipe, on one thread where two are set: two would wait for each other in every tiny sum."""
    torch.set_num_threads(2)
    return load_recipe(tiny_recipe, ["training.updates=1", "training.decode_sentences=1", "training.threads=1"])


@pytest.fixture
def display(tmp_path: Path) -> Any:
    with (tmp_path / "shown.txt").open("w", encoding="utf-8") as shown:
        yield Display(Console(file=shown, width=200))


def test_training_loading_and_predicting_leave_everything_as_it_was(
    one_update: Any, display: Display, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    before = world()
    report = run_training(one_update, run, display)
    assert changed(before) == []
    assert report["environment"]["machine"]["threads"] == one_update.training.threads
    model = transduce.load(run)
    model.predict(["1 2 3", "4"], method="sample")
    model.predict(["1 2 3"], beam=2)
    with transduce.capture(model):
        model.predict(["1 2 3"])
    assert changed(before) == []


def test_whoever_asked_for_something_else_keeps_it(one_update: Any, display: Display, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
        torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            before = world()
            run_training(one_update, tmp_path / "run", display)
            assert changed(before) == []
        finally:
            torch.use_deterministic_algorithms(False)


def test_a_training_that_fails_puts_everything_back(one_update: Any, display: Display, tmp_path: Path) -> None:
    wrong = one_update.model_copy(update={"task": one_update.task.model_copy(update={"metrics": ("nothing",)})})
    before = world()
    with pytest.raises(InputError, match="nothing"):
        run_training(wrong, tmp_path / "run", display)
    with pytest.raises(InputError, match="nothing to finish"):
        finish_training(one_update, tmp_path / "other", display)
    assert changed(before) == []


def test_inside_they_hold() -> None:
    before, count = world(), torch.get_num_threads() % 2 + 1
    with repeatable(count), switch_interval(0.25):
        torch.manual_seed(1)
        assert torch.get_num_threads() == count
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.is_deterministic_algorithms_warn_only_enabled()
        assert not torch.utils.deterministic.fill_uninitialized_memory
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
        assert sys.getswitchinterval() == 0.25
        with threads(None):
            assert torch.get_num_threads() == count
    assert changed(before) == []
