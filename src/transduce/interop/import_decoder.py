"""GPT-2, Llama, SmolLM, Mistral, Qwen2, Qwen3 and Gemma: folders of Hugging Face as language models.

| model_type | norm | positions | feed-forward | besides |
|---|---|---|---|---|
| `gpt2` | layer | learned | GELU by tanh | matrices lie the other way round |
| `llama` (SmolLM too), `mistral` | RMS | rotary | SwiGLU | grouped heads |
| `qwen2` | RMS | rotary | SwiGLU | biases of queries, keys and values |
| `qwen3` | RMS | rotary | SwiGLU | RMS norm of each head's queries and keys |
| `gemma` | RMS, of which 1 + g multiplies | rotary | GEGLU by tanh | embeddings times sqrt(D) |

Their rotary positions turn number j of a head with number j + E/2, ours with the one beside it. So the rows of queries
and keys are put into our order (`turned`), and with them biases and gains of norms. Linear maps without biases get
biases of 0, which fine-tuning may change.

Shapes: D model width, V vocabulary, E width of a head.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from transduce.core.errors import InputError
from transduce.core.model_file import ModelFile
from transduce.interop.decoder_columns import column_of
from transduce.interop.decoder_settings import biased, gpt2_table, llama_table, longest
from transduce.interop.foreign_folder import ForeignFolder, ForeignTensors
from transduce.interop.import_bart import Weights, affine
from transduce.interop.imported_file import imported_file

FAMILIES = ("gpt2", "llama", "mistral", "qwen2", "qwen3", "gemma")
"""By the model_type of a config.json."""
HEADS = ("ForCausalLM", "LMHeadModel")
BUFFERS = (".attn.bias", ".attn.masked_bias", ".rotary_emb.inv_freq")  # of older files: masks and frequencies
Take = Callable[[str], Tensor]


def read_decoder(folder: ForeignFolder, name: str, origin: Callable[[], dict[str, Any]]) -> tuple[ModelFile, list[str]]:
    """The model file of a folder with a decoder, and what is to be told of it.

    Args:
        name: of the recipe that is written into the file.
        origin: gives its provenance, which takes long: every file is read.

    Raises:
        InputError: settings that our layers do not have; more weights than the memory holds; tensors are missing, or
            are not known; no tokenizer.
    """
    family = folder.get("model_type", str)
    _check_head(folder)
    table = gpt2_table(folder) if family == "gpt2" else llama_table(folder, family)
    tensors = folder.tensors()
    weights = _gpt2(tensors, table) if family == "gpt2" else _llama(folder, tensors, table)
    _check_rows(folder, len(weights["embedding.weight"]))
    _take_output(folder, tensors, weights, table)
    tensors.finish([name for name in tensors.left() if name.endswith(BUFFERS)])
    column, notes = column_of(folder, len(weights["embedding.weight"]))
    search, untold = _searched(folder)
    recipe = {
        "name": name,
        "task": {"kind": "language_modelling", "context": longest(folder, table)},
        "data": {"train": [{"text": "unknown", "unit": "stream"}]},
        "model": table,
        "search": search,
    }
    return imported_file(recipe, weights, {"target": column}, origin()), [*notes, *untold]


def turned(rows: Tensor, width: int) -> Tensor:
    """Rows of heads, (H E, ..), in whose halves number j stood with number j + E/2: now these stand side by side."""
    halves = rows.view(-1, 2, width // 2, *rows.shape[1:])
    return halves.transpose(1, 2).reshape(rows.shape)


def _check_head(folder: ForeignFolder) -> None:
    """Raises InputError for a folder whose head predicts something other than the next token."""
    named = folder.get("architectures", list, [])
    if named and not any(str(each).endswith(HEADS) for each in named):
        raise InputError(
            f"{folder.path / 'config.json'}: architectures: expected a name that ends with {' or '.join(HEADS)}; got "
            f"{', '.join(map(str, named))}."
        )


def _check_rows(folder: ForeignFolder, rows: int) -> None:
    """Raises InputError where the embedding has other rows than the settings say."""
    if (size := folder.size("vocab_size", rows)) != rows:
        raise InputError(f"{folder.path / 'config.json'}: vocab_size = {size:,}, but the embedding has {rows:,} rows.")


def _gpt2(tensors: ForeignTensors, table: dict[str, Any]) -> Weights:
    """Its linear maps multiply from the other side, and queries, keys and values come from one of them."""
    prefix = "transformer." if "transformer.wte.weight" in tensors else ""
    width = table["d_model"]
    weights: Weights = {"embedding.weight": tensors.take(f"{prefix}wte.weight")}
    weights["decoder.positions.weight_TD"] = tensors.take(f"{prefix}wpe.weight")
    affine(tensors, weights, f"{prefix}ln_f", "decoder.norm")
    for layer in range(table["layers"]):
        theirs, ours = f"{prefix}h.{layer}", f"decoder.blocks.{layer}"
        for part in ("weight", "bias"):
            all_three = tensors.take(f"{theirs}.attn.c_attn.{part}")
            all_three = all_three.mT if part == "weight" else all_three
            weights[f"{ours}.self_attention.query.{part}"] = all_three[:width]
            weights[f"{ours}.self_attention.key_value.{part}"] = all_three[width:]
        for name, our_name in GPT2_MAPS.items():
            weights[f"{ours}.{our_name}.weight"] = tensors.take(f"{theirs}.{name}.weight").mT
            weights[f"{ours}.{our_name}.bias"] = tensors.take(f"{theirs}.{name}.bias")
        affine(tensors, weights, f"{theirs}.ln_1", f"{ours}.self_residual.norm")
        affine(tensors, weights, f"{theirs}.ln_2", f"{ours}.feed_forward_residual.norm")
    return weights


GPT2_MAPS = {
    "attn.c_proj": "self_attention.output",
    "mlp.c_fc": "feed_forward.inner",
    "mlp.c_proj": "feed_forward.outer",
}
LLAMA_MAPS = {
    "self_attn.o_proj": "self_attention.output",
    "mlp.gate_proj": "feed_forward.inner",
    "mlp.up_proj": "feed_forward.linear",
    "mlp.down_proj": "feed_forward.outer",
}
LLAMA_NORMS = {"input_layernorm": "self_residual", "post_attention_layernorm": "feed_forward_residual"}


def _llama(folder: ForeignFolder, tensors: ForeignTensors, table: dict[str, Any]) -> Weights:
    """Gemma multiplies by 1 and the gains of norms, so that 1 is added to them."""
    added, biases = 1.0 if folder.get("model_type", str) == "gemma" else 0.0, biased(folder)
    weights: Weights = {"embedding.weight": tensors.take("model.embed_tokens.weight")}
    weights["decoder.norm.weight"] = tensors.take("model.norm.weight") + added
    for layer in range(table["layers"]):
        theirs, ours = f"model.layers.{layer}", f"decoder.blocks.{layer}"
        _attention(tensors, weights, f"{theirs}.self_attn", f"{ours}.self_attention", table, biases)
        for name, our_name in LLAMA_MAPS.items():
            weights[f"{ours}.{our_name}.weight"] = weight = tensors.take(f"{theirs}.{name}.weight")
            weights[f"{ours}.{our_name}.bias"] = _bias(tensors, f"{theirs}.{name}", weight, biases)
        for name, our_name in LLAMA_NORMS.items():
            weights[f"{ours}.{our_name}.norm.weight"] = tensors.take(f"{theirs}.{name}.weight") + added
    return weights


def _attention(
    tensors: ForeignTensors, weights: Weights, theirs: str, ours: str, table: dict[str, Any], biases: set[str]
) -> None:
    width = table.get("head_width") or table["d_model"] // table["heads"]
    found: dict[str, tuple[Tensor, Tensor]] = {}
    for letter in "qkv":
        weight = tensors.take(f"{theirs}.{letter}_proj.weight")
        found[letter] = weight, _bias(tensors, f"{theirs}.{letter}_proj", weight, biases)
    for place, part in enumerate(("weight", "bias")):
        query, key, value = (found[letter][place] for letter in "qkv")
        weights[f"{ours}.query.{part}"] = turned(query, width)
        weights[f"{ours}.key_value.{part}"] = torch.cat((turned(key, width), value))
    if table["query_key_norm"]:
        for name, letter in (("query", "q"), ("key", "k")):
            weights[f"{ours}.{name}_norm.weight"] = turned(tensors.take(f"{theirs}.{letter}_norm.weight"), width)


def _bias(tensors: ForeignTensors, name: str, weight: Tensor, biases: set[str]) -> Tensor:
    """Of a linear map; zeros where it has none. biases: the ends of the names of those that have one."""
    has_one = name.rpartition(".")[2] in biases
    return tensors.take(f"{name}.bias") if has_one else weight.new_zeros(len(weight))


def _take_output(folder: ForeignFolder, tensors: ForeignTensors, weights: Weights, table: dict[str, Any]) -> None:
    """Puts the output's matrix among the weights, where it is one of its own.

    Raises:
        InputError: it is said to be the embeddings', and another one lies there.
    """
    name = "lm_head.weight"
    if not table["tied"]:
        weights["output.weight"] = tensors.take(name)
    elif name in tensors and not torch.equal(tensors.take(name), weights["embedding.weight"]):
        raise InputError(
            f'{folder.path}: tie_word_embeddings is true, but "{name}" differs from the embeddings: set it to false in '
            "config.json if the output has a matrix of its own."
        )


def _searched(folder: ForeignFolder) -> tuple[dict[str, Any], list[str]]:
    """The [search] section that says what the settings of generation say, and which of them it cannot say."""
    given: dict[str, Any] = {"method": "greedy"}
    if folder.generated("do_sample") is True:
        limits = {"temperature": (0, 100), "top_k": (1, 10**6), "top_p": (0, 1)}
        found = {key: folder.generated(key) for key in limits}
        within = {key: found[key] for key, (low, high) in limits.items() if _lies(found[key], low, high)}
        given = {"method": "sample", **within}
    if type(repeats := folder.generated("no_repeat_ngram_size")) is int and repeats >= 1:
        given["no_repeat_ngram"] = repeats
    if type(most := folder.generated("max_new_tokens")) is int and most >= 1:
        given["max_length_offset"] = most
    penalty = folder.generated("repetition_penalty")
    return given, [f"repetition_penalty = {penalty} is left out: search has none."] if penalty not in (None, 1) else []


def _lies(value: Any, low: float, high: float) -> bool:
    """Whether it is a number above 0, from `low` to `high`."""
    return isinstance(value, int | float) and not isinstance(value, bool) and max(low, 1e-9) <= value <= high
