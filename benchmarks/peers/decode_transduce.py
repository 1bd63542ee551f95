"""Transduce on a model file: python decode_transduce.py WORK MODEL [--beam 5] [--batch 64] [--outputs FILE].

As `transduce predict` decodes, tokens in and tokens out, as it is measured of the others.
"""

import argparse
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from work import END, START, Work, report

import transduce
from transduce.data.collate import padded
from transduce.search.run import search
from transduce.search.settings import Search


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
    model = transduce.load(asked.model).model
    sources = Work(asked.work).test[: asked.sentences]
    settings = Search(method="beam" if asked.beam > 1 else "greedy", beam=asked.beam)

    def translate(rows: list[list[int]]) -> list[list[int]]:
        return decoded(model, rows, settings, asked.batch)

    translate(sources[: min(100, 2 * asked.batch)])
    figures = alone(translate, sources) if asked.batch == 1 else together(translate, sources, asked.outputs)
    report(**figures, peak_memory_gb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6)


def decoded(model: Any, sources: list[list[int]], settings: Search, size: int) -> list[list[int]]:
    """Like lengths searched together, in the order of `sources`."""
    found: dict[int, list[int]] = {}
    order = sorted(range(len(sources)), key=lambda place: -len(sources[place]))
    for first in range(0, len(order), size):
        places = order[first : first + size]
        source = padded([np.asarray(sources[place], np.int32) for place in places], end=END)
        limits = [settings.limit(int(length)) for length in source.lengths]
        best = search(model, source, len(places), settings, start=START, end=END, limits=limits)
        found |= {place: list(each[0].tokens) for place, each in zip(places, best, strict=True)}
    return [found[place] for place in range(len(sources))]


def alone(translate: Any, sources: list[list[int]]) -> dict[str, float]:
    """Milliseconds a sentence."""
    torch.set_num_threads(1)
    milliseconds = []
    for source in sources:
        begun = time.perf_counter()
        translate([source])
        milliseconds.append(1000 * (time.perf_counter() - begun))
    return {"p50_ms": float(np.percentile(milliseconds, 50)), "p95_ms": float(np.percentile(milliseconds, 95))}


def together(translate: Any, sources: list[list[int]], outputs: Path | None) -> dict[str, float]:
    """Sentences a second."""
    begun = time.perf_counter()
    found = translate(sources)
    seconds = time.perf_counter() - begun
    if outputs:
        lines = (" ".join(str(token) for token in row if token != END) for row in found)
        outputs.write_text("".join(f"{line}\n" for line in lines))
    return {"sentences_per_second": len(sources) / seconds}


if __name__ == "__main__":
    main()
