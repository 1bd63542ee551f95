"""Classification of generated rows: settings, and a model that attends to what counts and to nothing else."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from pydantic import ValidationError

import transduce
from forked import transduce as command
from scripts import loaded
from transduce.attention.capture import capture
from transduce.core.padded import Padded
from transduce.data.labelled import LabelledFile, glyph_row, read_labelled
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.tasks.classification import Classification, ClassificationConfig, ClassificationData

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


@pytest.mark.parametrize("normalizer", ["softmax", pytest.param("hard", marks=pytest.mark.slow)])
def test_it_finds_the_8_and_looks_at_nothing_else(normalizer: str, tmp_path: Path) -> None:
    recipe = tmp_path / "eights.toml"
    recipe.write_text(RECIPE)
    done = command(tmp_path, "train", recipe, "--run", tmp_path / "run", f"model.pooling_normalizer={normalizer}")
    assert done.code == 0, done.shown
    assert "find_eight: " in done.shown
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    assert report["tests"]["eights"]["scores"]["accuracy"]["value"] >= 90
    assert report["data"]["eights"]["generated"] == "find_eight"
    model = transduce.load(tmp_path / "run")
    rows = [glyph_row("find_eight", 4, number) for number in range(100)]
    found = loaded("benchmarks/looked_at.py").looked(model, "find_eight", rows)
    for look, (text, label) in zip(found, rows, strict=True):
        column = model.task.columns["source"]
        source = torch.tensor([[*column.encode([text])[0], column.tokenizer.end]])
        with capture(model.model) as record:
            logits_1C = model.model.classify(Padded(source, torch.tensor([source.shape[1]])))
        weights_S = record["pool"][0][0, 0, 0]
        place = int(label) - 1
        assert look.share == pytest.approx(weights_S[place].item(), abs=1e-5)
        assert look.seen == (weights_S.argmax() == place)
        assert look.answer == model.task.columns["target"].tokens([int(logits_1C.argmax())])[0]
        assert look.right == (look.answer == label)
        assert look.hops == [pytest.approx(weights_S[: len(text.split())].tolist(), abs=1e-3)]
    assert sum(look.share for look in found) / len(found) > 0.8  # an even look would give 0.11


def test_rows_are_read_as_those_of_a_file(tmp_path: Path) -> None:
    rows = list(read_labelled(LabelledFile(generated="black_cards", examples=3, seed=7), tmp_path))
    assert rows == [(number + 1, *glyph_row("black_cards", 7, number)) for number in range(3)]
    assert list(read_labelled(LabelledFile(generated="black_cards", examples=3, seed=7), tmp_path, {"99": "x"})) == []


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, r'expected file = "..." or generated = "..."; got neither'),
        ({"file": "a.tsv", "generated": "black_cards"}, "got both"),
        ({"generated": "black_cards", "seed": 1}, 'generated = "black_cards" needs examples and seed'),
        ({"generated": "black_cards", "trees": True}, "trees: not read with generated examples"),
        ({"file": "a.tsv", "seed": 3}, "seed: not read with a file"),
        ({"generated": "red_cards"}, "black_cards"),
    ],
)
def test_settings_of_the_other_kind_are_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        LabelledFile.model_validate(settings)


def test_a_file_tells_nothing_of_generated_examples(tmp_path: Path) -> None:
    """Its entry in reports and model files, and its place in the cache, are what they were without them."""
    (tmp_path / "train.tsv").write_text("a\tx\nb\ty\n")
    data = ClassificationData.model_validate({"root": str(tmp_path), "train": [{"file": "train.tsv"}]})
    columns = Classification.learn_columns(TokenizerConfig(kind="whitespace", min_frequency=1), data)
    opened = Classification(ClassificationConfig(), data, columns).open(tmp_path / "cache", lambda line: None)
    [entry] = opened.provenance["train"]
    assert sorted(entry) == ["file", "label", "phrases", "sha256", "text", "trees", "weight"]
    [(store, _)] = opened.corpora
    assert sorted(store.metadata["settings"]) == ["filters", "label", "labels", "phrases", "text", "trees"]


def test_examples_of_training_are_no_test() -> None:
    train = {"generated": "black_cards", "examples": 9, "seed": 1}
    ClassificationData.model_validate({"train": [train], "test": {"t": {**train, "seed": 2}}})
    ClassificationData.model_validate({"train": [train], "test": {"t": {**train, "generated": "find_eight"}}})
    with pytest.raises(ValidationError, match="t: seed = 1 generates examples of training"):
        ClassificationData.model_validate({"train": [train], "test": {"t": {**train, "examples": 5}}})
