"""A few updates on Multi30k: the whole way from compressed text to translations, on data nobody made for a test."""

import io
from pathlib import Path

import pytest
from rich.console import Console

import transduce
from transduce.inference.decode import SearchPredictor
from transduce.recipe.recipe import load_recipe
from transduce.search.settings import Search
from transduce.training.diagnostics import alarms
from transduce.training.display import Display
from transduce.training.run import open_task, run_training
from transduce.training.validation import target_entropy

RECIPES = Path(__file__).resolve().parents[1] / "recipes"
SMALL = [
    "training.updates=120",
    "training.schedule=constant",
    "training.warmup=30",
    "training.validate_every=100000",
    "training.best=loss",
    "training.decode_sentences=60",
    "tokenizer.vocabulary=3000",
    "batch.tokens=1024",
    "model.d_model=128",
    "model.encoder_layers=2",
    "model.decoder_layers=2",
    "model.dropout=0.1",
    "search.beam=2",
]


@pytest.mark.slow
def test_a_little_training_teaches_more_than_word_frequencies(data_root: Path, tmp_path: Path) -> None:
    overrides = [f"data.root={data_root / 'multi30k'}", *SMALL]
    recipe = load_recipe(RECIPES / "multi30k-en-de.toml", overrides)
    recipe = recipe.model_copy(update={"data": recipe.data.model_copy(update={"test": {}})})
    shown = io.StringIO()
    report = run_training(recipe, tmp_path / "run", Display(Console(file=shown)))
    assert report["ended"] == "all 120 updates done"
    task, data = open_task(recipe, Display(Console(file=shown)))
    entropy = target_entropy(data.corpora[0][0], task.columns["target"])
    assert report["validation"]["loss"] < entropy - 0.5, (entropy, report["validation"])
    assert report["data"]["train"][0]["dropped"]["kept"] > 28_000
    model = transduce.load(tmp_path / "run")
    assert data.validation is not None
    sources = [source for source, _ in data.validation.texts[:30]]
    outputs = [each.text for each in SearchPredictor(task).predict(model.model, sources, Search(method="greedy"))]
    assert len(set(outputs)) > 3, outputs
    assert alarms(sources, outputs, [reference for _, reference in data.validation.texts[:30]], 0.0, 0.0) == []
