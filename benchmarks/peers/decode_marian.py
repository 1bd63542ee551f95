"""Hugging Face's generate on the weights of a Transduce model file (post-norm).

python decode_marian.py WORK MODEL [--beam 5] [--batch 64] [--outputs FILE]
"""

import argparse
import resource
import time
from pathlib import Path

import model_file
import numpy as np
import torch
from marian import config, renamed
from transformers import MarianMTModel
from work import END, PAD, Work, padded, report

ALPHA = 0.75


def main() -> None:
    """Load, warm up, measure, report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("work", type=Path)
    parser.add_argument("model", type=Path)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--outputs", type=Path)
    asked = parser.parse_args()
    model = load(asked.model)
    sources = Work(asked.work).test[: asked.sentences]
    translate(model, sources[: min(100, 2 * asked.batch)], asked.beam, asked.batch)
    if asked.batch == 1:
        torch.set_num_threads(1)
        milliseconds = []
        for source in sources:
            begun = time.perf_counter()
            translate(model, [source], asked.beam, 1)
            milliseconds.append(1000 * (time.perf_counter() - begun))
        figures = {"p50_ms": float(np.percentile(milliseconds, 50)), "p95_ms": float(np.percentile(milliseconds, 95))}
    else:
        begun = time.perf_counter()
        found = translate(model, sources, asked.beam, asked.batch)
        figures = {"sentences_per_second": len(sources) / (time.perf_counter() - begun)}
        if asked.outputs:
            asked.outputs.write_text("".join(" ".join(map(str, row)) + "\n" for row in found))
    report(**figures, peak_memory_gb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)


def load(path: Path) -> MarianMTModel:
    """Our weights in their model, nothing missing."""
    weights, table = model_file.read(path)
    ours = {name: torch.from_numpy(weight) for name, weight in weights.items()}
    model = MarianMTModel(config(len(ours["target_embedding.weight"])))
    positions = torch.from_numpy(model_file.sinusoids(512, table["d_model"]))
    model.load_state_dict(renamed(ours, positions), strict=True)
    return model.eval()


@torch.inference_mode()
def translate(model: MarianMTModel, sources: list[list[int]], beam: int, size: int) -> list[list[int]]:
    """Like lengths together, in the order of `sources`; ids without the end."""
    found: dict[int, list[int]] = {}
    order = sorted(range(len(sources)), key=lambda place: -len(sources[place]))
    for first in range(0, len(order), size):
        places = order[first : first + size]
        ids = padded([[*sources[place], END] for place in places])
        generated = model.generate(
            input_ids=ids,
            attention_mask=(ids != PAD).long(),
            num_beams=beam,
            length_penalty=ALPHA,
            max_new_tokens=100,
            do_sample=False,
            bad_words_ids=[[PAD]],
        )
        for place, row in zip(places, generated[:, 1:].tolist(), strict=True):
            found[place] = row[: row.index(END)] if END in row else row
    return [found[place] for place in range(len(sources))]


if __name__ == "__main__":
    main()
