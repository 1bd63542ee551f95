"""Pipelines with random weights: the hard case for equality, as their next tokens are all but equally likely."""

import random
from collections.abc import Sequence
from typing import Any

import torch

from text_columns import text_columns
from transduce.core.model_file import ModelFile, lasting_tensors
from transduce.data.columns.frames import Frames
from transduce.data.columns.packed import pack
from transduce.data.columns.tokens import Tokens
from transduce.data.tags import with_tags
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.pipeline.outline import make_model, make_task
from transduce.pipeline.pipeline import Pipeline
from transduce.recipe.recipe import parse_recipe

SYLLABLES = [first + last for first in "bdfgklmnprst" for last in "aeiou"]
POEMS = ["春眠不觉晓|处处闻啼鸟|夜来风雨声|花落知多少", "白日依山尽|黄河入海流|欲穷千里目|更上一层楼"]
SHORT = {"max_length_factor": 0.5, "max_length_offset": 4}


def sentences(count: int, seed: int = 1, longest: int = 12) -> list[str]:
    """Random words; about one in fifty is empty."""
    drawn = random.Random(seed)
    return [" ".join(drawn.choices(SYLLABLES, k=drawn.randrange(longest + 1))) for _ in range(count)]


def translator(
    kind: str = "whitespace", seed: int = 3, tags: Sequence[str] = (), **sections: dict[str, Any]
) -> Pipeline:
    """An encoder-decoder of 2 + 2 layers. tags: tokens that may stand before a source."""
    model: dict[str, Any] = {"d_model": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "feed_forward": 24}
    model["tied"] = "none"  # a random model that reads and writes with one matrix repeats what it reads
    data = {"train": [{"source": "a", "target": "b"}]}
    return _pipeline({"data": data, "model": model, **sections}, kind, seed, tags)


DECODER = {"kind": "transformer_decoder", "d_model": 16, "heads": 2, "layers": 2, "feed_forward": 24, "tied": False}


def language_model(seed: int = 1, context: int = 24, model: dict[str, Any] = DECODER, **sections: Any) -> Pipeline:
    """A decoder of 2 layers."""
    table = {
        "task": {"kind": "language_modelling", "context": context},
        "data": {"train": [{"text": "a"}]},
        "model": model,
        **sections,
    }
    return _pipeline(table, "whitespace", seed)


def poet(seed: int = 1, direction: str = "left_to_right") -> Pipeline:
    """A random model of the characters of two poems, by which lines are of any length."""
    table: dict[str, Any] = {
        "name": "poet",
        "task": {"kind": "language_modelling", "context": 64, "direction": direction},
        "data": {"train": [{"text": "a"}]},
        "tokenizer": {"kind": "character", "min_frequency": 1},
        "model": {"kind": "rnn_decoder", "d_model": 16, "layers": 1, "tied": False},
        "search": {"max_length_offset": 40},
    }
    recipe = parse_recipe(table, "test")
    tokenizer = train_tokenizer(TokenizerConfig(kind="character", min_frequency=1), POEMS)
    task = make_task(recipe, {"target": Tokens(tokenizer, stream=True)})
    torch.manual_seed(seed)
    model = make_model(recipe, task)
    file = ModelFile(
        lasting_tensors(model), recipe.to_table(), pack(task.columns)[0], {}, {}, columns=pack(task.columns)[1]
    )
    return Pipeline(file)


def model_file(pipeline: Pipeline) -> ModelFile:
    """What a training would have written."""
    weights = {name: weight.detach() for name, weight in pipeline.model.named_parameters()}
    tokenizers, columns = pack(pipeline.task.columns)
    return ModelFile(weights, pipeline.recipe.to_table(), tokenizers, {"seed": 1}, {"loss": 2.0}, columns=columns)


def _pipeline(table: dict[str, Any], kind: str, seed: int, tags: Sequence[str] = ()) -> Pipeline:
    tokenizer_table = {"kind": kind, "vocabulary": 90, "min_frequency": 1}
    recipe = parse_recipe({"name": "random", "tokenizer": tokenizer_table, "search": SHORT, **table}, "test")
    tokenizer = with_tags(train_tokenizer(TokenizerConfig(**tokenizer_table), sentences(200, seed=9)), tags)
    reads = recipe.to_table()["task"]["kind"] != "language_modelling"
    task = make_task(recipe, text_columns(tokenizer if reads else None, tokenizer))
    torch.manual_seed(seed)
    model = make_model(recipe, task)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)  # biases and norms are not left at 0 and 1
        model.get_submodule("output").weight[task.end] *= 3  # likeliest now and then
    weights = lasting_tensors(model)
    return Pipeline(ModelFile(weights, recipe.to_table(), pack(task.columns)[0], {"seed": seed}, {}))


def listener(kind: str = "transformer", seed: int = 3, rate: int = 8000, mels: int = 20, **sections: Any) -> Pipeline:
    """A model of speech: what it hears becomes syllables."""
    sizes: dict[str, Any] = {"heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 24}
    table = {
        "name": "random",
        "task": {"kind": "speech_recognition"},
        "data": {"train": [{"file": "a.tsv"}], "rate": rate, "mels": mels},
        "tokenizer": {"kind": "character", "min_frequency": 1},
        "model": {"kind": kind, "d_model": 16, **({"hidden": 16} if kind == "rnn" else sizes)},
        "search": SHORT if kind == "ctc" else {**SHORT, "min_length": 2, "beam": 3},
        **sections,
    }
    recipe = parse_recipe(table, "test")
    tokenizer = train_tokenizer(TokenizerConfig(kind="character", min_frequency=1), ["零一二三四五六七八九"])
    task = make_task(recipe, {"source": Frames(mels, rate), "target": Tokens(tokenizer, starts=True, ends=True)})
    torch.manual_seed(seed)
    model = make_model(recipe, task)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    tokenizers, columns = pack(task.columns)
    return Pipeline(
        ModelFile(lasting_tensors(model), recipe.to_table(), tokenizers, {"seed": seed}, {}, columns=columns)
    )
