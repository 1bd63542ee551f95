"""Texts a second through a pretrained encoder: Transduce beside transformers, the same weights, one thread each.

    python benchmarks/encoder_speed.py minilm/ --texts ../shared/data/sst2/test.tsv.gz

FOLDER is an encoder of Hugging Face with tokenizer.json. Each engine cuts, reads and pools all texts, in batches of
texts of like length, in a process of its own; they take turns. Told is the median of the rounds, and of their ratios.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from transduce.data.files import text_lines

BATCH = 64
ENGINES = ("transduce", "transformers")


def main() -> None:
    """Runs the engines in turns, or one of them once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--texts", type=Path, required=True, help="a text a line, in the first of its columns")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    texts = [line.split("\t")[0] for line in text_lines(asked.texts) if line.strip()]
    if asked.engine:
        print(json.dumps(timed(asked.engine, asked.folder, texts)))
        return
    found: dict[str, list[dict[str, float]]] = {engine: [] for engine in ENGINES}
    for _ in range(asked.rounds):
        for engine in ENGINES:
            found[engine].append(json.loads(_ended([*sys.argv, "--engine", engine]).splitlines()[-1]))
    for engine, rounds in found.items():
        rates = [len(texts) / each["processor"] for each in rounds]
        print(f"{engine}: {median(rates):.0f} texts a second of processor, {min(rates):.0f} to {max(rates):.0f}")
    ratios = [
        theirs["processor"] / ours["processor"]
        for ours, theirs in zip(found["transduce"], found["transformers"], strict=True)
    ]
    print(f"transduce / transformers: {median(ratios):.2f}, {min(ratios):.2f} to {max(ratios):.2f}")


def _ended(command: list[str]) -> str:
    one = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    environment = {**os.environ, **one, "TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *command], env=environment, check=True, capture_output=True, text=True
    ).stdout


def timed(engine: str, folder: Path, texts: list[str]) -> dict[str, float]:
    """Seconds of processor and of the clock, without loading and a first batch."""
    run = (ours if engine == "transduce" else theirs)(folder)
    run(texts[:BATCH])
    processor, clock = time.process_time(), time.perf_counter()
    run(texts)
    return {"processor": time.process_time() - processor, "clock": time.perf_counter() - clock}


def ours(folder: Path) -> Any:
    """Transduce's predictions."""
    import transduce

    pipeline = transduce.load(folder)
    return lambda texts: pipeline.predict(texts, batch_size=BATCH)


def theirs(folder: Path) -> Any:
    """transformers' states, pooled; texts of like length together, as ours are."""
    import torch
    import torch.nn.functional as F
    from transformers import AutoModel, AutoTokenizer

    torch.set_num_threads(1)
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)

    @torch.inference_mode()
    def run(texts: list[str]) -> list[Any]:
        rows, found = tokenizer(texts, truncation=True)["input_ids"], []
        order = sorted(range(len(rows)), key=lambda each: len(rows[each]))
        for start in range(0, len(order), BATCH):
            batch = tokenizer.pad(
                {"input_ids": [rows[each] for each in order[start : start + BATCH]]}, return_tensors="pt"
            )
            states, mask = model(**batch).last_hidden_state, batch["attention_mask"][..., None]
            found += F.normalize((states * mask).sum(1) / mask.sum(1), dim=-1).tolist()
        return found

    return run


if __name__ == "__main__":
    main()
