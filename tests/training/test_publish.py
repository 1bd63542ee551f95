"""What `benchmarks/publish.py` puts on record, and what the page of results makes of it."""

import json
import math
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import transduce
from scripts import ROOT, loaded, page_of_results
from trained import shown
from transduce.distillation.pipeline import train_recipe
from transduce.recipe.recipe import load_recipe

Publish = Callable[..., str]


@pytest.fixture
def publish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Publish:
    """Publishes a run as the command line would; returns the page of results with that record alone."""
    script = loaded("benchmarks/publish.py")
    monkeypatch.setattr(script, "RECORDS", tmp_path / "records")

    def published(run: Path, *options: str) -> str:
        monkeypatch.setattr(sys, "argv", ["publish.py", str(run), "--commit", "abc", *options])
        script.main()
        page: str = page_of_results(monkeypatch, tmp_path, RECORDS=tmp_path / "records").page()
        return page

    return published


@pytest.mark.parametrize(("kind", "unit"), [("character", "character"), ("whitespace", "token")])
def test_the_perplexity_of_the_references(
    kind: str, unit: str, publish: Publish, tiny_recipe: Path, tiny_corpus: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    train_recipe(load_recipe(tiny_recipe, [f"tokenizer={{kind='{kind}', vocabulary=100}}"]), run, shown())
    assert "| perplexity" not in publish(run)
    page = publish(run, "--perplexity")
    test = load_recipe(run / "recipe.toml").data.test["held_out"]  # type: ignore[attr-defined]
    sides = [(tiny_corpus / name).read_text().splitlines() for name in (test.source, test.target)]
    scored = transduce.load(run).score(*sides)
    units = sum(1 + len(text if kind == "character" else text.split()) for text in sides[1])  # 1: the end
    perplexity = math.exp(-sum(each.log_probability for each in scored) / units)
    assert f"| {perplexity:.1f} |" in page
    assert f"base:e\\|unit:{unit}\\|ends:counted\\|context:the source and all target tokens before" in page


def test_the_time_of_teachers_stands_beside_the_students(publish: Publish, tiny_recipe: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    teachers = ["teachers.seeds=[3, 4]", "teachers.training={updates=12}", "teachers.search={beam=2, min_length=1}"]
    train_recipe(load_recipe(tiny_recipe, teachers), run, shown())
    record = run / "report.json"
    report = json.loads(record.read_text())
    report["teachers"][0]["seconds"] = 600
    report["teachers"][1]["seconds"] = 300
    report["training"]["seconds"] = 120
    record.write_text(json.dumps(report))
    assert "| 2, and 15 for 2 teachers |" in publish(run)


def test_the_difference_to_another_training(
    publish: Publish, tiny_recipe: Path, tiny_corpus: Path, tmp_path: Path
) -> None:
    runs = {seed: tmp_path / f"run-{seed}" for seed in (1, 2)}
    for seed, run in runs.items():
        train_recipe(load_recipe(tiny_recipe, [f"training.seed={seed}"]), run, shown())
    page = publish(runs[1], "--against", str(runs[2]), "training.seed=2")
    test = load_recipe(runs[1] / "recipe.toml").data.test["held_out"]  # type: ignore[attr-defined]
    pairs = {"source": tiny_corpus / test.source, "reference": tiny_corpus / test.target}
    scores = [transduce.evaluate(runs[seed], **pairs).to_dict()["scores"] for seed in (1, 2)]
    for metric in transduce.load(runs[1]).recipe.task.metrics:  # type: ignore[attr-defined]
        one, other = (each[metric] for each in scores)
        assert f"{one['value'] - other['value']:+.2f} [" in page
    assert "Seed 1 less `training.seed=2`, by a paired bootstrap over the sentences: held_out, " in page


def test_metrics_of_one_signature_have_a_heading_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """bAbI's errors and Cora's accuracies are counted alike, and so are a decision's loss and a perplexity."""
    for name in ("babi-1", "cora-1"):
        shutil.copy(ROOT / f"benchmarks/results/recipes/{name}.json", tmp_path)
    page = page_of_results(monkeypatch, tmp_path, RECORDS=tmp_path).page()
    heads = {recipe: page.partition(f"## {recipe}\n\n")[2].partition("\n")[0] for recipe in ("babi", "cora")}
    assert heads["cora"] == "| seed | test set | accuracy (1) | macro-F1 (4) |"
    assert heads["babi"] == "| seed | test set | error (2) | error, mean of 20 (3) |"
    assert page.count("`nrefs:1\\|unit:label\\|case:mixed` |") == 2
    same = [{"name": name, "signature": "base:e"} for name in ("validation loss", "perplexity")]
    numbered = loaded("benchmarks/metric_headings.py").numbered
    assert list(numbered(same).values()) == ["perplexity (1)", "validation loss (2)"]


def one_score(recipe: str, value: float, baseline: float | None = None, name: str = "accuracy") -> dict[str, Any]:
    """A record of one score, whose interval is two wide to each side, and of a baseline's."""
    score = {"test": "held_out", "name": name, "value": value, "interval": [value - 2, value + 2], "signature": "s"}
    trained = {"baseline": {"name": "bag of n-grams", "scores": [{**score, "value": baseline}]}}
    return {"recipe": recipe, "scores": [score], **(trained if baseline is not None else {})}


def test_scores_that_show_nothing_are_said_to() -> None:
    def said(*values: float, baseline: float | None = 80.0, **more: str) -> str:
        records = [one_score("r", value, baseline, **more) for value in values]
        return " ".join(remarks.remarks("r", records))

    remarks = loaded("benchmarks/remarks.py")
    assert said(79.0) == (
        "**Worse than its baseline:** accuracy is 79.00; the bag of n-grams, trained on the same files, has 80.00."
    )
    level = "**Not distinguishable from its baseline:** accuracy is 81.00; the bag of n-grams has 80.00, inside the "
    assert said(81.0) == f"{level}interval."
    assert said(79.0, 79.5).startswith("**Worse than its baseline:** accuracy is 79.25, the mean of 2 seeds; ")
    assert said(83.0, name="CER").startswith("**Worse than its baseline:** CER is 83.00; ")
    assert said(77.0, name="CER") == said(77.0, name="wrong bits a sequence") == ""
    assert said(81.0, 82.5) == said(82.5) == said(79.0, baseline=None) == ""
    nothing = "**This training has learnt nothing.** CER on held_out is 100, which is the score of empty outputs."
    assert said(100.0, baseline=None, name="CER").startswith(nothing)
    assert said(99.0, baseline=None, name="CER") == said(100.0, baseline=None) == ""


def test_a_baseline_of_another_recipe_with_the_same_files_counts() -> None:
    remarks = loaded("benchmarks/remarks.py")
    records = [one_score("sst2", 85.0, 83.0), one_score("sst2-transformer", 80.0)]
    [said] = remarks.remarks("sst2-transformer", records)
    assert "the baseline of [sst2](#sst2) (bag of n-grams), trained on the same files, has 83.00" in said
    bounded = one_score("ntm", 80.0, 83.0)
    bounded["baseline"]["name"] = "Bayes optimum"  # which no model can be above
    assert not [*remarks.remarks("ntm", [bounded])]


def test_recipes_without_a_record_are_named() -> None:
    without_record = loaded("benchmarks/remarks.py").without_record
    assert without_record(["b", "c", "a"], [{"recipe": "c"}]).endswith("no score of theirs is claimed: `a`, `b`.\n")
    assert without_record(["c"], [{"recipe": "c"}]) == ""


SEVERAL = [84.02, 85.28, 85.56]  # mean 84.95, standard deviation 0.82: 95 % by Student's t is 84.95 +- 2.04


@pytest.mark.parametrize(
    ("name", "values", "lower", "share", "reached", "undertrained"),
    [
        ("BLEU", [20.0, 10.0], False, 0.25, 0.5, True),
        ("BLEU", [38.0, 10.0], False, 0.25, 0.95, False),
        ("BLEU", [20.0, 10.0], False, 0.75, 0.5, False),
        ("WER", [80.0, 160.0], True, 0.25, 0.5, True),
    ],
)
def test_comparisons_are_told_beside_the_best_recipe(
    name: str, values: list[float], lower: bool, share: float, reached: float, undertrained: bool
) -> None:
    beside = loaded("benchmarks/beside_recipe.py")
    score = {"test": "t", "name": name, "signature": "s"}
    worse, best = (80.0, 40.0) if lower else (30.0, 40.0)
    records = [
        {"recipe": "slow", "target_tokens": 8_000_000, "scores": [{**score, "value": best}]},
        {"recipe": "quick", "target_tokens": 1_000, "scores": [{**score, "value": worse}]},
        {
            "recipe": "other",
            "target_tokens": 1_000,
            "scores": [{**score, "signature": "S", "value": 1.0 if lower else 99.0}],
        },
    ]
    variants = {str(value): {"seeds": {"1": value}} for value in values}
    compared = {**score, "lower_is_better": lower, "variants": variants}
    scale = beside.scale_of(compared, f"{share * 8000:.0f}ktok", records)
    assert (scale.recipe, scale.value, scale.undertrained) == ("slow", 40.0, undertrained)
    assert (scale.share, scale.reached) == pytest.approx((share, reached))
    assert beside.scale_of(compared, "20m", records) is None
    assert beside.scale_of({**compared, "test": "u"}, "20ktok", records) is None


@pytest.mark.parametrize(
    ("name", "values", "interval", "other", "wanted"),
    [
        ("accuracy", SEVERAL, None, 83.0, "at"),
        ("accuracy", SEVERAL, None, 82.8, "above"),
        ("accuracy", SEVERAL, None, 87.0, "below"),
        ("WER", [17.2], [14.1, 20.4], 12.0, "below"),
        ("WER", [17.2], [14.1, 20.4], 21.0, "above"),
        ("WER", [17.2], [14.1, 20.4], 20.0, "at"),
        ("perplexity", [100.2], None, 115.0, "above"),
        ("perplexity", [100.2], None, 99.5, "at"),
        ("perplexity", [77.9], None, 54.5, "below"),
    ],
)
def test_a_verdict(name: str, values: list[float], interval: list[float] | None, other: float, wanted: str) -> None:
    scores = [{"name": name, "value": value, "interval": interval} for value in values]
    assert loaded("benchmarks/verdicts.py").verdict(scores, other) == wanted


def test_a_changed_tree_is_not_put_on_record(publish: Publish, tiny_run: Path, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="commit the changes, and train again"):
        publish(tiny_run, "--commit", "abc-dirty")
    assert not (tmp_path / "records").exists()
    publish(tiny_run, "--name", "kept")
    kept, record = tmp_path / "records" / "kept.toml", json.loads((tmp_path / "records" / "kept.json").read_text())
    assert load_recipe(kept) == load_recipe(tiny_run / "recipe.toml")
    assert record["recipe_hash"] == loaded("benchmarks/publish.py").recipe_hash(kept)


RECORDED = sorted((ROOT / "benchmarks" / "results" / "recipes").glob("*.json"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_record_holds_the_recipe_that_it_is_of(path: Path) -> None:
    record, kept = json.loads(path.read_text(encoding="utf-8")), path.with_suffix(".toml")
    assert record["recipe_hash"] == loaded("benchmarks/publish.py").recipe_hash(kept)
    recipe = load_recipe(kept)
    assert (recipe.name, recipe.training.seed) == (record["recipe"], record["seed"])


def test_scores_made_again_are_compared_with_those_on_record() -> None:
    score = {"test": "t", "name": "accuracy", "search": "", "signature": "s", "value": 80.0, "interval": [78.0, 82.0]}
    other = {**score, "name": "perplexity", "value": 100.0, "interval": None}
    tiny = {**other, "name": "cost", "value": 1e-5}
    again = [
        {**score, "value": 81.9},
        {**other, "value": 101.5},
        {**score, "name": "macro-F1"},
        {**tiny, "value": 2e-5},
    ]
    rows = list(loaded("benchmarks/figures.py").compared([score, other, tiny], again))
    assert [row[-1] for row in rows] == ["yes", "no", "yes"]
