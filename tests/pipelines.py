"""Random models of every architecture, which the tests of explored numbers share."""

from typing import Any

from random_models import _pipeline as pipeline_of
from random_models import translator
from transduce.pipeline.pipeline import Pipeline

TEXT = "ba de fi go ku"
STACK: dict[str, Any] = {"d_model": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "tied": "none"}
PLAIN: dict[str, Any] = {**STACK, "feed_forward": 24}
MODELS: dict[str, dict[str, Any]] = {
    "transformer": PLAIN,
    "grouped": {**PLAIN, "heads": 4, "key_value_heads": 2, "norm": "post"},
    "rotary": {**PLAIN, "positions": "rotary"},
    "alibi": {**PLAIN, "positions": "alibi"},
    "shaw": {**PLAIN, "positions": "shaw"},
    "t5": {**PLAIN, "positions": "t5", "score": "dot"},
    "learned": {**PLAIN, "positions": "learned", "score": "additive", "normalizer": "entmax"},
    "cosine": {**PLAIN, "positions": "none", "score": "cosine", "normalizer": "local_monotonic"},
    "bilinear": {**PLAIN, "score": "bilinear", "normalizer": "local_predictive", "pattern": "local", "stride": 2},
    "pointer": {**PLAIN, "pointer": True},
    "non_autoregressive": {**PLAIN, "kind": "non_autoregressive"},
    "ctc": {**PLAIN, "kind": "ctc"},
    "linear_transformer": {**PLAIN, "kind": "linear_transformer"},
    "ssru_transformer": {**PLAIN, "kind": "ssru_transformer"},
    "convolution": {**STACK, "kind": "convolution", "kernel": 3},
    "location_aware": {**STACK, "kind": "convolution", "kernel": 3, "score": "location_aware"},
    "bahdanau": {"kind": "rnn", "d_model": 16, "hidden": 16, "tied": "none"},
    "luong": {"kind": "rnn", "d_model": 16, "hidden": 16, "tied": "none", "attention": "luong", "heads": 2},
    "monotonic": {"kind": "rnn", "d_model": 16, "hidden": 16, "tied": "none", "normalizer": "monotonic"},
    "no_attention": {"kind": "rnn", "d_model": 16, "hidden": 16, "tied": "none", "attention": "none"},
}
SEEDS = {"transformer": 3, "alibi": 3, "t5": 3, **dict.fromkeys(("grouped", "rotary", "bilinear", "no_attention"), 2)}
SEEDS["convolution"] = 2  # by the others' a random model gives next to nothing
DECODERS: dict[str, dict[str, Any]] = {
    "transformer_decoder": {"kind": "transformer_decoder", "d_model": 16, "heads": 2, "layers": 2, "tied": False},
    "linear_decoder": {"kind": "linear_transformer_decoder", "d_model": 16, "heads": 2, "layers": 2, "tied": False},
}


def pipeline(name: str, tokenizer: str = "whitespace") -> Pipeline:
    """A random model of this name, of MODELS or DECODERS."""
    if name in DECODERS:
        task = {"kind": "language_modelling", "context": 24}
        return pipeline_of({"task": task, "data": {"train": [{"text": "a"}]}, "model": DECODERS[name]}, tokenizer, 1)
    return translator(tokenizer, SEEDS.get(name, 1), model=MODELS[name])
