"""benchmarks/results/gpu-NAME.json as a section of docs/performance.md.

`benchmarks/speed_report.py` puts it there; `benchmarks/gpu.sh` measures and calls that.
"""

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
NONE = """## On a GPU

Not measured yet: no GPU could be had. `benchmarks/gpu.sh` measures it in twelve minutes and writes this section.
"""
SECTION = """## {accelerator}

Measured on {date} with torch {torch} (`benchmarks/gpu.sh`). The model is the base model of Vaswani et al. (2017):
d_model 512, 6 + 6 layers, a vocabulary of 37,000. The ids are random, the lengths those of news.

Large matrix products reach {bf16_tflops:,.0f} TFLOP/s in bf16 and {fp32_tflops:,.0f} in fp32 (TF32 where there is
such), and memory is read at {gigabytes_per_second:,.0f} GB/s.
"""
TRAINING = """### Training in bf16, 25,000 target tokens an update

| blocks | target tokens/s | TFLOP/s of products | share of the limit | hours to 100,000 updates | s until warm | GB |
|---|---|---|---|---|---|---|
{rows}
"""
DECODING = """### Decoding, 256 sentences at once, 64 tokens each

| search | Transduce, tokens/s | Hugging Face Marian, tokens/s | ratio | rows alike |
|---|---|---|---|---|
{rows}
"""
BLOCKS = {"training": "as they are", "training, compiled": "compiled for each length bucket"}


def gpu_section() -> str:
    """In Markdown, a part for each GPU that was measured; or that none was."""
    results = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("gpu-*.json"))]
    return "\n".join(map(_part, results)) or NONE


def _part(result: dict[str, Any]) -> str:
    rows, machine = result["rows"], result["machine"]
    limit = rows["limits"]
    if "error" in limit:
        return f"## {machine['accelerator']}\n\nNot measured: {limit['error']}.\n"
    heading = SECTION.format(
        accelerator=machine["accelerator"], date=result["date"], torch=result["versions"]["torch"], **limit
    )
    training = [_trained(name, rows[stage], limit["bf16_tflops"]) for stage, name in BLOCKS.items()]
    parts = [heading, TRAINING.format(rows="\n".join(training))]
    ours, theirs = rows["decoding"], rows["decoding, Hugging Face"]
    if "error" in ours:
        return "\n".join([*parts, f"Decoding was not measured: {ours['error']}.\n"])
    return "\n".join([*parts, DECODING.format(rows="\n".join(_decoded(each, ours, theirs) for each in ours))])


def _trained(name: str, row: dict[str, Any], limit: float) -> str:
    if "error" in row:
        return f"| {name} | {row['error']} | | | | | |"
    cells = [
        f"{row['tokens_per_second']:,.0f}",
        f"{row['tflops']:.1f}",
        f"{row['tflops'] / limit:.2f}",
        f"{row['hours_to_100_000_updates']:.1f}",
        f"{row['seconds_until_warm']:.0f}",
        f"{row['peak_gb']:.1f}",
    ]
    return f"| {name} | {' | '.join(cells)} |"


def _decoded(search: str, ours: dict[str, Any], theirs: dict[str, Any]) -> str:
    speed = ours[search]["tokens_per_second"]
    if "error" in theirs:
        return f"| {search} | {speed:,.0f} | {theirs['error']} | | |"
    other = theirs[search]
    ratio = f"{speed / other['tokens_per_second']:.2f}"
    return f"| {search} | {speed:,.0f} | {other['tokens_per_second']:,.0f} | {ratio} | {other['rows_alike']:.0%} |"
