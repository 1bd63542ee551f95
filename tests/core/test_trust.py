"""Code outside Transduce is imported by leave."""

import sys
from pathlib import Path
from typing import Any

import pytest

from transduce.core import trust
from transduce.core.errors import InputError
from transduce.core.registry import resolve
from transduce.core.trust import allow_code, check_code, foreign_code
from transduce.recipe.recipe import load_recipe, load_run_recipe


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a file that leaves `ran` where it is imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trust, "_allowed", set())
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    monkeypatch.setattr(sys, "modules", {name: each for name, each in sys.modules.items() if name != "evil_file"})
    (tmp_path / "evil_file.py").write_text(EVIL)
    return tmp_path


EVIL = """
import pathlib
from transduce.core.config import Config as Base
pathlib.Path("ran").touch()
class Config(Base):
    kind: str = "evil_file:Model"
class Model:
    Config = Config
    named_parameters = []
"""
RUN = '[model]\nkind = "evil_file:Model"\n[data]\ntrain = [{ source = "a", target = "b" }]\n'


def test_a_class_is_imported_by_leave_alone(evil: Path) -> None:
    for room in ("models", "tasks", "attention.scores", "data.columns", "interpret"):
        with pytest.raises(InputError, match=r'"evil_file:Model" is code outside Transduce, which needs trust_code'):
            resolve(room, "evil_file:Model")
    assert not (evil / "ran").exists()
    allow_code({"model": {"anything": ["evil_file:Other"]}})  # the file is what runs
    assert resolve("models", "evil_file:Model").__name__ == "Model"
    assert (evil / "ran").exists()


@pytest.mark.parametrize("name", ["os:path", "os:getcwd", "json:JSONDecoder", "collections:OrderedDict"])
def test_what_is_no_such_class_is_an_error(evil: Path, name: str) -> None:
    allow_code({"kind": name})
    for room in ("models", "tasks", "attention.scores", "attention.normalizers", "attention.relative"):
        with pytest.raises(InputError, match=rf'{room}: "{name}" is (no class|another kind of class)'):
            resolve(room, name)


@pytest.mark.parametrize("section", ["task", "model"])
def test_a_kind_that_is_no_class_is_told_with_the_recipe(evil: Path, section: str) -> None:
    (evil / "own.toml").write_text(f'[{section}]\nkind = "os:path"\n')
    with pytest.raises(InputError, match=rf'own.toml: \[{section}\] kind: {section}s: "os:path" is no class, but a'):
        load_recipe(evil / "own.toml")


def test_ones_own_recipe_may_name_code_and_that_of_a_run_may_not(evil: Path) -> None:
    (evil / "recipe.toml").write_text(RUN)
    (evil / "data.json").write_text("{}")
    (evil / "own.toml").write_text('base = "recipe.toml"\n')
    for path, load in (
        ("recipe.toml", load_recipe),
        ("recipe.toml", load_run_recipe),
        ("own.toml", load_recipe),
        ("own.toml", load_run_recipe),
    ):
        with pytest.raises(InputError, match=r"recipe.toml: this file names code outside .*: evil_file:Model\. If you"):
            load(evil / path)
    assert not (evil / "ran").exists()
    (evil / "data.json").unlink()
    with pytest.raises(InputError, match="names code outside"):
        load_run_recipe(evil / "recipe.toml")
    assert not (evil / "ran").exists()
    load_recipe(evil / "own.toml")
    assert (evil / "ran").exists()


def test_a_trusted_recipe_of_a_run_may(evil: Path) -> None:
    (evil / "recipe.toml").write_text(RUN)
    load_run_recipe(evil / "recipe.toml", trust_code=True)
    assert (evil / "ran").exists()


def test_a_file_is_asked_each_time_and_ones_own_recipe_is_remembered(evil: Path) -> None:
    allow_code({"kind": "evil_file:Model"})
    with pytest.raises(InputError, match="names code outside"):
        check_code({"kind": "evil_file:Model"}, "m", trust_code=False)
    check_code({"kind": "evil_file:Model"}, "m", trust_code=None)
    with pytest.raises(InputError, match="names code outside Transduce: other_file:Model"):
        check_code({"kind": "other_file:Model"}, "m", trust_code=None)


@pytest.mark.parametrize("name", ["\u2118:M", "a.\u2118:M"])
def test_every_name_that_could_be_imported_is_seen(name: str) -> None:
    """An identifier of Python may begin with a sign that is no letter."""
    config: Any = {"cell": name}
    assert foreign_code(config) == [name]
