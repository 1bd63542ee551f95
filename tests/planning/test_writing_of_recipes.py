"""Recipes that are written can be read again."""

import tomllib

import pytest

from transduce.planning.decisions import Decision
from transduce.planning.plan import TrainingPlan
from transduce.planning.planned_run import recipe_text
from transduce.planning.promise import Promise


@pytest.mark.parametrize("name", ["test", "test_2016", "test𝓐", "テスト", 'a "b"', "tab\tdel\x7f"])
def test_names_of_any_letters_are_keys(name: str) -> None:
    files = {"source": f"{name}.en", "target": f"{name}.sw"}
    decisions = [Decision("data.test", {name: files}, "found"), Decision(f"data.other.{name}", 1, "given")]
    plan = TrainingPlan("x", {"data": {}}, decisions, Promise(0, 0, 0, 0))
    assert tomllib.loads(recipe_text(plan)) == {"data": {"test": {name: files}, "other": {name: 1}}}
