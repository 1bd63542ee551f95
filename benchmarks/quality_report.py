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

How long it takes until a model of this size is as good as the best that another toolkit trains, each with a recipe that
suits it (`benchmarks/time_to_quality.py`; {threads} thread, seed {seed}, written on {date}). Times are {clock},
without validations. BLEU is of the validation set ({bleu}); ours is of averaged
weights, and was looked at every {every} updates. Marian trains in {precision}, which is the faster for it there.

![time to quality](figures/time-to-quality.svg)

{table}
"""
CLOCKS = {"training_processor_seconds": "seconds of the processor", "training_seconds": "seconds by the wall"}


def section() -> str:
    """In Markdown; draws the figure. Empty where nothing was measured."""
    if not RESULT.is_file():
        return ""
    result = json.loads(RESULT.read_text(encoding="utf-8"))
    draw(result)
    about = {name: result[name] for name in ("threads", "seed", "date", "bleu")}
    ours = result["curves"][OURS]
    about |= {"every": ours[1]["update"] - ours[0]["update"], "precision": result["precision"]}
    return SECTION.format(**about, clock=CLOCKS[result["clock"]], table=table(result["rows"], result["clock"]))


def table(rows: list[dict[str, Any]], clock: str) -> str:
    """The better peer first."""
    lines = ["| their best BLEU | theirs, s | ours to at least that, s | times as long |", "|---|---|---|---|"]
    for row in rows:
        theirs, ours = row["theirs"], row["ours"]
        cells = [f"{row['who']}: {theirs['bleu']:.2f}", f"{theirs[clock]:,.0f} (update {theirs['update']})"]
        if ours:
            cells += [f"{ours[clock]:,.0f} ({ours['bleu']:.2f}, update {ours['update']})", str(row["ratio"][clock])]
        else:
            cells += ["never", ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def draw(result: dict[str, Any]) -> None:
    """BLEU over time, a line for each."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(7, 3), layout="constrained")
    others = iter(("#d55e00", "#888888"))
    for who, curve in result["curves"].items():
        times, bleu = [point[result["clock"]] for point in curve], [point["bleu"] for point in curve]
        axis.plot(times, bleu, marker=".", label=who, color="#0072b2" if who == OURS else next(others))
    axis.set_xlabel(CLOCKS[result["clock"]])
    axis.set_ylabel("BLEU, validation")
    axis.legend(fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(FIGURE, metadata={"Date": None})
    pyplot.close(figure)
