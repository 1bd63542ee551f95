"""benchmarks/decisions.py: one decision at a time is another; validation, time promised and time taken are kept."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import ROOT, loaded, page_of_results
from transduce.recipe.recipe import load_recipe

SETTINGS = ("training.updates=20", "training.precision=fp32", "training.validate_every=5")


@pytest.mark.slow
def test_each_variant_is_trained_once_and_its_best_validation_kept(
    recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    script = loaded("benchmarks/decisions.py")
    saved = dict[str, Any]()
    monkeypatch.setattr(script, "save_measurement", lambda name, seconds, **found: saved.update({name: found}))
    variants = ["half-the-batch", "dropout-0.3", "smaller"]  # the last two: as decided; there is none
    both = [word for setting in SETTINGS for word in ("--both", setting)]
    asked = [str(recipe), "--runs", str(tmp_path), "--variants", *variants, "--record", *both]
    monkeypatch.setattr(sys, "argv", ["decisions.py", *asked])
    script.main()
    shown = capfd.readouterr().out

    trainings = saved["decisions/toy"]["trainings"]
    assert list(trainings) == ["as-decided", "half-the-batch"]
    usual, half = (load_recipe(tmp_path / "toy" / name / "recipe.toml") for name in trainings)
    assert half.batch.tokens == usual.batch.tokens / 2
    assert (usual.training.updates, half.training.updates) == (20, 40)
    assert half.model == usual.model
    for name, each in trainings.items():
        folder = tmp_path / "toy" / name
        lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
        assert each["validation"]["loss"] == min(line["loss"] for line in lines if line["event"] == "validation")
        told = json.loads((folder / "report.json").read_text())["plan"]
        assert (each["promised_seconds"], each["took_seconds"]) == (told["promised_seconds"], told["took_seconds"])
    half = trainings["half-the-batch"]
    row = next(line for line in shown.splitlines() if line.startswith("| `toy` | `half-the-batch` | 40 | "))
    assert row.endswith(f" {half['took_seconds'] / half['promised_seconds']:.2f} |")

    before = {each: each.stat().st_mtime_ns for each in tmp_path.rglob("*.safetensors")}
    script.main()
    assert {each: each.stat().st_mtime_ns for each in tmp_path.rglob("*.safetensors")} == before


@pytest.mark.parametrize(
    ("name", "decided", "changed"),
    [
        ("dropout-0.1", {"model": {"dropout": 0.2}}, ["model.dropout=0.1"]),
        ("dropout-0.2", {"model": {"dropout": 0.2}}, []),
        ("pointer", {"tokenizer": {"joint": True}}, ["model.pointer=true"]),
        ("pointer", {"tokenizer": {"source": {}, "target": {}}}, []),
        ("half-the-rate", {"training": {"learning_rate": 4e-3}}, ["training.learning_rate=0.002"]),
        (
            "twice-the-batch",
            {"batch": {"tokens": 512}, "training": {"updates": 3401}},
            ["batch.tokens=1024", "training.updates=1700"],
        ),
        (
            "larger",
            {"model": {"d_model": 64, "encoder_layers": 2}},
            [
                *("model.d_model=128", "model.heads=4", "model.encoder_layers=3", "model.decoder_layers=3"),
                *("model.feed_forward=256", "training.learning_rate=0.004"),
            ],
        ),
        ("smaller", {"model": {"d_model": 64, "encoder_layers": 2}}, []),
    ],
)
def test_what_a_variant_changes(
    recipe: Path, monkeypatch: pytest.MonkeyPatch, name: str, decided: dict[str, Any], changed: list[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    script = loaded("benchmarks/decisions.py")
    assert script.VARIANTS[name](load_recipe(recipe), decided) == changed


def test_records_make_one_table_of_scores_and_one_of_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = {
        "date": "2026-01-01",
        "commit": "0123456789",
        "threads": 1,
        "machine": {"processor": "a processor", "kernels": "avx512"},
        "versions": {"python": "3.11", "torch": "2.13"},
    }
    records = tmp_path / "records"
    records.mkdir()
    for recipe, metric, names in (
        ("words", "exact_match", ("as-decided", "larger")),
        ("text", "bleu", ("as-decided",)),
    ):
        training = {"change": [], "updates": 1200, "parameters": 34000, "promised_seconds": 60.0, "took_seconds": 66.0}
        scores = [{"metric": key, "name": key, "signature": f"of {key}"} for key in (metric, "loss")]
        found = {name: {**training, "validation": {metric: 12.34, "loss": 0.1234}} for name in names}
        record = {
            **about,
            "recipe": recipe,
            "metric": metric,
            "scores": scores,
            "trainings": found,
            "busy": recipe == "text",
        }
        (records / f"{recipe}.json").write_text(json.dumps(record), encoding="utf-8")
    page = page_of_results(monkeypatch, tmp_path, DECISIONS=records).page()
    assert "|  | `text`: bleu (1) | `text`: loss (3) | `words`: exact_match (2) | `words`: loss (3) |" in page
    assert "| as decided | 12.3 | 0.123 | 12.3 | 0.123 |" in page
    assert "| `larger` |  |  | 12.3 | 0.123 |" in page
    assert "| `words` | `larger` | 1,200 | 34,000 | 1.0 | 1.1 | 1.10 |" in page
    assert "| `text` | as decided |" not in page  # its times say nothing
    assert "| exact_match (2) | `of exact_match` |" in page
