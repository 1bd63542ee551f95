"""Decoders of Hugging Face with random weights, and their tokenizers, in folders."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from foreign_models import saved
from random_models import sentences

LINES = [line for line in sentences(400, 9) if line]
SIZES: dict[str, Any] = {
    "hidden_size": 24,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}
GPT2 = {"n_embd": 24, "n_layer": 2, "n_head": 4, "n_positions": 128}
KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "gpt2": ("GPT2", "LMHeadModel", GPT2),
    "llama": ("Llama", "ForCausalLM", SIZES),
    "mistral": ("Mistral", "ForCausalLM", {**SIZES, "sliding_window": None}),
    "qwen2": ("Qwen2", "ForCausalLM", SIZES),
    "qwen3": ("Qwen3", "ForCausalLM", {**SIZES, "head_dim": 8}),
    "gemma": ("Gemma", "ForCausalLM", {**SIZES, "head_dim": 8}),
}
TOKENIZERS = {
    "gpt2": "gpt2",
    "llama": "llama2",
    "mistral": "llama3",
    "qwen2": "qwen",
    "qwen3": "qwen",
    "gemma": "gemma",
}
SPECIAL: dict[str, list[str]] = {
    "gpt2": ["<|endoftext|>"],
    "llama2": ["<unk>", "<s>", "</s>"],
    "llama3": ["<|begin_of_text|>", "<|end_of_text|>"],
    "qwen": ["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    "gemma": ["<pad>", "<eos>", "<bos>", "<unk>"],
}
NAMED: dict[str, dict[str, Any]] = {
    "gpt2": dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>"),
    "llama2": {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"},
    "llama3": {"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"},
    "qwen": {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"},
    "gemma": {"bos_token": "<bos>", "eos_token": "<eos>", "unk_token": "<unk>", "pad_token": "<pad>"},
}
BEGINS = {"llama2": "<s>", "llama3": "<|begin_of_text|>", "gemma": "<bos>"}


@cache
def tokenizer_json(kind: str) -> str:
    """A tokenizer.json of a family: BPE over bytes, or with "\u2581" for a space and bytes for unknown characters."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

    over_bytes = kind in ("gpt2", "llama3", "qwen")
    unknown = None if over_bytes else "<unk>"
    inner = Tokenizer(models.BPE(unk_token=unknown, byte_fallback=not over_bytes, fuse_unk=not over_bytes))
    special, alphabet = list(SPECIAL[kind]), []
    if over_bytes:
        inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=kind != "llama3")
        inner.decoder, alphabet = decoders.ByteLevel(), sorted(pre_tokenizers.ByteLevel.alphabet())
    else:
        inner.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
        parts = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
        inner.decoder = decoders.Sequence(parts)
        special += [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=len(special) + len(alphabet) + 60,
        special_tokens=special,
        initial_alphabet=alphabet,
        show_progress=False,
    )
    inner.train_from_iterator(LINES, trainer)
    if kind in BEGINS:
        first = BEGINS[kind]
        inner.post_processor = processors.TemplateProcessing(
            single=f"{first} $A", special_tokens=[(first, inner.token_to_id(first))]
        )
    table = json.loads(inner.to_str())
    table["added_tokens"] = [each for each in table["added_tokens"] if each["content"] in SPECIAL[kind]]
    return json.dumps(table)


def write_tokenizer(folder: Path, kind: str) -> dict[str, int]:
    """The tokenizer of a family and its settings; the ids of its special tokens."""
    table = json.loads(tokenizer_json(kind))
    (folder / "tokenizer.json").write_text(json.dumps(table), encoding="utf-8")
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **NAMED[kind]}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return {"size": len(table["model"]["vocab"]), **{each["content"]: each["id"] for each in table["added_tokens"]}}


def decoder(folder: Path, kind: str, rows: int = 3, **settings: Any) -> Any:
    """A decoder of this model_type in a folder, with `rows` more rows of its embedding than tokens; the model."""
    import transformers

    name, head, sizes = KINDS[kind]
    tokens = write_tokenizer(folder, TOKENIZERS[kind])
    named = NAMED[TOKENIZERS[kind]]
    ids = {key: tokens.get(named.get(f"{key[:3]}_token")) for key in ("bos_token_id", "eos_token_id", "pad_token_id")}
    config = getattr(transformers, f"{name}Config")(
        **{"vocab_size": tokens["size"] + rows, **ids, "rms_norm_eps": 1e-5, **sizes, **settings}
        if kind != "gpt2"
        else {"vocab_size": tokens["size"] + rows, **ids, **sizes, **settings}
    )
    return saved(getattr(transformers, f"{name}{head}"), config, folder)
