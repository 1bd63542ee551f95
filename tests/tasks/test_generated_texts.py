"""Classification of generated rows: settings, and a model that attends to what counts and to nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

import transduce
from forked import transduce as command
from transduce.data.glyph_rows import counts, glyph_row
from transduce.data.labelled import LabelledFile, read_labelled
from transduce.interpret.word_shading import WordShading
from transduce.tasks.classification import ClassificationData

RECIPE = """
task = { kind = "classification", baseline = false }
tokenizer = { kind = "whitespace", min_frequency = 1 }
batch = { tokens = 1024 }
[data]
train = [{ generated = "find_eight", examples = 20000, seed = 1 }]
validation = { generated = "find_eight", examples = 100, seed = 2 }
test = { eights = { generated = "find_eight", examples = 200, seed = 3 } }
[model]
kind = "classifier"
encoder = "none"
d_model = 64
dropout = 0.0
[training]
threads = 1
updates = 1000
label_smoothing = 0.0
learning_rate = 3e-3
warmup = 100
precision = "fp32"
validate_every = 500
checkpoint_every = 500
"""


@pytest.mark.parametrize("weighing", ["softmax", "hard"])
def test_it_finds_the_8_and_looks_at_nothing_else(weighing: str, tmp_path: Path) -> None:
    recipe = tmp_path / "eights.toml"
    recipe.write_text(RECIPE)
    done = command(tmp_path, "train", recipe, "--run", tmp_path / "run", f"model.pooling_weighing={weighing}")
    assert done.code == 0, done.shown
    assert "find_eight: " in done.shown
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["tests"]["eights"]["scores"]["accuracy"]["value"] >= 90
    assert report["data"]["eights"]["generated"] == "find_eight"
    model = transduce.load(tmp_path / "run")
    shares = []
    for number in range(100):
        text = glyph_row("find_eight", 4, number)[0]
        shading = WordShading.of(model.predict(text))
        on = [counts("find_eight", word.text) for word in shading.words]
        shares.append(shading.mean[on].sum())
    assert sum(shares) / len(shares) > 0.8  # an even look at all would give 0.11


def test_rows_are_read_as_those_of_a_file(tmp_path: Path) -> None:
    rows = list(read_labelled(LabelledFile(generated="black_cards", examples=3, seed=7), tmp_path))
    assert rows == [(number + 1, *glyph_row("black_cards", 7, number)) for number in range(3)]
    assert list(read_labelled(LabelledFile(generated="black_cards", examples=3, seed=7), tmp_path, {"99": "x"})) == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, r'expected file = "..." or generated = "..."; got neither'),
        ({"file": "a.tsv", "generated": "black_cards"}, "got both"),
        ({"generated": "black_cards", "trees": True}, "trees: not read with generated examples"),
        ({"file": "a.tsv", "seed": 3}, "seed: not read with a file"),
        ({"generated": "red_cards"}, "black_cards"),
    ],
)
def test_settings_of_the_other_kind_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        LabelledFile.model_validate(settings)


def test_examples_of_training_are_no_test() -> None:
    train = {"generated": "black_cards", "seed": 1}
    ClassificationData.model_validate({"train": [train], "test": {"t": {**train, "seed": 2}}})
    ClassificationData.model_validate({"train": [train], "test": {"t": {**train, "generated": "find_eight"}}})
    with pytest.raises(ValidationError, match="t: seed = 1 generates examples of another set"):
        ClassificationData.model_validate({"train": [train], "test": {"t": {**train, "examples": 5}}})
