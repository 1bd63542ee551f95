"""How fast does an imported language model write, beside transformers and CTranslate2's generator?

    pip install ctranslate2            # beside the extra `huggingface`
    python benchmarks/decoders.py --folder /tmp/decoders [--rounds 3] [--record]

The model has the shape of SmolLM2-135M (30 layers of 576, 9 heads of queries and 3 of keys and values, 49,152 tokens)
and random weights, written as a folder of Hugging Face. Each system continues 1 and 64 prompts of 8 tokens by 64
tokens, the most probable each time; in fp32, and in 8 bits where it can. What counts is tokens a second of the second
of two calls. Every measurement is a process of its own; a round takes all of them in turn, and the median of the
rounds stands. The tokens of all systems in fp32 are compared, too.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from records import save_measurement

SHAPE = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "max_position_embeddings": 2048,
    "vocab_size": 49152,
    "rope_theta": 100000.0,
    "tie_word_embeddings": True,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
PROMPT = "the old"  # eight tokens with the one that begins: of random weights it matters only how many there are
NEW = 64
CANNOT = 3  # exit code where this machine has no products in 8 bits
SYSTEMS = ("transduce", "transduce int8", "transformers", "ctranslate2", "ctranslate2 int8")
Write = Callable[[int], list[list[int]]]  # how many texts at once -> the new tokens of each


def main() -> None:
    """Measure all, or with --system one, as a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the model is written, some 1.5 GB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--record", action="store_true", help="keep the figures as results/decoders.json")
    parser.add_argument("--system", choices=SYSTEMS, help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.system:
        print(json.dumps(measured(asked.system, asked.folder, asked.count, asked.threads)))
        return
    began = time.perf_counter()
    made(asked.folder)
    rounds = [turn(asked) for _ in range(asked.rounds)]
    speeds = {
        f"{system}, {count}": statistics.median(each[system, count]["speed"] for each in rounds)
        for system in SYSTEMS
        for count in (1, 64)
        if (system, count) in rounds[0]
    }
    firsts = {system: rounds[0][system, 1]["tokens"] for system in SYSTEMS if not system.endswith("int8")}
    agree = {system: sum(map(int.__eq__, each, firsts["transformers"])) for system, each in firsts.items()}
    for name, speed in speeds.items():
        print(f"{name:24} {speed:8.1f} tokens/s")
    print(f"the same tokens as transformers, of {NEW}: {agree}")
    if asked.record:
        libraries = ("transformers", "ctranslate2")
        found = {"threads": asked.threads, "rounds": asked.rounds, "tokens_a_second": speeds, "same_tokens": agree}
        save_measurement("decoders", time.perf_counter() - began, libraries, **found)


def turn(asked: argparse.Namespace) -> dict[tuple[str, int], dict[str, Any]]:
    """Every system once with one text and with 64."""
    found = {}
    for count in (1, 64):
        for system in SYSTEMS:
            words = ["--folder", asked.folder, "--system", system, "--count", count, "--threads", asked.threads]
            told = subprocess.run(
                [sys.executable, __file__, *map(str, words)], stdout=subprocess.PIPE, text=True, check=False
            )
            if told.returncode == CANNOT:
                continue
            told.check_returncode()
            found[system, count] = json.loads(told.stdout.splitlines()[-1])
    return found


def measured(system: str, folder: Path, count: int, threads: int) -> dict[str, Any]:
    """Tokens a second, and the tokens of the first text."""
    import torch

    torch.set_num_threads(threads)
    name, _, compute = system.partition(" ")
    write = {"transduce": with_transduce, "transformers": with_transformers, "ctranslate2": with_ctranslate2}[name](
        folder, compute == "int8", threads
    )
    write(count)
    begun = time.perf_counter()
    texts = write(count)
    seconds = time.perf_counter() - begun
    assert len(texts) == count
    assert all(len(text) == NEW for text in texts), [len(text) for text in texts]
    return {"speed": count * NEW / seconds, "tokens": texts[0]}


def prompt_ids(folder: Path) -> list[int]:
    from tokenizers import Tokenizer

    return list(Tokenizer.from_file(str(folder / "tokenizer.json")).encode(PROMPT).ids)


def with_transduce(folder: Path, int8: bool, threads: int) -> Write:
    import torch
    from tokenizers import Tokenizer

    import transduce
    from transduce.kernels.native.tensors import can_pack
    from transduce.pipeline.generation import generate

    if int8 and not can_pack(torch.zeros(1, 1), int8=True):
        sys.exit(CANNOT)

    pipeline = transduce.load(folder / "converted.safetensors", precision="int8" if int8 else "fp32", device="cpu")
    torch.set_num_threads(threads)
    given = prompt_ids(folder)
    read = Tokenizer.from_file(str(folder / "tokenizer.json")).token_to_id

    def write(count: int) -> list[list[int]]:
        found = generate(
            pipeline,
            PROMPT,
            count=count,
            method="greedy",
            min_length=NEW - 1,
            max_length_factor=0.0,
            max_length_offset=NEW,
        )
        return [[read(token) for token in each.tokens[len(given) :]] for each in found]

    return write


def with_transformers(folder: Path, int8: bool, threads: int) -> Write:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(str(folder), dtype=torch.float32).eval()
    ids = [0, *prompt_ids(folder)]

    @torch.inference_mode()
    def write(count: int) -> list[list[int]]:
        given = torch.tensor([ids] * count)
        limits: Any = {"max_new_tokens": NEW, "min_new_tokens": NEW, "do_sample": False, "pad_token_id": 0}
        return [
            row[len(ids) :].tolist()
            for row in model.generate(given, attention_mask=given.new_ones(given.shape), **limits)
        ]

    return write


def with_ctranslate2(folder: Path, int8: bool, threads: int) -> Write:
    import ctranslate2
    from tokenizers import Tokenizer

    compute = "int8" if int8 else "float32"
    model = ctranslate2.Generator(str(folder / "ctranslate2"), compute_type=compute, intra_threads=threads)
    inner = Tokenizer.from_file(str(folder / "tokenizer.json"))
    given = [inner.id_to_token(each) for each in (0, *prompt_ids(folder))]

    def write(count: int) -> list[list[int]]:
        found = model.generate_batch(
            [given] * count, max_length=NEW, min_length=NEW, sampling_topk=1, include_prompt_in_result=False
        )
        return [list(each.sequences_ids[0]) for each in found]

    return write


def made(folder: Path) -> None:
    """The model in the three forms, each made once."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    if not (folder / "tokenizer.json").is_file():
        torch.manual_seed(0)
        model = LlamaForCausalLM(LlamaConfig(**SHAPE))  # type: ignore[arg-type]
        model.save_pretrained(str(folder))
        write_tokenizer(folder)
    if not (folder / "converted.safetensors").is_file():
        words = ["-m", "transduce", "convert", folder, folder / "converted.safetensors"]
        subprocess.run([sys.executable, *map(str, words)], check=True)
    if not (folder / "ctranslate2").is_dir():
        from ctranslate2.converters import TransformersConverter

        TransformersConverter(str(folder)).convert(str(folder / "ctranslate2"))


def write_tokenizer(folder: Path) -> None:
    """BPE over bytes without merges, and as many further tokens as the model has, which no text gives."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    end = "<|endoftext|>"
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = [end, *alphabet]
    tokens += [f"{place} of none" for place in range(len(tokens), SHAPE["vocab_size"])]  # type: ignore[arg-type]
    inner = Tokenizer(models.BPE(vocab={token: place for place, token in enumerate(tokens)}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken(end, normalized=False, special=True)])
    inner.save(str(folder / "tokenizer.json"))
    named = dict.fromkeys(("bos_token", "eos_token", "unk_token"), end)
    settings = {"tokenizer_class": "GPT2Tokenizer", "add_prefix_space": False, **named}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")


if __name__ == "__main__":
    main()
