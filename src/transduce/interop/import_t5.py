"""T5 and mT5, read into our Transformer: RMS norm before each sub-layer, buckets of distances, scores without a scale.

Linear maps of T5 have no biases; ours are 0, and fine-tuning may change them. With one matrix for embeddings and
output, T5 multiplies the last states by 1 / sqrt(D), and embeddings by nothing. With the matrix E / sqrt(D), ours
computes the same: embeddings are multiplied by sqrt(D), states by nothing. With an output of its own (T5 1.1, mT5),
nothing is scaled.

Shapes: D model width.
"""

from typing import Any

import torch
from torch import Tensor

from transduce.attention.relative import BUCKETS, FARTHEST
from transduce.core.errors import InputError
from transduce.interop.foreign_folder import ForeignFolder, ForeignTensors
from transduce.interop.import_bart import Weights, take_embeddings

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "silu": "swish",
    "gated-gelu": "geglu_tanh",
    "gated-gelu_new": "geglu_tanh",
    "gated-silu": "swiglu",
}


def read_t5(folder: ForeignFolder) -> tuple[dict[str, Any], Weights]:
    """The [model] section, and the weights by our names.

    Raises:
        InputError: settings that our Transformer does not have; tensors are missing, or are not known.
    """
    table = _settings(folder)
    tensors, weights = folder.tensors(), Weights()
    for side, layers in (("encoder", table["encoder_layers"]), ("decoder", table["decoder_layers"])):
        bias = f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        weights[f"{side}.blocks.0.self_attention.positions.bias_KH"] = tensors.take(bias)
        for layer in range(layers):
            _layer(tensors, weights, side, layer, gated=table["activation"] in ("geglu_tanh", "swiglu"))
        weights[f"{side}.norm.weight"] = tensors.take(f"{side}.final_layer_norm.weight")
    table |= take_embeddings(tensors, weights, "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
    tensors.finish(["decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"])  # of old files; unused
    tied = folder.config.get("tie_word_embeddings") is not False
    if folder.get("scale_decoder_outputs", bool, tied):
        table["scale_embeddings"] = True
        for name in ("target_embedding.weight", "source_embedding.weight", "output.weight"):
            if name in weights:
                weights[name] = weights[name] * table["d_model"] ** -0.5
    return table, weights


def _settings(folder: ForeignFolder) -> dict[str, Any]:
    width, heads, layers = folder.size("d_model"), folder.size("num_heads"), folder.layers("num_layers")
    activation = folder.get("feed_forward_proj", str, "relu")
    problems = []
    if activation not in ACTIVATIONS:
        problems.append(f'feed_forward_proj: expected one of {", ".join(ACTIVATIONS)}; got "{activation}".')
    buckets = {"relative_attention_num_buckets": BUCKETS, "relative_attention_max_distance": FARTHEST}
    for key, value in buckets.items():
        if folder.size(key, value) != value:
            problems.append(f"{key}: expected {value}, the only one supported; got {folder.size(key, value)}.")
    if problems:
        raise InputError(f"{folder.path / 'config.json'}: {problem}" for problem in problems)
    head_width = folder.size("d_kv", 64)
    return {
        "kind": "transformer",
        "d_model": width,
        "heads": heads,
        **({} if head_width * heads == width else {"head_width": head_width}),
        "feed_forward": folder.size("d_ff"),
        "encoder_layers": layers,
        "decoder_layers": folder.layers("num_decoder_layers", layers),
        "activation": ACTIVATIONS[activation],
        "norm": "pre",
        "norm_kind": "rms",
        "norm_epsilon": float(folder.get("layer_norm_epsilon", (int, float), 1e-6)),
        "score": "dot",
        "positions": "t5",
        "scale_embeddings": False,
        "dropout": float(folder.get("dropout_rate", (int, float), 0.1)),
    }


def _layer(tensors: ForeignTensors, weights: Weights, side: str, layer: int, gated: bool) -> None:
    theirs, ours = f"{side}.block.{layer}.layer", f"{side}.blocks.{layer}"
    parts = [("SelfAttention", "self")] + ([("EncDecAttention", "cross")] if side == "decoder" else [])
    for place, (name, role) in enumerate(parts):
        _attention(tensors, weights, f"{theirs}.{place}.{name}", f"{ours}.{role}_attention")
        weights[f"{ours}.{role}_residual.norm.weight"] = tensors.take(f"{theirs}.{place}.layer_norm.weight")
    last, hidden = len(parts), f"{theirs}.{len(parts)}.DenseReluDense"
    maps = {"wi_0": "inner", "wi_1": "linear", "wo": "outer"} if gated else {"wi": "inner", "wo": "outer"}
    for name, part in maps.items():
        _linear(weights, f"{ours}.feed_forward.{part}", tensors.take(f"{hidden}.{name}.weight"))
    weights[f"{ours}.feed_forward_residual.norm.weight"] = tensors.take(f"{theirs}.{last}.layer_norm.weight")


def _attention(tensors: ForeignTensors, weights: Weights, theirs: str, ours: str) -> None:
    _linear(weights, f"{ours}.query", tensors.take(f"{theirs}.q.weight"))
    _linear(weights, f"{ours}.key_value", torch.cat([tensors.take(f"{theirs}.{name}.weight") for name in ("k", "v")]))
    _linear(weights, f"{ours}.output", tensors.take(f"{theirs}.o.weight"))


def _linear(weights: Weights, name: str, weight: Tensor) -> None:
    weights[f"{name}.weight"], weights[f"{name}.bias"] = weight, weight.new_zeros(len(weight))
