"""Turn benchmarks/results/speed-MACHINE.json into docs/performance.md and its figures, a section for each machine.

    python benchmarks/speed_report.py

`benchmarks/speed.py` calls this when it has measured.
"""

import json
from pathlib import Path
from typing import Any

from gpu_report import gpu_section
from quality_report import OURS, section

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAGE = HERE.parent / "docs" / "performance.md"
FIGURES = HERE.parent / "docs" / "figures"
TITLES = {
    "training bf16": ("Training in bf16", "tokens_per_second", "target tokens/s"),
    "training fp32": ("Training in fp32", "tokens_per_second", "target tokens/s"),
    "beam 5": ("Translating, beam 5, batches of 64", "sentences_per_second", "sentences/s"),
    "greedy": ("Translating greedily, batches of 64", "sentences_per_second", "sentences/s"),
    "one at a time, beam 5": ("One sentence at a time, beam 5", "p50_ms", "ms, median sentence"),
    "first answer": ("From the start of the process to the first answer", "seconds", "s"),
}
LESS_IS_BETTER = ("p50_ms", "seconds")
PREFACE = """# Performance

How fast Transduce trains and translates, compared with other toolkits. `make bench-peers` (`benchmarks/speed.py`) makes
this page.

Every toolkit trains and decodes the same model on the same token ids. Each measurement runs in its own process, and the
toolkits take turns. The tables give the median of the rounds with the minimum and the maximum. Each machine has its own
section, because processors differ by up to a factor of ten in the products that they are fast at.

- **Model**: d_model 256, 3 + 3 layers, 4 heads, feed-forward 1,024, post-norm.
- **Data**: Multi30k en-de, joint BPE vocabulary of 8,000, about 4,096 padded target tokens per batch. Plain loops
  around other libraries receive Transduce's batches, which contain little padding. JoeyNMT makes its own.
- **BLEU**: sacreBLEU on test_2016_flickr, cased, 13a.
- **GB**: peak memory of all processes together, with shared memory counted once.
- **Decoding in batches**: two workers with one thread each.
"""
MACHINE = """## {title}

Measured on {date}, rounds: {rounds}; {machine}; torch {torch}. Peers: {peers}.

![speed](figures/speed-{name}.svg)
"""
WIDTH, HIDDEN, LAYERS = 256, 1024, 3


def main() -> None:
    """Read, write."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in RESULTS.glob("speed-*.json")]
    results = sorted(found, key=lambda result: result["date"], reverse=True)
    parts = [PREFACE, *(part for result in results for part in parts_of(result)), gpu_section(), section()]
    PAGE.write_text("\n".join(part for part in parts if part), encoding="utf-8")
    for result in results:
        draw(result)


def name_of(machine: dict[str, Any]) -> str:
    """What its files are called by: intel-xeon-amx, nvidia-h100."""
    called = machine.get("accelerator") or f"{machine['processor']} {machine['kernels']}"
    return str(called).lower().replace(" ", "-")


def parts_of(result: dict[str, Any]) -> list[str]:
    """A machine's section in Markdown."""
    machine = result["machine"]
    about = {
        "title": machine.get("accelerator")
        or f"{machine['processor']}, {machine['cores']} cores, kernels for {machine['kernels']}",
        "machine": ", ".join(f"{name} {value}" for name, value in machine.items()),
        "peers": "; ".join(" ".join(each) for each in result["peers"].values()),
        "torch": result["versions"]["torch"],
        "name": name_of(machine),
    }
    heading = MACHINE.format(**about, date=result["date"], rounds=result["rounds"])
    return [heading, limits(result), *(table(result, what) for what in TITLES if rows_of(result, what))]


def limits(result: dict[str, Any]) -> str:
    """What the machine can do, and what that would be in tokens."""
    best = {row["figure"]: row["median"] for row in result["rows"] if row["what"] == "limits"}
    return (
        f"The machine's peak rate of matrix products is {best['fp32_gflops']:.0f} GFLOP/s in fp32 and "
        f"{best['bf16_gflops']:.0f} in bf16; its memory bandwidth is {best['gigabytes_per_second']:.0f} GB/s. Training "
        f"needs {operations_a_token(result) / 1e6:.1f} MFLOP of matrix products per target token. The share of peak "
        "below follows from these.\n"
    )


