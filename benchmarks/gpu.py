"""How fast is the original Transformer's base model on a GPU: training in bf16, with and without compiling; decoding?

    benchmarks/gpu.sh                                # with the device's tests, in twelve minutes at most
    python benchmarks/gpu.py [--device cpu --size tiny --seconds 5]

Training: Vaswani et al. (2017), base: d_model 512, 6 + 6 layers, 8 heads, feed-forward 2,048, a joint vocabulary of
37,000, updates of 25,000 target tokens. Lengths are drawn as in news (log-normal, 27 tokens on the mean); the ids are
random, so the loss means nothing and the speed everything. A batch holds sentences of one length bucket (16, 32, 48, ..
tokens), padded to it: the blocks are compiled once for each bucket, and meet no other shape. What runs is the update of
`transduce train`. Decoding: the same model with random weights, greedily and with a beam of 5, exactly 64 tokens for
each of 256 sentences in one batch, beside Hugging Face's Marian with the same weights; the share of rows that come out
alike is told (random weights leave beams near-ties in bf16). Each line of the tables is a process of its own, with a
time limit; one that fails says why, and the others go on.

Writes benchmarks/results/gpu-NAME.json on a GPU, then `python benchmarks/speed_report.py` gives docs/performance.md its
section.
"""

import argparse
import contextlib
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import torch
from speed_report import operations

from transduce.attention.capture import active_record
from transduce.attention.interventions import active_interventions
from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.data.columns import Specs
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.objectives.text import text_objective
from transduce.recipe.training import TrainingConfig
from transduce.runtime.environment import library_versions, machine
from transduce.search.dispatch import search
from transduce.search.request import Request
from transduce.search.settings import Search
from transduce.training.average import MovingAverage
from transduce.training.checkpoint import TrainingState
from transduce.training.loop import make_update
from transduce.training.optimizer import Optimizers
from transduce.training.progress import Progress

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAD, START, END = 0, 1, 2
BUCKET = 16
UPDATES = 100_000  # of the paper's base model, which took 12 hours on 8 P100
ROWS = 256


@dataclass(frozen=True)
class Size:
    """A model, how many target tokens an update has, and how long the drawn sentences are."""

    width: int
    layers: int
    heads: int
    hidden: int
    vocabulary: int
    tokens: int
    written: int
    mean: float = 27.0
    longest: int = 96

    def model(self) -> Transformer:
        """With random weights, the same at each call."""
        torch.manual_seed(1)
        config = TransformerConfig(
            d_model=self.width,
            heads=self.heads,
            feed_forward=self.hidden,
            encoder_layers=self.layers,
            decoder_layers=self.layers,
            norm="post",
            dropout=0.1,
            tied="all",
        )
        return Transformer(config, Specs.of_tokens(self.vocabulary, self.vocabulary))


SIZES = {
    "base": Size(512, 6, 8, 2048, 37_000, 25_000, 64),
    "tiny": Size(64, 2, 4, 128, 500, 800, 8, longest=48),  # tries the script where there is no GPU
}
STAGES: dict[str, float] = {  # seconds at most
    "limits": 60,
    "training": 90,
    "training, compiled": 240,
    "decoding": 90,
    "decoding, Hugging Face": 90,
}


