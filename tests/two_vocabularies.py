"""A random translator whose sides have a tokenizer each."""

from typing import Any

import torch

from random_models import SHORT, sentences
from text_columns import text_columns
from transduce.core.model_file import ModelFile, lasting_tensors
from transduce.data.columns.packed import pack
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.pipeline.outline import make_model, make_task
from transduce.pipeline.pipeline import Pipeline
from transduce.recipe.recipe import parse_recipe


def translator_of_two(**model: Any) -> Pipeline:
    """Its target's words begin with an n."""
    sizes = {"d_model": 16, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "feed_forward": 24, "tied": "none"}
    data = {"train": [{"source": "a", "target": "b"}]}
    table = {"name": "random", "search": SHORT, "data": data, "model": {**sizes, **model}}
    recipe = parse_recipe({**table, "tokenizer": {"kind": "unigram", "joint": False}}, "test")
    lines = sentences(200, seed=9)
    source = train_tokenizer(TokenizerConfig(kind="unigram", vocabulary=90), lines)
    others = [" ".join(f"n{word}" for word in line.split()) for line in lines]
    target = train_tokenizer(TokenizerConfig(kind="unigram", vocabulary=70), others)
    task = make_task(recipe, text_columns(source, target))
    torch.manual_seed(5)
    network = make_model(recipe, task)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return Pipeline(ModelFile(lasting_tensors(network), recipe.to_table(), pack(task.columns)[0], {}, {}))
