"""Each recipe of the repository is short, and says what it is, its command, and only figures that are on record."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from transduce.core.errors import InputError
from transduce.recipe.recipe import load_recipe, parse_recipe
from transduce.training.display import Display
from transduce.training.dry_run import dry_run

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


TRAINED = [path for path in RECIPES if path.parent.name != "compare"]
QUICK = {"cora", "g2p", "mutag", "ntm-copy", "tinyshakespeare"}  # each of another task


def shorten(data: dict[str, Any]) -> None:
    """Sound at one speed, few strings of recordings, few pairs: reading all of them would take most of the time."""
    if "speeds" in data:
        data["speeds"] = []
    for file in (*data.get("train", ()), data.get("validation"), *data.get("test", {}).values()):
        if isinstance(file, dict) and file.get("strings"):
            file["strings"]["count"] = 50
    for file in data.get("train", ()):
        if isinstance(file, dict) and {"source", "tsv", "jsonl"} & file.keys():
            file["pairs"] = 1000


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[] if path.stem in QUICK else [pytest.mark.slow], id=path.stem) for path in TRAINED],
)
def test_a_dry_run_of_each_recipe_shows_its_figures(path: Path, data_root: Path) -> None:
    """Left out where its data, or the model that it starts from, is not there."""
    table = load_recipe(path).to_table()
    if "root" in table["data"]:
        table["data"]["root"] = table["data"]["root"].replace("../shared/data", str(data_root))
    shorten(table["data"])
    recipe = parse_recipe(table, path.stem)
    shown = io.StringIO()
    try:
        figures = dry_run(recipe, Display(Console(file=shown, width=200)))
    except InputError as error:
        if "no such file" not in str(error):
            raise
        pytest.skip(str(error))
    assert figures["parameters"] > 0
    assert figures["examples"] > 0
    assert figures["memory_bytes"]["activations"] > 0
    assert 1 <= figures["sentences_a_batch"] <= figures["examples"]
    assert all(0 <= share < 1 for share in figures["padding"].values())
    assert f"{figures['parameters']:,}" in shown.getvalue()