def main() -> None:
    """Each stage in a process of its own; what they found as tables and as a record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--size", choices=SIZES, default="base")
    parser.add_argument("--seconds", type=float, default=20, help="of each measurement")
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.device.startswith("cuda") and not torch.cuda.is_available():
        parser.error(f"--device {asked.device}: there is no CUDA device. --device cpu --size tiny tries the script.")
    if asked.stage:
        print(json.dumps(measured(asked.stage, SIZES[asked.size], torch.device(asked.device), asked.seconds)))
        return
    rows: dict[str, Any] = {}
    for stage, limit in STAGES.items():
        rows[stage] = in_own_process(stage, limit)
        print(f"{stage}: {json.dumps(rows[stage])}", flush=True)
    about = {"date": date.today().isoformat(), "machine": machine(), "versions": library_versions()}
    result = {**about, "size": asked.size, "seconds": asked.seconds, "rows": rows}
    if asked.device.startswith("cuda") and asked.size == "base":
        name = str(machine()["accelerator"]).lower().replace(" ", "-")
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"gpu-{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    sys.exit(any("error" in row for row in rows.values()))


def in_own_process(stage: str, limit: float) -> dict[str, Any]:
    """What it prints at last, or {"error": why}."""
    command = [sys.executable, __file__, *sys.argv[1:], "--stage", stage]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {limit:.0f} seconds"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no word"])[-1]}
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def measured(stage: str, size: Size, device: torch.device, seconds: float) -> dict[str, Any]:
    """The figures of one stage."""
    torch.set_float32_matmul_precision("high")  # for all
    if stage == "limits":
        return limits(device)
    if stage.startswith("training"):
        return training(size, device, seconds, compiled=stage.endswith("compiled"))
    return decoding(size, device, theirs=stage.endswith("Face"))


# ---- the limit -------------------------------------------------------------------------------------------


def limits(device: torch.device) -> dict[str, float]:
    """Operations a second of large products, in units of 10^12, and the bandwidth of reading in GB/s."""
    size = 8192 if device.type == "cuda" else 1024
    found = {}
    for name, dtype in {"bf16": torch.bfloat16, "fp32": torch.float32}.items():
        left, right = (torch.randn(size, size, device=device, dtype=dtype) for _ in range(2))
        found[f"{name}_tflops"] = 2 * size**3 / fastest(lambda a=left, b=right: a @ b, device) / 1e12
    values = torch.ones(2**28 if device.type == "cuda" else 2**26, device=device)
    found["gigabytes_per_second"] = values.numel() * 4 / fastest(values.sum, device) / 1e9
    return found


def fastest(work: Callable[[], object], device: torch.device, repeats: int = 20) -> float:
    """Seconds of the fastest of `repeats`, after three that warm up."""
    return min([timed(work, device) for _ in range(repeats + 3)][3:])


def timed(work: Callable[[], object], device: torch.device) -> float:
    """Seconds until the device has done it."""
    wait(device)
    begun = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - begun


def wait(device: torch.device) -> None:
    """Until all that was asked of the device is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


# ---- training --------------------------------------------------------------------------------------------


def training(size: Size, device: torch.device, seconds: float, compiled: bool) -> dict[str, Any]:
    """Target tokens a second of the update that `transduce train` makes, and what 100,000 of them would take."""
    model, config = size.model().to(device), TrainingConfig(label_smoothing=0.1)
    if compiled:
        compile_blocks(model)
    objective, average = text_objective(model, config), MovingAverage(model, config.average)
    trained = TrainingState(model, objective, Optimizers(model, config), average, Progress())
    batches = batches_by_bucket(size, device)

    def update(batch: Batch) -> None:
        make_update(config, trained, [batch], "bf16")

    begun = time.perf_counter()
    for batch in batches:  # each bucket twice: compiled, then as it will be
        update(batch)
        update(batch)
    wait(device)
    first = time.perf_counter() - begun
    times: list[float] = []
    tokens, products, spent, drawn = 0, 0.0, 0.0, drawn_buckets(size, len(batches))
    while spent < seconds:
        batch = batches[next(drawn)]
        times.append(timed(lambda batch=batch: update(batch), device))
        spent += times[-1]
        tokens += batch.units
        source, target = (side.values.numel() for side in batch.sequences())
        products += operations(size.width, size.hidden, size.layers, size.vocabulary, source, target)
    return {
        "tokens_per_second": tokens / spent,
        "tflops": products / spent / 1e12,
        "milliseconds": 1000 * statistics.median(times),
        "hours_to_100_000_updates": UPDATES * size.tokens / (tokens / spent) / 3600,
        "seconds_until_warm": first,
        "peak_gb": torch.cuda.max_memory_allocated(device) / 1e9 if device.type == "cuda" else None,
    }


def compile_blocks(model: Transformer) -> None:
    """The blocks of both stacks, for each shape that they meet; what is between them stays as it is."""
    constant_while_compiled()
    torch._dynamo.config.cache_size_limit = 64  # as many as blocks and buckets
    for stack in (model.encoder, model.decoder):
        for block in stack.blocks:
            block.compile(dynamic=False)


def constant_while_compiled() -> None:
    """Nobody looks at attention here: the compiler need not stop to ask who does."""
    for asked in (active_record, active_interventions):
        torch.compiler.assume_constant_result(asked)


def batches_by_bucket(size: Size, device: torch.device) -> list[Batch]:
    """For each length bucket one batch of about `size.tokens` target tokens, lengths as they are drawn."""
    draw, found = np.random.default_rng(1), list[Batch]()
    for longest in range(BUCKET, size.longest + 1, BUCKET):
        rows = max(1, round(size.tokens / (longest - BUCKET / 2)))
        source, target = (sentences(draw, rows, longest, size.vocabulary, device) for _ in range(2))
        found.append(Batch(source, target, int(target.lengths.sum()) - rows))
    return found


