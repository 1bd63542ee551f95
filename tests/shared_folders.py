"""Folders that the workers of one session share: what takes long to make is made once, by the first that needs it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """The folder `name` with what `make` wrote into it; nobody may write into it afterwards."""
    folder = _of_all_workers(factory) / name
    done = folder.with_suffix(".done")
    with FileLock(folder.with_suffix(".lock")), pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRANSDUCE_CACHE", str(factory.getbasetemp() / "cache"))
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            done.touch()
    return folder


def trained_once(factory: pytest.TempPathFactory, name: str, recipe: str) -> Path:
    """The directory of one finished training of a recipe, which is called tiny.toml beside it."""

    def train(folder: Path) -> None:
        from rich.console import Console

        from transduce.recipe.recipe import load_recipe
        from transduce.training.display import Display
        from transduce.training.run import run_training

        (folder / "tiny.toml").write_text(recipe, encoding="utf-8")
        with (folder / "shown.txt").open("w", encoding="utf-8") as shown:
            run_training(load_recipe(folder / "tiny.toml"), folder / "run", Display(Console(file=shown, width=200)))

    return made_once(factory, name, train) / "run"


def _of_all_workers(factory: pytest.TempPathFactory) -> Path:
    """The temporary folder that the workers' own lie in."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own
