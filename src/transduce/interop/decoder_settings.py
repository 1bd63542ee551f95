"""The settings of a decoder of Hugging Face as those of our `transformer_decoder`. None is skipped unread.

Each key of a `config.json` is read, means nothing for the computation, or must have the one value that our layers
compute. Any other key is refused by its name.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from transduce.core.errors import InputError
from transduce.interop.foreign_folder import ForeignFolder

GATED = {
    "silu": "swiglu",
    "swish": "swiglu",
    "gelu": "geglu",
    "gelu_new": "geglu_tanh",
    "gelu_pytorch_tanh": "geglu_tanh",
}
PLAIN = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "relu": "relu",
}
ROTARY_BASE = 10_000.0  # of all families, where a folder does not say it
ROTARY_KINDS = ("default", "linear", "llama3")
ROTARY_KEYS = {
    "linear": {"factor": "factor"},
    "llama3": {
        "factor": "factor",
        "low_freq_factor": "low_frequency_factor",
        "high_freq_factor": "high_frequency_factor",
        "original_max_position_embeddings": "original_length",
    },
}
"""By kind: their keys of a scaling and ours."""
READ_BY_ALL = {
    "model_type", "architectures", "vocab_size", "tie_word_embeddings", "bos_token_id", "eos_token_id", "pad_token_id",
    "suppress_tokens", "bad_words_ids", "temperature", "top_k", "top_p", "do_sample", "repetition_penalty",
    "no_repeat_ngram_size", "num_beams", "length_penalty", "max_new_tokens",
}  # fmt: skip
SAY_NOTHING = {
    "_name_or_path", "_attn_implementation_autoset", "attn_implementation", "begin_suppress_tokens",
    "cache_implementation", "chunk_size_feed_forward", "decoder_start_token_id", "diversity_penalty", "dtype",
    "early_stopping", "encoder_no_repeat_ngram_size", "exponential_decay_length_penalty", "finetuning_task",
    "forced_bos_token_id", "forced_eos_token_id", "gradient_checkpointing", "id2label", "initializer_range",
    "is_decoder", "is_llama_config",
    "label2id", "max_length", "max_window_layers", "min_length", "num_beam_groups", "num_return_sequences",
    "output_attentions", "output_hidden_states", "output_scores", "prefix", "pretraining_tp", "problem_type",
    "remove_invalid_values", "reorder_and_upcast_attn", "return_dict", "return_dict_in_generate", "sep_token_id",
    "summary_activation", "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj",
    "task_specific_params", "tf_legacy_loss", "tokenizer_class", "torch_dtype", "torchscript", "transformers.js_config",
    "transformers_version", "typical_p", "unk_token_id", "use_bfloat16", "use_cache",
}  # fmt: skip
"""Keys of training, of generation and of other heads: a model's logits do not depend on them."""
ONE_VALUE: dict[str, Any] = {
    "is_encoder_decoder": False,
    "add_cross_attention": False,
    "cross_attention_hidden_size": None,
    "tie_encoder_decoder": False,
    "pruned_heads": {},
    "scale_attn_weights": True,
    "scale_attn_by_inverse_layer_idx": False,
    "partial_rotary_factor": 1.0,
    "rope_interleaved": False,
    "use_bidirectional_attention": False,
}
"""Keys with the value that our layers compute."""
REFUSED = {
    "quantization_config": "quantised weights",
    "attn_logit_softcapping": "soft-capping of scores",
    "final_logit_softcapping": "soft-capping of logits",
    "num_experts": "a mixture of experts",
    "num_local_experts": "a mixture of experts",
    "auto_map": "code of its own",
    "no_rope_layers": "layers without positions",
}
"""Keys of what our layers do not have; null says that it is not there."""
NAMES = {
    "gpt2": {
        "width": "n_embd",
        "layers": "n_layer",
        "heads": "n_head",
        "hidden": "n_inner",
        "activation": "activation_function",
        "epsilon": "layer_norm_epsilon",
        "positions": "n_positions",
    },
    "llama": {
        "width": "hidden_size",
        "layers": "num_hidden_layers",
        "heads": "num_attention_heads",
        "hidden": "intermediate_size",
        "activation": "hidden_act",
        "epsilon": "rms_norm_eps",
        "positions": "max_position_embeddings",
    },
}
OTHERS = {
    "gpt2": {"resid_pdrop", "embd_pdrop", "attn_pdrop", "n_ctx"},
    "llama": {
        "num_key_value_heads", "head_dim", "attention_bias", "mlp_bias", "attention_dropout", "rope_theta",
        "rope_scaling", "rope_parameters", "sliding_window", "use_sliding_window", "layer_types",
        "hidden_activation", "original_max_position_embeddings",
    },
}  # fmt: skip
"""Further keys that are read."""


