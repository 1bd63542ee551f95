"""Marian, BART, mBART, M2M-100 with NLLB, and Pegasus: one family of names, read into our Transformer.

| model_type | norm | positions | besides |
|---|---|---|---|
| `marian` | after | sines, then cosines, of position 0 on | a bias of the logits |
| `pegasus` | before, one more at the end | the same | |
| `bart` | after, and behind the embeddings | learned, the first at row 2 | |
| `mbart` | before, behind the embeddings, at the end | the same | |
| `m2m_100` | before, one more at the end | Tensor2Tensor's, of position 2 on | |

Marian's positions have all sines before all cosines, ours in turn. Nothing but them tells one number of a vector from
another, so the numbers of all vectors are put into our order (`interleaved`), and the model is the same.

Shapes: D model width, T positions, V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

from transduce.attention.positions import sinusoidal
from transduce.core.errors import InputError
from transduce.interop.foreign_folder import ForeignFolder, ForeignTensors

OFFSET = 2  # the row of the first position
ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "swish": "swish",
    "silu": "swish",
}
PRE = {"mbart", "m2m_100", "pegasus"}  # norm before each sub-layer
Weights = dict[str, Tensor]


def read_bart(folder: ForeignFolder) -> tuple[dict[str, Any], Weights]:
    """The [model] section, and the weights by our names.

    Raises:
        InputError: settings that our Transformer does not have; tensors are missing, or are not known.
    """
    kind = folder.get("model_type", str)
    table = _settings(folder, kind)
    tensors = folder.tensors()
    weights: Weights = {}
    for side in ("encoder", "decoder"):
        for layer in range(table[f"{side}_layers"]):
            take_layer(tensors, weights, side, layer)
        if kind in PRE:
            affine(tensors, weights, f"model.{side}.layer_norm", f"{side}.norm")
        if kind in ("bart", "mbart"):
            affine(tensors, weights, f"model.{side}.layernorm_embedding", f"{side}.embedding_norm")
    table |= take_embeddings(tensors, weights, "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
    if "final_logits_bias" in tensors and (bias_V := tensors.take("final_logits_bias").flatten()).any():
        table["output_bias"] = True
        weights[f"{output_name(table)}.bias"] = bias_V
    positions = _positions(tensors, weights, kind, table["d_model"])
    tensors.finish()
    if positions["positions"] == "halves":
        weights, positions = interleaved(weights), {"positions": "sinusoidal"}
    return {**table, **positions}, weights


def _settings(folder: ForeignFolder, kind: str) -> dict[str, Any]:
    width = folder.size("d_model")
    heads, hidden = folder.size("encoder_attention_heads"), folder.size("encoder_ffn_dim")
    problems = []
    for key, value in (("decoder_attention_heads", heads), ("decoder_ffn_dim", hidden)):
        if folder.size(key) != value:
            problems.append(f"{key}: expected {value}, as in the encoder; got {folder.size(key)}.")
    activation = folder.get("activation_function", str, "gelu")
    if activation not in ACTIVATIONS:
        problems.append(f'activation_function: expected one of {", ".join(ACTIVATIONS)}; got "{activation}".')
    if kind == "mbart" and folder.config.get("normalize_before") is False:
        problems.append("normalize_before = false is not supported.")
    if problems:
        raise InputError(f"{folder.path / 'config.json'}: {problem}" for problem in problems)
    return {
        "kind": "transformer",
        "d_model": width,
        "heads": heads,
        "feed_forward": hidden,
        "encoder_layers": folder.layers("encoder_layers"),
        "decoder_layers": folder.layers("decoder_layers"),
        "activation": ACTIVATIONS[activation],
        "norm": "pre" if kind in PRE else "post",
        "embedding_norm": kind in ("bart", "mbart"),
        "scale_embeddings": folder.get("scale_embedding", bool, False),
        "dropout": float(folder.get("dropout", (int, float), 0.1)),
        "inner_dropout": float(folder.get("attention_dropout", (int, float), 0.0)),
    }


def take_layer(tensors: ForeignTensors, weights: Weights, side: str, layer: int) -> None:
    """Puts a layer of the encoder or the decoder among the weights."""
    theirs, ours = f"model.{side}.layers.{layer}", f"{side}.blocks.{layer}"
    _attention(tensors, weights, f"{theirs}.self_attn", f"{ours}.self_attention")
    affine(tensors, weights, f"{theirs}.self_attn_layer_norm", f"{ours}.self_residual.norm")
    if side == "decoder":
        _attention(tensors, weights, f"{theirs}.encoder_attn", f"{ours}.cross_attention")
        affine(tensors, weights, f"{theirs}.encoder_attn_layer_norm", f"{ours}.cross_residual.norm")
    affine(tensors, weights, f"{theirs}.fc1", f"{ours}.feed_forward.inner")
    affine(tensors, weights, f"{theirs}.fc2", f"{ours}.feed_forward.outer")
    affine(tensors, weights, f"{theirs}.final_layer_norm", f"{ours}.feed_forward_residual.norm")


def _attention(tensors: ForeignTensors, weights: Weights, theirs: str, ours: str) -> None:
    affine(tensors, weights, f"{theirs}.q_proj", f"{ours}.query")
    affine(tensors, weights, f"{theirs}.out_proj", f"{ours}.output")
    for part in ("weight", "bias"):
        halves = [tensors.take(f"{theirs}.{name}_proj.{part}") for name in ("k", "v")]
        weights[f"{ours}.key_value.{part}"] = torch.cat(halves)


def affine(tensors: ForeignTensors, weights: Weights, theirs: str, ours: str) -> None:
    """Puts the weight and the bias of a linear map, or of a norm, among ours."""
    for part in ("weight", "bias"):
        weights[f"{ours}.{part}"] = tensors.take(f"{theirs}.{part}")


def take_embeddings(tensors: ForeignTensors, weights: Weights, encoder: str, decoder: str) -> dict[str, Any]:
    """Puts the embeddings among the weights; returns the setting that says which of them are one.

    encoder, decoder: their names, where they are not called as the one that is shared.
    """
    shared = [name for name in ("model.shared.weight", "shared.weight") if name in tensors]
    source, target = (tensors.take(*([name] if name in tensors else []), *shared, name) for name in (encoder, decoder))
    for name in shared:
        tensors.take(name)
    output = tensors.take("lm_head.weight") if "lm_head.weight" in tensors else target
    weights["target_embedding.weight"] = target
    one_input, one_target = _same(source, target), _same(output, target)
    tied = ("all" if one_target else "input") if one_input else ("output" if one_target else "none")
    if not one_input:
        weights["source_embedding.weight"] = source
    if not one_target:
        weights["output.weight"] = output
    return {"tied": tied}


def _same(one: Tensor, other: Tensor) -> bool:
    return one is other or (one.shape == other.shape and torch.equal(one, other))


def output_name(table: dict[str, Any]) -> str:
    """The first of the names that the output layer has in our models."""
    return "target_embedding" if table["tied"] in ("all", "output") else "output"


def _positions(tensors: ForeignTensors, weights: Weights, kind: str, width: int) -> dict[str, Any]:
    """The settings of positions. A table that is no known one is taken as it stands."""
    names = {side: f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder")}
    if kind == "m2m_100":
        return {"positions": "tensor2tensor", "first_position": OFFSET}
    if kind in ("bart", "mbart"):
        tables = {side: tensors.take(name)[OFFSET:] for side, name in names.items()}
        return _learned(weights, tables)
    if not any(name in tensors for name in names.values()):
        return {"positions": "halves"}
    tables = {side: tensors.take(name) for side, name in names.items()}
    for name, known in _known(len(tables["encoder"]), width).items():
        if all(each.shape == known.shape and torch.allclose(each, known, atol=1e-3) for each in tables.values()):
            return {"positions": name}
    return _learned(weights, tables)


def _known(length: int, width: int) -> dict[str, Tensor]:
    """Tables of positions (T, D) by what they are."""
    turns_TD = sinusoidal(length, width)
    halves_TD = torch.cat((turns_TD[:, 0::2], turns_TD[:, 1::2]), 1)
    return {"halves": halves_TD, "sinusoidal": turns_TD, "none": torch.zeros(length, width)}


def _learned(weights: Weights, tables: dict[str, Tensor]) -> dict[str, Any]:
    for side, table_TD in tables.items():
        weights[f"{side}.positions.weight_TD"] = table_TD.contiguous()
    return {"positions": "learned", "max_length": len(tables["encoder"])}


def interleaved(weights: Weights) -> Weights:
    """The same model with the first half of each vector's numbers at even places, and the second half at odd ones."""
    width = weights["target_embedding.weight"].shape[1]
    order_D = torch.arange(width).view(2, -1).T.flatten()
    return {name: _reordered(name, weight, order_D) for name, weight in weights.items()}


def _reordered(name: str, weight: Tensor, order_D: Tensor) -> Tensor:
    """One weight, by what of it faces the vectors between the layers: what it reads, or what it adds to them."""
    *_, part, kind = name.split(".")
    if kind == "bias" and part in ("target_embedding", "output") and name.count(".") == 1:
        return weight  # one number for each token
    if part == "norm" or (part in ("output", "outer") and name.count(".") > 1):
        return weight[order_D]
    return weight if kind == "bias" else weight[:, order_D]
