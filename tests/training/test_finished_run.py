"""What a finished run leaves behind, and what a recipe is refused for before hours are spent."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console

import transduce
from pipelines import pipeline as pipeline_of
from random_models import language_model, translator
from transduce.attention import capture
from transduce.core.errors import InputError, TransduceError
from transduce.core.padded import Padded
from transduce.inference.decode import SearchPredictor
from transduce.recipe.recipe import load_recipe
from transduce.runtime.event_log import read_log
from transduce.search.settings import Search
from transduce.training.display import Display
from transduce.training.dry_run import dry_run
from transduce.training.plots import shown as attention_shown
from transduce.training.run import run_training


def run(recipe: Path, folder: Path, *overrides: str) -> tuple[dict, str]:  # type: ignore[type-arg]
    shown = io.StringIO()
    report = run_training(load_recipe(recipe, overrides), folder, Display(Console(file=shown, width=200)))
    return report, shown.getvalue()


def test_the_report_says_what_was_made_of_what(tiny_run: Path) -> None:
    report = json.loads((tiny_run / "report.json").read_text())
    figures = set(report["validation"]) - {"update", "perplexity"}
    assert figures == set(report["validation_signatures"])
    assert "version:" in report["validation_signatures"]["bleu"]
    [train] = report["data"]["train"]
    assert train["source"] == "train.digits"
    assert train["examples"] == 300
    assert train["dropped"] == {"kept": 300, "counts": {}, "lines": {}}
    assert report["training"]["updates"] == 24
    assert report["validation"]["update"] == 24
    assert set(report["tests"]["held_out"]["scores"]) == {"bleu", "exact_match"}
    assert report["tests"]["held_out"]["search"]["beam"] == 3
    assert report["environment"]["versions"]["torch"] == torch.__version__
    model = transduce.load(tiny_run)
    assert report["model"]["parameters"] == sum(weight.numel() for weight in model.model.parameters())
    assert model.metrics == report["validation"]


def test_dropped_pairs_are_counted_by_reason_for_each_file(tiny_recipe: Path, tmp_path: Path) -> None:
    report, shown = run(tiny_recipe, tmp_path / "run", "data.filters.max_tokens=4", "training.updates=1")
    dropped = report["data"]["train"][0]["dropped"]
    assert dropped["counts"]["too long"] + dropped["kept"] == 300
    assert f"Dropped {dropped['counts']['too long']} of 300 pairs" in shown


@pytest.mark.parametrize("longest", [3, 9])
def test_outputs_of_validations_may_be_as_long_as_the_recipe_says(
    tiny_recipe: Path, tmp_path: Path, longest: int
) -> None:
    lengths = ("search.max_length_factor=0", f"search.max_length_offset={longest}", f"search.min_length={longest - 1}")
    run(tiny_recipe, tmp_path / "run", *lengths, "training.updates=1", "training.samples=5")
    [event] = [event for event in read_log(tmp_path / "run" / "log.jsonl") if event["event"] == "samples"]
    tokenizer = transduce.load(tmp_path / "run").task.tokenizers["target"]
    outputs = tokenizer.encode([sample["output"] for sample in event["samples"]])
    assert {len(ids) for ids in outputs} <= {longest - 1, longest}  # with its end, or cut


def test_the_resolved_recipe_is_the_recipe(tiny_run: Path) -> None:
    resolved = load_recipe(tiny_run / "recipe.toml")
    assert resolved == load_recipe(tiny_run.parent / "tiny.toml")


def test_the_log_tells_training_and_validation(tiny_run: Path) -> None:
    events = read_log(tiny_run / "log.jsonl")
    assert [event["update"] for event in events if event["event"] == "train"] == list(range(3, 25, 3))
    assert [event["update"] for event in events if event["event"] == "validation"] == [6, 12, 18, 24]
    first, last = ([event["loss"] for event in events if event["event"] == "train"][place] for place in (0, -1))
    assert last < first


def test_figures_are_drawn(tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.delenv("TRANSDUCE_FIGURES")
    run(tiny_recipe, tmp_path / "run", "training.updates=3")
    for name in ("training.png", "attention.png"):
        assert (tmp_path / "run" / "figures" / name).read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_no_figures_are_drawn_where_they_are_off(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSDUCE_FIGURES", "off")
    _, shown = run(tiny_recipe, tmp_path / "run", "training.updates=1")
    assert not (tmp_path / "run" / "figures").exists()
    assert "igures" not in shown
    monkeypatch.setenv("TRANSDUCE_FIGURES", "none")
    with pytest.raises(InputError, match="TRANSDUCE_FIGURES=none: expected on or off"):
        run(tiny_recipe, tmp_path / "another")
    assert not (tmp_path / "another").exists()


def test_without_matplotlib_a_line_says_so(tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSDUCE_FIGURES", "on")
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(__import__("sys").modules, name, None)  # type: ignore[arg-type]
    _, shown = run(tiny_recipe, tmp_path / "run", "training.updates=3")
    assert shown.count("Figures left out: drawing figures needs matplotlib") == 1
    assert (tmp_path / "run" / "report.json").exists()


def test_the_attention_shown_is_that_of_the_greedy_translation() -> None:
    pipeline = translator()
    shown = attention_shown(pipeline.model, pipeline.task, "ba de fi go")
    assert shown is not None
    rows, columns, weights_TS = shown
    [found] = SearchPredictor(pipeline.task).predict(pipeline.model, ["ba de fi go"], Search(method="greedy"))
    assert columns == ["ba", "de", "fi", "go", "</s>"]
    assert rows == [*found.tokens, *(["</s>"] if found.ended else [])]
    np.testing.assert_allclose(weights_TS.sum(axis=1), 1, rtol=1e-5)
    ids = pipeline.task.tokenizers["target"].encode([" ".join(found.tokens)])[0]
    source = Padded(
        torch.tensor([[*pipeline.task.tokenizers["source"].encode(["ba de fi go"])[0], 2]]), torch.tensor([5])
    )
    with capture(pipeline.model) as record, torch.no_grad():
        pipeline.model(source, Padded(torch.tensor([[1, *ids][: len(rows)]]), torch.tensor([len(rows)])))
    layers = [record[f"decoder.blocks.{layer}.cross_attention"][0] for layer in range(2)]
    np.testing.assert_allclose(weights_TS, (layers[0] + layers[1])[0].sum(0).numpy() / 4, rtol=1e-5)


@pytest.mark.parametrize("name", ["bahdanau", "luong", "convolution"])
def test_attention_is_shown_whatever_its_module_is_called(name: str) -> None:
    made = pipeline_of(name)
    shown = attention_shown(made.model, made.task, "ba de fi go")
    assert shown is not None
    assert shown[1] == ["ba", "de", "fi", "go", "</s>"]
    np.testing.assert_allclose(shown[2].sum(axis=1), 1, rtol=1e-5)


def test_a_language_model_has_no_source_to_show() -> None:
    pipeline = language_model()
    assert attention_shown(pipeline.model, pipeline.task, "ba de") is None


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ('task.metrics=["blue"]', 'there is no "blue". Did you mean "bleu"?'),
        ('task.metrics=["bleu-lc-moses"]', "bleu-lc-moses tokenizes by language"),
        ("data.root=/nowhere", "no such file; even the folder /nowhere does not exist"),
    ],
)
def test_what_would_fail_later_is_refused_now(tiny_recipe: Path, tmp_path: Path, override: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        run(tiny_recipe, tmp_path / "run", override)
    assert said in str(caught.value)
    assert not (tmp_path / "run" / "checkpoints").exists()


@pytest.mark.parametrize("override", ['task.metrics=["chrf"]', "training.decode_sentences=0"])
def test_best_by_bleu_needs_bleu(tiny_recipe: Path, tmp_path: Path, override: str) -> None:
    with pytest.raises(InputError, match='best = "bleu", but validation does not measure it'):
        run(tiny_recipe, tmp_path / "run", override, "training.best=bleu")


def test_a_loss_that_is_no_number_ends_training_and_says_what_to_do(tiny_recipe: Path, tmp_path: Path) -> None:
    wild = ("training.learning_rate=1e30", "training.clip=0", "training.warmup=0", "training.optimizer=adamw")
    with pytest.raises(TransduceError, match=r"A lower training\.learning_rate"):
        run(tiny_recipe, tmp_path / "run", *wild)
    assert not (tmp_path / "run" / "model.safetensors").exists()


def test_a_dry_run_measures_what_training_uses(tiny_recipe: Path, tiny_run: Path) -> None:
    figures = dry_run(load_recipe(tiny_recipe), Display(Console(file=io.StringIO())))
    report = json.loads((tiny_run / "report.json").read_text())
    assert figures["parameters"] == report["model"]["parameters"]
    assert figures["examples"] == 300
    assert figures["memory_bytes"]["activations"] > 0
    assert 0 <= figures["padding"]["target"] < 0.5
    assert figures["target_tokens_a_batch"] <= 120


def test_the_report_of_a_run_with_bpe_dropout_names_each_file_once(tiny_recipe: Path, tmp_path: Path) -> None:
    cut = ("tokenizer.kind=bpe", "tokenizer.vocabulary=60", "data.bpe_dropout=0.3", "training.updates=2")
    report, _ = run(tiny_recipe, tmp_path / "run", *cut)
    files = report["data"]["train"]
    assert [each["source"] for each in files] == ["train.digits"]
    assert files[0]["examples"] == 300