def gpt2_table(folder: ForeignFolder) -> dict[str, Any]:
    """The [model] section of a GPT-2.

    Raises:
        InputError: settings that our layers do not have, all of them.
    """
    names = NAMES["gpt2"]
    _refuse(folder, "gpt2", _activation_problems(folder, names["activation"], "gelu_new", PLAIN))
    width = folder.size(names["width"])
    return {
        **_sizes(folder, names),
        "feed_forward": folder.size(names["hidden"], 4 * width),
        "activation": PLAIN[folder.get(names["activation"], str, "gelu_new")],
        "norm_epsilon": float(folder.get(names["epsilon"], (int, float), 1e-5)),
        "positions": "learned",
        "max_length": folder.size(names["positions"]),
        "tied": folder.get("tie_word_embeddings", bool, True),
        "scale_embeddings": False,
        "dropout": float(folder.get("resid_pdrop", (int, float), 0.1)),
        "inner_dropout": float(folder.get("attn_pdrop", (int, float), 0.1)),
    }


def llama_table(folder: ForeignFolder, family: str) -> dict[str, Any]:
    """The [model] section of a Llama, or of one of the families that differ from it in details.

    Raises:
        InputError: settings that our layers do not have, all of them.
    """
    names, gemma = NAMES["llama"], family == "gemma"
    activations = {**GATED, "gelu": "geglu_tanh"} if gemma else GATED  # Gemma's first folders say "gelu" for it
    activation = "hidden_activation" if gemma and folder.config.get("hidden_activation") else names["activation"]
    default = "gelu_pytorch_tanh" if gemma else "silu"
    problems = [*_activation_problems(folder, activation, default, activations), *_window_problems(folder)]
    if not gemma and folder.config.get("hidden_activation") is not None:
        problems.append("hidden_activation: a setting of Gemma alone.")
    _refuse(folder, "llama", problems)
    table = _sizes(folder, names)
    heads, width = table["heads"], table["d_model"]
    head_width = folder.size("head_dim", 256 if gemma else 128 if family == "qwen3" else max(1, width // heads))
    return {
        **table,
        **({} if head_width * heads == width else {"head_width": head_width}),
        "key_value_heads": folder.size("num_key_value_heads", heads),
        "feed_forward": folder.size(names["hidden"]),
        "activation": activations[folder.get(activation, str, default)],
        "norm_kind": "rms",
        "norm_epsilon": float(folder.get(names["epsilon"], (int, float), 1e-6)),
        "query_key_norm": family == "qwen3",
        "tied": folder.get("tie_word_embeddings", bool, gemma),
        "scale_embeddings": gemma,
        "dropout": 0.0,
        "inner_dropout": float(folder.get("attention_dropout", (int, float), 0.0)),
        **_rotary(folder),
    }


def biased(folder: ForeignFolder) -> set[str]:
    """Which linear maps of a Llama, or of a family like it, have biases, by the ends of their names."""
    family = folder.get("model_type", str)
    attention, hidden = {"q_proj", "k_proj", "v_proj", "o_proj"}, {"gate_proj", "up_proj", "down_proj"}
    if family == "qwen2":
        return attention - {"o_proj"}
    has_attention = family != "mistral" and folder.get("attention_bias", bool, False)
    has_hidden = family == "llama" and folder.get("mlp_bias", bool, False)
    return (attention if has_attention else set()) | (hidden if has_hidden else set())


def longest(folder: ForeignFolder, table: Mapping[str, Any]) -> int:
    """How many tokens the model was made for."""
    return int(table.get("max_length") or folder.size(NAMES["llama"]["positions"], 2048))


def _sizes(folder: ForeignFolder, names: Mapping[str, str]) -> dict[str, Any]:
    return {
        "kind": "transformer_decoder",
        "d_model": folder.size(names["width"]),
        "layers": folder.layers(names["layers"]),
        "heads": folder.size(names["heads"]),
        "norm": "pre",
    }


def _refuse(folder: ForeignFolder, shape: str, problems: list[str]) -> None:
    """Raises InputError with `problems`, and with every key that is not known or has another value."""
    known = READ_BY_ALL | SAY_NOTHING | set(NAMES[shape].values()) | OTHERS[shape] | set(ONE_VALUE) | set(REFUSED)
    for key, value in folder.config.items():
        if key in REFUSED and value is not None:
            problems.append(f"{key}: {REFUSED[key]} cannot be converted.")
        elif key in ONE_VALUE and value is not None and value != ONE_VALUE[key]:
            problems.append(f"{key}: expected {ONE_VALUE[key]!r}; got {value!r:.80}.")
        elif key not in known and value is not None:
            problems.append(
                f"{key} = {value!r:.80}: nothing is known of this setting. If the model computes the same without it, "
                "delete it."
            )
    if problems:
        raise InputError(f"{folder.path / 'config.json'}: {problem}" for problem in problems)


def _activation_problems(folder: ForeignFolder, key: str, default: str, known: Mapping[str, str]) -> list[str]:
    found = folder.get(key, str, default)
    return [] if found in known else [f'{key}: expected one of {", ".join(known)}; got "{found}".']


def _window_problems(folder: ForeignFolder) -> Iterator[str]:
    """A window that is never left says nothing."""
    config = folder.config
    positions, window = folder.size(NAMES["llama"]["positions"], 2048), config.get("sliding_window")
    family, said = folder.get("model_type", str), config.get("use_sliding_window")
    unused = family in ("llama", "gemma") or (family in ("qwen2", "qwen3") and said in (None, False))
    if window is not None and not unused and not (type(window) is int and window >= positions):
        yield f"sliding_window = {window!r:.80}: attention to a window of positions cannot be converted."
    kinds = set(map(str, folder.get("layer_types", list, [])))
    if kinds - {"full_attention"}:
        yield f"layer_types: expected full_attention in all layers; got {', '.join(sorted(kinds)):.80}."


def _rotary(folder: ForeignFolder) -> dict[str, Any]:
    """Of both shapes: `rope_theta` and `rope_scaling`, and `rope_parameters`, which holds both."""
    file, config = folder.path / "config.json", folder.config
    key = "rope_scaling" if config.get("rope_parameters") is None else "rope_parameters"
    given = dict(folder.get(key, dict, {}))
    base = given.pop("rope_theta", None) or config.get("rope_theta") or ROTARY_BASE
    named = [given.pop(name, None) for name in ("rope_type", "type")]
    kind = next((each for each in named if each is not None), "default")
    if kind not in ROTARY_KINDS or (kind == "default" and given.get("factor") not in (None, 1.0)):
        raise InputError(f"{file}: {key}: rope_type: expected one of {', '.join(ROTARY_KINDS)}; got {kind!r:.80}.")
    if (partial := given.pop("partial_rotary_factor", None)) not in (None, 1.0):
        raise InputError(f"{file}: {key}: partial_rotary_factor: expected 1.0; got {partial!r:.80}.")
    if not isinstance(base, int | float) or not base > 1:
        raise InputError(f"{file}: rope_theta: expected a number above 1; got {base!r:.80}.")
    rotary: dict[str, Any] = {"positions": "rotary", "rotary_base": float(base)}
    given = {name: value for name, value in given.items() if value is not None}
    if kind == "default" and (unknown := sorted(map(str, given.keys() - {"factor"}))):
        raise InputError(f"{file}: {key}: nothing is known of {', '.join(unknown)} with the kind default.")
    if kind == "default":
        return rotary
    return {**rotary, "rotary_scaling": _scaling(folder, key, str(kind), given)}


def _scaling(folder: ForeignFolder, key: str, kind: str, given: Mapping[str, Any]) -> dict[str, Any]:
    file, names = folder.path / "config.json", ROTARY_KEYS[kind]
    before = "original_max_position_embeddings"
    if before in names and before not in given and before in folder.config:
        given = {**given, before: folder.config[before]}
    if given.keys() != names.keys():
        raise InputError(
            f"{file}: {key}: expected {', '.join(names)} of the kind {kind}; got {', '.join(map(str, given))}."
        )
    return {"kind": kind, **{names[name]: value for name, value in given.items()}}
