"""Writes docs/limits.md and its figures from benchmarks/results/limits/.

`tests/test_docs.py` fails when the page is out of date.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent, indent
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
from records import read_record

from transduce.compare.axis_tables import axis_charts, axis_tables
from transduce.compare.chart import Line, line_chart
from transduce.interpret.drawing import save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = dict[str, Any]
ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_name("limits.md")
IMAGES = PAGE.with_name("images")
RECORDS = ROOT / "benchmarks" / "results" / "limits"
RECIPES = ROOT / "recipes" / "compare"
GIB = 2**30
NAMES = {
    "data-hunger": "Data hunger",
    "window": "A fixed window: copying",
    "window-scan": "A fixed window: SCAN",
    "cost": "Cost",
}
HEAD = """# The limits, measured

What attention cannot do, or not without much data, memory or time. Each section is one question with its command, its
figure and what is read from it. The sentences that begin with a metric are computed from the table. Budgets are small,
so they say what a model does after little training, not what it could do in the end.

- [Comparisons](compare.md) explains tables, budgets and axes.
- Two more pages: [attention as people use it](attention-as-people-do.md), and
  [attention that becomes a convolution](attention-becomes-convolution.md).
- Bands in figures, and brackets in tables, are 95 % intervals (bootstrap over examples and trainings).

