"""Trainings of a task's toy recipe by the command, as the tests of every task need them."""

from pathlib import Path

import pytest

from forked import Ended, Fate, transduce


def trained_beside(recipe: Path, factory: pytest.TempPathFactory, *more: object) -> Ended:
    """Trains into `run` beside the recipe, with the cache that all tests share; a fixture of a module has none yet."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRANSDUCE_CACHE", str(factory.getbasetemp() / "cache"))
        done = transduce(recipe.parent, "train", recipe, *more, "--run", recipe.parent / "run")
    assert done.code == 0, done.shown
    return done


SHORT = ("training.updates=12", "training.validate_every=6", "training.checkpoint_every=4")


def resumed_to_the_same_bytes(recipe: Path, *more: object) -> Path:
    """A short training that was killed while it wrote and then went on: it ends in the bytes of one that was not."""
    folder, more = recipe.parent, (*SHORT, *more)
    whole, killed = folder / "whole", folder / "killed"
    assert transduce(folder, "train", recipe, *more, "--run", whole).code == 0
    assert transduce(folder, "train", recipe, *more, "--run", killed, fate=Fate(dies_in_write=3)).code != 0
    assert transduce(folder, "train", recipe, *more, "--run", killed).code == 0
    assert (whole / "model.safetensors").read_bytes() == (killed / "model.safetensors").read_bytes()
    return killed