def operations_a_token(result: dict[str, Any]) -> float:
    """Of matrix products, forward and backward (three times forward), source words counted by their ratio."""
    return operations(WIDTH, HIDDEN, LAYERS, result["work"]["vocabulary"], result["work"]["source_per_target"], 1)


def operations(width: int, hidden: int, layers: int, vocabulary: int, source: float, target: float) -> float:
    """Of a Transformer's matrix products with weights, forward and backward, for so many positions of both sides."""
    square, wide = width * width, 2 * width * hidden
    of_source = layers * (4 * square + wide + 2 * square)  # encoder, and the decoder's keys and values of the source
    of_target = layers * (6 * square + wide) + vocabulary * width
    return float(3 * 2 * (source * of_source + target * of_target))


def rows_of(result: dict[str, Any], what: str) -> list[dict[str, Any]]:
    """Best first."""
    _, figure, _ = TITLES[what]
    rows = [row for row in result["rows"] if row["what"] == what and row["figure"] == figure]
    return sorted(rows, key=lambda row: row["median"], reverse=figure not in LESS_IS_BETTER)


def table(result: dict[str, Any], what: str) -> str:
    """One of the page's tables."""
    title, _, unit = TITLES[what]
    rows = rows_of(result, what)
    ours = next((row["median"] for row in rows if row["who"] == OURS), None)
    limit = {row["figure"]: row["median"] for row in result["rows"] if row["what"] == "limits"}
    share = limit.get(f"{what.removeprefix('training ')}_gflops")
    bleu, memory = (medians(result, what, figure) for figure in ("bleu", "peak_memory_gb"))
    more = " share of peak |" if share else " BLEU | GB |" if bleu else ""
    lines = [f"### {title}\n", f"| | {unit} | min - max | relative to Transduce |{more}"]
    lines.append("|---|---|---|---|" + "---|" * (more.count("|")))
    for row in rows:
        beside = f"{row['median'] / ours:.2f}" if ours else ""
        name = f"**{row['who']}**" if row["who"].startswith(OURS) else row["who"]
        cells = [name, number(row["median"]), f"{number(row['least'])} - {number(row['most'])}", beside]
        if share:
            cells.append(f"{row['median'] * operations_a_token(result) / 1e9 / share:.2f}")
        if bleu:
            cells += [f"{bleu[row['who']]:.2f}", number(memory[row["who"]])]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def medians(result: dict[str, Any], what: str, figure: str) -> dict[str, float]:
    """By who."""
    rows = [row for row in result["rows"] if row["what"] == what and row["figure"] == figure]
    return {row["who"]: row["median"] for row in rows}


def number(value: float) -> str:
    """Three digits that matter."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def draw(result: dict[str, Any]) -> None:
    """Bars, a panel for each thing that several were measured at."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    shown = [what for what in TITLES if len(rows_of(result, what)) > 1]  # one bar alone says nothing
    figure, axes = pyplot.subplots(len(shown), 1, figsize=(7, 1.9 * len(shown)), layout="constrained", squeeze=False)
    for axis, what in zip(axes[:, 0], shown, strict=True):
        rows = rows_of(result, what)[::-1]
        colours = ["#0072b2" if row["who"].startswith(OURS) else "#bbbbbb" for row in rows]
        axis.barh([row["who"] for row in rows], [row["median"] for row in rows], color=colours)
        axis.set_title(f"{TITLES[what][0]} ({TITLES[what][2]})", loc="left", fontsize=9)
        axis.tick_params(labelsize=8)
        axis.spines[["top", "right"]].set_visible(False)
    FIGURES.mkdir(exist_ok=True)
    figure.savefig(FIGURES / f"speed-{name_of(result['machine'])}.svg", metadata={"Date": None})
    pyplot.close(figure)


if __name__ == "__main__":
    main()