def sentences(draw: np.random.Generator, rows: int, longest: int, vocabulary: int, device: torch.device) -> Padded:
    """(B, T) random ids, of lengths that belong into the bucket; the first row fills it."""
    lengths = draw.integers(longest - BUCKET + 1, longest + 1, rows)
    lengths[0] = longest
    ids = draw.integers(END + 1, vocabulary, (rows, longest))
    ids[np.arange(longest)[None] >= lengths[:, None]] = PAD
    return Padded(torch.from_numpy(ids).to(device), torch.from_numpy(lengths).to(device))


def drawn_buckets(size: Size, count: int) -> Iterator[int]:
    """Buckets as often as the tokens of drawn sentences are in them."""
    draw = np.random.default_rng(2)
    lengths = np.exp(draw.normal(math.log(size.mean) - 0.18, 0.6, 100_000)).clip(1, BUCKET * count)
    weights = np.bincount(((lengths - 1) // BUCKET).astype(int), lengths, count)
    while True:
        yield int(draw.choice(count, p=weights / weights.sum()))


# ---- decoding --------------------------------------------------------------------------------------------


def decoding(size: Size, device: torch.device, theirs: bool) -> dict[str, Any]:
    """Tokens a second of each search in fp32 (TF32 where the device has it) and bf16, and what was written."""
    model = size.model().eval()
    source = sentences(np.random.default_rng(3), ROWS, 2 * BUCKET, size.vocabulary, device)
    source.values[torch.arange(ROWS), source.lengths - 1] = END
    write = their_decoder(model, size, device) if theirs else our_decoder(model, device)
    found: dict[str, Any] = {}
    for precision in ("fp32", "bf16"):
        for name, beam in {"greedy": 1, "beam 5": 5}.items():
            write(source, size.written, beam, precision)
            rows: list[list[int]] = []
            spent = timed(lambda: rows.extend(write(source, size.written, beam, precision)), device)  # noqa: B023
            found[f"{name}, {precision}"] = {"tokens_per_second": ROWS * size.written / spent}
            written = RESULTS / f"gpu-{name.replace(' ', '-')}-{precision}.npy"
            if theirs:
                with contextlib.suppress(OSError):
                    ours = np.load(written)
                    alike = sum(list(a) == b for a, b in zip(ours.tolist(), rows, strict=True))
                    found[f"{name}, {precision}"]["rows_alike"] = alike / ROWS
                    written.unlink()
            else:
                RESULTS.mkdir(exist_ok=True)
                np.save(written, np.array(rows))
    return found


Write = Callable[[Padded, int, int, str], list[list[int]]]


def our_decoder(model: Transformer, device: torch.device) -> Write:
    """Search of the toolkit, through its blocks of torch where there are no kernels."""
    model.to(device)

    def write(source: Padded, count: int, beam: int, precision: str) -> list[list[int]]:
        settings = Search(method="beam" if beam > 1 else "greedy", beam=beam, alpha=0.0)
        requests = [Request(limit=count + 1, min_length=count) for _ in range(ROWS)]
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            found = search(model, source, requests, settings, start=START, end=END, forbidden=[PAD, START])
        return [list(best[0].tokens[:count]) for best in found]

    return write


def their_decoder(model: Transformer, size: Size, device: torch.device) -> Write:
    """Hugging Face's generate on the same weights.

    Raises:
        SystemExit: transformers is not installed.
    """
    sys.path.insert(0, str(HERE / "peers"))
    try:
        from marian import config, renamed
        from transformers import MarianMTModel
    except ImportError as error:
        raise SystemExit(f"{error.name} is not installed: pip install 'transduce[huggingface]'") from error
    from model_file import sinusoids

    shape = (size.width, size.layers, size.hidden)
    other = MarianMTModel(config(size.vocabulary, shape, size.heads)).eval()
    positions = torch.from_numpy(sinusoids(512, size.width))
    other.load_state_dict(renamed(dict(model.state_dict()), positions, size.layers), strict=True)
    other.to(device)

    @torch.inference_mode()
    def write(source: Padded, count: int, beam: int, precision: str) -> list[list[int]]:
        with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
            rows = other.generate(
                input_ids=source.values,
                attention_mask=source.mask().long(),
                num_beams=beam,
                length_penalty=0.0,
                min_new_tokens=count,
                max_new_tokens=count,
                do_sample=False,
                bad_words_ids=[[PAD], [START], [END]],
            )
        found: list[list[int]] = rows[:, 1 : count + 1].tolist()
        return found

    return write


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    main()
