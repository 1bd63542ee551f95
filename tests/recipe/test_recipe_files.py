"""Each recipe of the repository is short, and says what it is, its command, and only figures that are on record."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "benchmarks" / "results" / "recipes"
RECIPES = sorted((ROOT / "recipes").rglob("*.toml"))
RESULT = "# Result: "


def recorded_figures(recipe: str) -> set[str]:
    """All scores on record for a recipe without changes, as a recipe writes them."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in RECORDS.glob("*.json")]
    of_recipe = [each for each in records if each["recipe"] == recipe and not each["change"]]
    return {f"{score['value']:.1f}" for record in of_recipe for score in record["scores"]}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_fits_on_a_screen_and_opens_with_what_it_is_and_its_command(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= (60 if path.parent.name == "compare" else 40)  # a comparison holds a table for each variant
    header = lines[: next(place for place, line in enumerate(lines) if not line.startswith("#"))]
    assert re.match(r"# [A-Z]", header[0])
    verb = "compare" if path.parent.name == "compare" else "train"
    command = f"#   transduce {verb} {path.relative_to(ROOT).as_posix()}"
    assert any(line == command or line.startswith(command + " ") for line in header)


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_result_in_a_recipe_is_on_record(path: Path) -> None:
    stated = [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith(RESULT)]
    figures = {figure for line in stated for figure in re.findall(r"\d+\.\d+", line)}
    assert figures <= recorded_figures(path.stem)
    assert bool(figures) == bool(stated)
