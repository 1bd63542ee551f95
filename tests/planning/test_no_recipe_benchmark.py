"""benchmarks/no_recipe.py: the files of a recipe, named without it; the same test for all; what is said of times."""

import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from scripts import ROOT, loaded, page_of_results
from transduce.recipe.recipe import load_recipe

SETTINGS = ("training.updates=30", "training.precision=fp32", "training.validate_every=15")


@pytest.mark.slow
def test_a_recipe_and_none_are_compared_on_one_test(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    script = loaded("benchmarks/no_recipe.py")
    monkeypatch.setattr(script, "RECORDS", tmp_path / "records")
    both = [word for setting in SETTINGS for word in ("--both", setting)]
    asked = [str(recipe), "--runs", str(tmp_path), "--who", "recipe", "plan", "--time", "1h", "--record", *both]
    asked += ["--name", "toy", "--change", "model.dropout=0.0", "--change", "data.filters.max_tokens=100"]
    monkeypatch.setattr(sys, "argv", ["no_recipe.py", *asked])
    script.main()
    shown = capfd.readouterr().out
    [path] = (tmp_path / "records").iterdir()
    record = json.loads(path.read_text(encoding="utf-8"))
    reports = {who: json.loads((tmp_path / "toy" / who / "report.json").read_text()) for who in ("recipe", "plan")}
    planned: Any = load_recipe(tmp_path / "toy" / "plan" / "recipe.toml")
    original: Any = load_recipe(recipe)
    for files, others in (
        (planned.data.train, original.data.train),
        ([planned.data.validation], [original.data.validation]),
        (planned.data.test.values(), original.data.test.values()),
    ):
        for one, other in zip(files, others, strict=True):
            assert Path(one.file) == recipe.parent / other.file
            assert (one.sources, one.target_column) == (other.sources, other.target_column)
    assert not planned.data.hold_out
    assert (record["test"], record["sentences"], record["minutes"]) == ("words", 20, 60)
    assert [each["metric"] for each in record["scores"]] == ["exact_match", "per"]
    for each in record["scores"]:
        theirs = reports["recipe"]["tests"]["words"]["scores"][each["metric"]]
        assert each["systems"]["recipe"] == theirs
        less = each["systems"]["plan"]["value"] - theirs["value"]
        assert each["differences"]["recipe"]["value"] == pytest.approx(less)
    plan = reports["plan"]["plan"]
    assert record["systems"]["plan"]["minutes"] == pytest.approx(plan["took_seconds"] / 60)
    ratio = plan["took_seconds"] / plan["promised_seconds"]
    [row] = [
        line for line in shown.partition("Minutes:")[2].splitlines() if line.startswith("| `toy` `model.dropout=0.0` ")
    ]
    assert row.split(" | ")[4] == f"{ratio:.2f}"

    page = page_of_results(monkeypatch, tmp_path, NO_RECIPE=tmp_path / "records")
    text = page.page()
    assert row in text
    assert "| `toy` `model.dropout=0.0` | exact match (2) | " in text
    assert "| exact match (2) | `nrefs:1" in text

    before = {each: each.stat().st_mtime_ns for each in tmp_path.rglob("*.safetensors")}
    script.main()  # nothing is trained again
    assert capfd.readouterr().out.endswith(shown[shown.index("| data set of") :])
    assert {each: each.stat().st_mtime_ns for each in tmp_path.rglob("*.safetensors")} == before


@pytest.mark.parametrize("name", ["multi30k-de-en", "tatoeba-zh-en", "g2p", "inflection", "aeslc", "scan"])
def test_the_files_of_recipes_can_be_named_without_them(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from transduce.data.pairs.inputs import is_data

    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    script = loaded("benchmarks/no_recipe.py")
    recipe: Any = load_recipe(ROOT / "recipes" / f"{name}.toml")
    command = script.plan_command(recipe, Path("plan"), 20.0, threads=1)
    words = dict(zip(command[4::2], command[5::2], strict=False))
    files = recipe.data.train[0]
    assert Path(words["--source"]) == Path(recipe.data.root) / (files.source or files.file)
    assert ("--target" in words) == files.of_two_files
    assert is_data(Path(words["--source"])) == (not files.of_two_files and not files.separator)
    columns = [each for word, each in pairwise(command) if word == "--source-column"]
    assert tuple(columns) == (() if files.sources == (0,) and files.target_column == 1 else files.sources)
    assert words.get("--separator") == files.separator
    if recipe.task.source:
        assert f"{recipe.task.source}-{recipe.task.target}" in command
    assert command[command.index("--time") + 1] == "20.00m"


@pytest.mark.parametrize(
    ("more", "wanted"),
    [
        (["--who", "trainer"], "--who: expected recipe or plan beside trainer"),
        (["--who", "plan"], "--time: expected a time such as 20m"),
        (["--time", "soon"], 'expected a time such as 2h, 90m or 1h30m; got "soon"'),
        (["--change", "data.train=[{ tsv = 'a.tsv', to = 'fr' }]"], "data.train: to: has no option"),
        ([str(ROOT / "recipes" / "g2p.toml"), "--name", "both"], "--change and --name are for one recipe"),
        ([str(ROOT / "recipes" / "low-resource.toml")], "no stage before the training"),
        ([str(ROOT / "recipes" / "sst2.toml")], "expected a recipe for translation"),
    ],
)
def test_what_cannot_be_compared_is_refused_first(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, more: list[str], wanted: str
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    script = loaded("benchmarks/no_recipe.py")
    monkeypatch.setattr(sys, "argv", ["no_recipe.py", str(recipe), "--runs", str(tmp_path / "runs"), *more])
    with pytest.raises(SystemExit) as left:
        script.main()
    assert left.value.code == 2
    assert wanted in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