`python docs/make_limits.py` makes this page from the records that `python benchmarks/publish_comparison.py DIR` and
`python benchmarks/cost.py` write.
"""


def page() -> str:
    """The whole page."""
    return HEAD + "".join(section(name, record(name)) for name in NAMES)


def record(name: str) -> Record | None:
    """See `read_record`."""
    return read_record(RECORDS / f"{name}.json")


def section(name: str, found: Record | None) -> str:
    """One question with its answer."""
    question, command = asked(name)
    parts = [f"\n## {NAMES[name]}", question, command]
    if found is None:
        parts.append("There is no record yet.")
    elif name == "cost":
        parts += [f"![{name}](images/limits-cost-{what}.svg)" for what in ("memory", "time")]
        parts += [cost_table(found), cost_in_words(found), how_measured(found)]
    else:
        parts += [f"![{each}](images/limits-{name}-{each}.svg)" for each in charts_of(found)]
        parts += [*tables_of(found), how(found)]
    return "\n\n".join(parts) + "\n"


def asked(name: str) -> tuple[str, str]:
    """What the recipe asks and says, and the command that answers it."""
    lines = (RECIPES / f"{name}.toml").read_text(encoding="utf-8").splitlines()
    head = lines[: next(number for number, line in enumerate(lines) if not line.startswith("#"))]
    paragraphs = "\n".join(line.removeprefix("#").removeprefix(" ") for line in head).split("\n\n")
    command = indent(dedent(next(each for each in paragraphs if each.startswith("  "))), "    ").rstrip()
    return "\n\n".join(each for each in paragraphs if not each.startswith("  ")), command


def tables_of(found: Record) -> Iterator[str]:
    """What decides along the axis, and in sentences where lines cross."""
    for table in axis_tables(found):
        if table.headers:
            yield f"**{table.title}**"
            yield _table(table.headers, table.rows)
        else:
            yield "".join(f"- {row[0]}\n" for row in table.rows).rstrip()


def charts_of(found: Record) -> "dict[str, Figure]":
    """Of each test, what decides along the axis."""
    return axis_charts(found)


def how(found: Record) -> str:
    """What it took."""
    points = found.get("points", [found])
    trainings = [each for point in points for one in point["variants"].values() for each in one["trainings"]]
    updates = sorted({each["updates"] for each in trainings if "updates" in each})
    minutes = sum(each.get("minutes", 0) for each in trainings)
    failed = sum("failed" in each for each in trainings)
    counts = f"{updates[0]:,}" if len(updates) == 1 else f"{updates[0]:,} to {updates[-1]:,}"
    weights = {name: variant["parameters"] for point in points for name, variant in point["variants"].items()}
    listed = ", ".join(f"{name} {count:,}" for name, count in weights.items())
    machine, versions = found["machine"], found["versions"]
    said = f"{len(trainings)} trainings{f', {failed} of which failed' * bool(failed)}"
    return (
        f"{said}; budget {found['budget']} each, "
        f"which is {counts} updates; seeds {', '.join(map(str, found['seeds']))}; {minutes:.0f} minutes in all, on a "
        f"machine that did other work too. Weights: {listed}. {machine['processor']}, {machine['kernels']} kernels, "
        f"{found['precision']}, Python {versions['python']}, torch {versions['torch']}, {found['finished']}, commit "
        f"`{found['commit']}`."
    )


def cost_table(found: Record) -> str:
    """Memory and time at each length that was measured, and where the limit is reached."""
    lengths = sorted({length for one in found["variants"].values() for length in one["lengths"]})
    limit = f"{found['limit'] / GIB:g} GiB"
    head = [
        "variant",
        *(f"n = {length:,}" for length in lengths),
        "memory ~",
        "time ~",
        f"n at {limit}",
        "a pass there",
    ]
    rows = []
    for name, one in found["variants"].items():
        measured = zip(one["lengths"], one["bytes"], one["seconds"], strict=True)
        cells = {length: f"{size / 2**20:,.0f} MiB, {time:.2f} s" for length, size, time in measured}
        row = [name, *(cells.get(length, "") for length in lengths)]
        row += [f"n^{one['exponent_of_bytes']:.2f}", f"n^{one['exponent_of_seconds']:.2f}"]
        rows.append([*row, f"{_rounded(one['length_at_limit']):,}", f"{_rounded(one['seconds_there']):,} s"])
    return _table(head, rows)


def cost_in_words(found: Record) -> str:
    """Which ends first, and which last."""
    ends = {name: one["length_at_limit"] for name, one in found["variants"].items()}
    ordered = sorted(ends, key=lambda name: ends[name])
    listed = ", ".join(f"{name} at {_rounded(ends[name]):,}" for name in ordered)
    return (
        f"{found['limit'] / GIB:g} GiB end at these lengths, extrapolated from the longest that was measured: {listed} "
        "tokens. On a processor the local and strided patterns are masks over full attention, which save nothing."
    )


def how_measured(found: Record) -> str:
    """The machine."""
    machine, versions = found["machine"], found["versions"]
    return (
        f"One text, forward and backward, one thread, fp32. {machine['processor']}, {machine['kernels']} kernels, "
        f"Python {versions['python']}, torch {versions['torch']}, {found['date']}, commit `{found['commit']}`."
    )


def figures() -> "Iterator[tuple[str, Figure]]":
    """All that the page shows, by file name."""
    for name in NAMES:
        if found := record(name):
            charts = cost_charts(found) if name == "cost" else charts_of(found)
            yield from ((f"limits-{name}-{each}.svg", figure) for each, figure in charts.items())


def cost_charts(found: Record) -> "dict[str, Figure]":
    """Memory and time by length."""
    lines: dict[str, list[Line]] = {"memory": [], "time": []}
    for name, one in found["variants"].items():
        sizes = [size / GIB for size in one["bytes"]]
        lines["memory"].append(Line(name, list(zip(one["lengths"], sizes, strict=True))))
        lines["time"].append(Line(name, list(zip(one["lengths"], one["seconds"], strict=True))))
    across, titles = "tokens of a text", {"memory": "GiB", "time": "seconds"}
    return {what: line_chart(what, across, titles[what], each, logarithmic=True) for what, each in lines.items()}


def _rounded(value: float) -> int:
    """Two digits that count."""
    return round(value, 2 - len(str(int(value)))) if value >= 1 else 1  # type: ignore[return-value]


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines).rstrip()


if __name__ == "__main__":
    for file, drawn in figures():
        sys.stdout.write(f"{save(drawn, IMAGES / file)}\n")
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
