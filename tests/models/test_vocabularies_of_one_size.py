"""Two vocabularies that happen to be equally large are still two: nothing is shared between them, and no id copied."""

from typing import Any

import pytest
import torch

from text_columns import text_columns
from transduce.core.errors import InputError
from transduce.core.model_file import ModelFile, lasting_tensors, load_model_file, save_model_file
from transduce.data.columns import Columns
from transduce.data.columns.packed import pack
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.pipeline.outline import make_model, make_task
from transduce.pipeline.pipeline import Pipeline
from transduce.recipe.recipe import Recipe, parse_recipe
from transduce.without_torch.translator import load

LATIN, GREEK = ["abcd dcba", "bad cab"], ["αβγδ δγβα", "βαδ γαβ"]
SMALL = {"d_model": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 24}
KINDS = ["transformer", "convolution", "linear_transformer", "ssru_transformer", "non_autoregressive"]


def recipe(kind: str = "transformer", **model: Any) -> Recipe:
    keys = {} if kind == "convolution" else SMALL
    keys = {**keys, "kind": kind, **model}
    data = {"train": [{"source": "a", "target": "b"}]}
    table = {"name": "two", "data": data, "tokenizer": {"joint": False}, "model": keys}
    return parse_recipe(table, "test")


def columns(source: list[str], target: list[str]) -> Columns:
    config = TokenizerConfig(kind="character", min_frequency=1)
    made = text_columns(train_tokenizer(config, source), train_tokenizer(config, target))
    assert made["source"].spec.size == made["target"].spec.size
    return made


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("one", [False, True])
def test_embeddings_are_shared_between_the_sides_of_one_vocabulary_only(kind: str, one: bool) -> None:
    given = recipe(kind, tied="all")
    model: Any = make_model(given, make_task(given, columns(LATIN, LATIN if one else GREEK)))
    assert (model.source_embedding is model.target_embedding) is one
    assert model.output is model.target_embedding


def test_no_ids_are_copied_from_another_vocabulary() -> None:
    given = parse_recipe({**recipe().to_table(), "tokenizer": {}, "model": {**SMALL, "pointer": True}}, "test")
    with pytest.raises(InputError, match=r"both sides need one vocabulary.*tokenizer\.joint = true"):
        make_model(given, make_task(given, columns(LATIN, GREEK)))
    make_model(given, make_task(given, columns(LATIN, LATIN)))


def test_older_files_of_such_models_predict_as_they_did(tmp_path: Any) -> None:
    """They have one matrix for both sides; a file of today has two."""
    given = recipe(tied="all", positions="sinusoidal")
    task = make_task(given, columns(LATIN, GREEK))
    torch.manual_seed(3)
    outputs = {}
    for name, shared in (("older", True), ("newer", False)):
        weights = {name: w.detach() * 3 for name, w in lasting_tensors(make_model(given, task, shared)).items()}
        assert ("source_embedding.weight" in weights) is not shared
        tokenizers, tables = pack(task.columns)
        path = tmp_path / name / "model.safetensors"
        path.parent.mkdir()
        save_model_file(path, ModelFile(weights, given.to_table(), tokenizers, {}, {}, columns=tables))
        pipeline = Pipeline(load_model_file(path))
        model: Any = pipeline.model
        assert (model.source_embedding is model.target_embedding) is shared
        outputs[name] = [each.text for each in pipeline.predict(LATIN)]
        assert outputs[name] == [each.text for each in load(path).predict(LATIN)]
    assert outputs["older"] != outputs["newer"]
