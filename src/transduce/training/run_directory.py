"""A run directory belongs to one recipe and one state of its files; whoever comes with others is refused."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transduce.atomic import write_json, write_text
from transduce.errors import InputError
from transduce.recipe import Recipe
from transduce.tasks.protocols import TaskData

RESOLVED = "recipe.toml"
MAY_CHANGE = ("training.minutes", "training.log_every", "training.tensorboard", "data.root", "search")


def claim(run: Path, recipe: Recipe) -> None:
    """Write the resolved recipe into a new run; refuse a run of another one.

    Raises:
        InputError: which keys differ.
    """
    import tomli_w

    different = changed_keys(run, recipe)
    if different:
        raise InputError(
            f"{run}: holds a training of another recipe; these keys differ: {', '.join(different)}. "
            "Choose another directory with --run, or delete this one."
        )
    run.mkdir(parents=True, exist_ok=True)
    write_text(run / RESOLVED, tomli_w.dumps(recipe.to_table()))


def changed_keys(run: Path, recipe: Recipe) -> list[str]:
    """The keys by which `recipe` is another one than that of the run, if there is one; some may change."""
    resolved = run / RESOLVED
    if not resolved.exists():
        return []
    before = tomllib.loads(resolved.read_text(encoding="utf-8"))
    different = sorted(differences(before, json.loads(json.dumps(recipe.to_table()))))
    return [key for key in different if not key.startswith(MAY_CHANGE)]


def claim_data(run: Path, data: TaskData) -> None:
    """Note in a new run what its files hold; refuse to go on with a run whose files have changed since.

    Raises:
        InputError: which files changed.
    """
    noted, now = run / "data.json", json.loads(json.dumps(data.provenance))
    if noted.exists():
        before = json.loads(noted.read_text(encoding="utf-8"))
        changed = sorted(differences(before, now))
        if changed:
            raise InputError(
                f"{run}: its training began with other data; changed since: {', '.join(changed)} (fingerprints are in "
                f"{noted}). Bring the files back, choose another directory with --run, or delete this one."
            )
    write_json(noted, now)


def differences(one: Mapping[str, Any], other: Mapping[str, Any], above: str = "") -> list[str]:
    """The dotted keys whose values differ."""
    found = []
    for key in {*one, *other}:
        here, there = one.get(key), other.get(key)
        if isinstance(here, dict) and isinstance(there, dict):
            found += differences(here, there, f"{above}{key}.")
        elif here != there:
            found.append(f"{above}{key}")
    return found
