"""benchmarks/results/time_to_quality.json as a section of docs/performance.md, and its figure.

`benchmarks/speed_report.py` puts it there; `benchmarks/time_to_quality.py` calls that when it has measured.
"""

import json
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULT = HERE / "results" / "time_to_quality.json"
FIGURE = HERE.parent / "docs" / "figures" / "time-to-quality.svg"
OURS = "Transduce"
SECTION = """## Time to quality

How long does training take to reach the quality that another toolkit reaches? Each toolkit uses a recipe that suits it
(`benchmarks/time_to_quality.py`; {processor}, kernels for {kernels}, {threads} thread, seed {seed}, written on {date}).

Models have the size above, or width 128 with four blocks on each side and a feed-forward layer of 256; the narrow size
was trained with {narrow}. Times are in {clock}, without validations. Marian trains in {precision}, which is faster for
it on this machine. BLEU is measured on the validation set ({bleu}); Transduce's is of averaged weights. Each model was
evaluated at the points that the figure shows. Values between two points are interpolated linearly.

The trainings ran for these numbers of target tokens, in millions. Where the last evaluation was the best, longer
training may be better still. {trained}.

![time to quality](figures/time-to-quality.svg)

{table}
"""
CLOCKS = {"training_processor_seconds": "seconds of processor time", "training_seconds": "seconds of wall-clock time"}


def section() -> str:
    """In Markdown; draws the figure. Empty where nothing was measured."""
    if not RESULT.is_file():
        return ""
    result = json.loads(RESULT.read_text(encoding="utf-8"))
    draw(result)
    about = {name: result[name] for name in ("threads", "seed", "date", "bleu")}
    about |= {name: result["machine"][name] for name in ("processor", "kernels")}
    about["precision"] = result["precision"]
    about["narrow"] = " and ".join(who.partition(",")[0] for who in result["curves"] if "128" in who) or "nobody"
    about["trained"] = "; ".join(f"{who} {_trained(curve)}" for who, curve in result["curves"].items())
    return SECTION.format(**about, clock=CLOCKS[result["clock"]], table=table(result["rows"], result["clock"]))


def table(rows: list[dict[str, Any]], clock: str) -> str:
    """A line for each peer and height, in the order of `rows`, a peer's best first."""
    ours = list(rows[0]["ours"]) if rows else []
    head = ["validation BLEU", "theirs, s", *(column for name in ours for column in (f"{name}, s", "speed-up"))]
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    peers = set()
    for row in rows:
        height = f"{row['bleu']:g}" if row["who"] in peers else f"{row['bleu']:.2f}, the best of {row['who']}"
        peers.add(row["who"])
        cells = [height, _seconds(row["theirs"], clock)]
        for found in row["ours"].values():
            cells += [_seconds(found["reached"], clock), f"{found['ratio'][clock]:.2f}" if found["ratio"] else ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _seconds(point: dict[str, float] | None, clock: str) -> str:
    return f"{point[clock]:,.0f}" if point else "never"


def _trained(curve: list[dict[str, float]]) -> str:
    best = max(curve, key=lambda point: point["bleu"])
    return f"{curve[-1]['tokens'] / 1e6:.1f}" + (" (the last evaluation was the best)" if best is curve[-1] else "")


def draw(result: dict[str, Any]) -> None:
    """BLEU over time, a line for each."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(7, 3), layout="constrained")
    colours = {True: iter(("#0072b2", "#56b4e9")), False: iter(("#d55e00", "#e69f00", "#888888"))}
    for who, curve in result["curves"].items():
        times, bleu = [point[result["clock"]] for point in curve], [point["bleu"] for point in curve]
        axis.plot(times, bleu, marker=".", label=who, color=next(colours[who.startswith(OURS)]))
    axis.set_xlabel(CLOCKS[result["clock"]])
    axis.set_ylabel("BLEU, validation")
    axis.legend(fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(FIGURE, metadata={"Date": None})
    pyplot.close(figure)
