"""Writes the tables and figures of attention-as-people-do.md and attention-becomes-convolution.md, from records.

    python benchmarks/looked_at.py runs/compare/cards runs/compare/eights
    python benchmarks/digits.py
    python docs/make_attention_pages.py

`tests/test_attention_pages.py` fails when a page is out of date.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from transduce.data.labelled import BLACK, RED
from transduce.interpret.colours import HEADS as HEAD_COLOURS
from transduce.interpret.colours import ink
from transduce.interpret.drawing import in_style, new_figure, save

DOCS = Path(__file__).parent
RECORDS = DOCS.parent / "benchmarks" / "results"
PEOPLE, CONVOLUTION = DOCS / "attention-as-people-do.md", DOCS / "attention-becomes-convolution.md"
COMPARISONS = {"cards": "the black cards", "eights": "the 8"}
END = "<!-- end -->\n"
CELL = 0.36  # inches
REACH = 4  # pixels around the query that are drawn


def page(path: Path) -> str:
    """A page as it should be: what lies between its marks is made from the records, where there are any."""
    text = path.read_text(encoding="utf-8")
    if path == CONVOLUTION:
        record = _record("digits")
        return between(text, "<!-- digits -->\n", found_of_digits(record)) if record else text
    for name, what in COMPARISONS.items():
        record = _record(f"looked_at/{name}")
        text = between(text, f"<!-- {name} -->\n", found(record, what)) if record else text
    return text


def between(text: str, begin: str, made: str) -> str:
    """The text with `made` after the mark `begin` and before the next end mark."""
    before = text.index(begin) + len(begin)
    return text[:before] + made + text[text.index(END, before) :]


def found(record: dict[str, Any], what: str) -> str:
    """Table, sentence, figure and circumstances of a comparison."""
    head = ["variant", "accuracy", f"share on {what}", "all seen", "share with each seed"]
    rows = [
        [f"`{variant}`", *(_cell(figures.get(key)) for key in ("right", "share", "seen")), _seeds(figures.get("share"))]
        for variant, figures in record["variants"].items()
    ]
    seeds = ", ".join(next(iter(record["variants"].values()))["right"]["seeds"])
    name = record["comparison"]
    how = (
        f"Budget {record['budget']} a training; seeds {seeds}; {record['rows']:,} rows that training did not see. "
        f"Brackets: 95 % bootstrap intervals over rows and seeds. {record['machine']}, torch {record['torch']}, commit "
        f"`{record['commit']}`."
    )
    figure = f"![What each hop attends to in a few rows]({_figure(f'looked-at-{name}').relative_to(DOCS).as_posix()})"
    return f"{_table(head, rows)}\n{said(record, what)}\n\n{figure}\n\n{how}\n"


def said(record: dict[str, Any], what: str) -> str:
    """Which variants look at what counts, in a sentence."""
    shares = {name: each["share"]["mean"] for name, each in record["variants"].items() if "share" in each}
    told = ", ".join(f"`{name}` {share:.1f} %" for name, share in shares.items())
    least = min(shares, key=lambda name: shares[name])
    rest = 100 - shares[least]
    return f"Of the attention, this is on {what}: {told}. At most {rest:.1f} % goes anywhere else (`{least}`)."


@in_style
def draw(drawn: list[dict[str, Any]]) -> Any:
    """A panel for each row: its glyphs, and under them what each hop of each variant attends to."""
    lines = [(name, hop) for name, each in drawn[0]["variants"].items() for hop in range(len(each["hops"]))]
    longest = max(len(row["text"].split()) for row in drawn)
    figure = new_figure(CELL * longest + 3.0, (CELL * (len(lines) + 1) + 0.45) * len(drawn))
    for axes, row in zip(figure.subplots(len(drawn), 1, squeeze=False)[:, 0], drawn, strict=True):
        _panel(axes, row, lines, longest)
    return figure


def _panel(axes: Any, row: dict[str, Any], lines: list[tuple[str, int]], longest: int) -> None:
    from matplotlib.patches import Rectangle

    cards = row["text"].split()
    for place, card in enumerate(cards):
        suited = len(card) > 1 and card[0] in (BLACK, RED)
        colour = "#c1121f" if suited and card[0] == RED else "#1d2433"
        axes.text(place + 0.5, 0.5, card[1:] if suited else card, color=colour, ha="center", va="center", fontsize=12,
                  fontweight="bold")  # fmt: skip
    for line, (name, hop) in enumerate(lines, start=1):
        hops = row["variants"][name]["hops"]
        for place, weight in enumerate(np.clip(hops[hop], 0, 1)):
            axes.add_patch(Rectangle((place + 0.04, line + 0.08), 0.92, 0.84, facecolor=ink(float(weight)), lw=0))
        label = f"{name}, hop {hop + 1}" if len(hops) > 1 else name
        axes.text(-0.15, line + 0.5, label, ha="right", va="center", fontsize=9, color="#6b7385")
        if hop == 0:
            answer = row["variants"][name]["answer"]
            axes.text(len(cards) + 0.2, line + 0.5, f"answers {answer}", va="center", fontsize=9, color="#1d2433")
    axes.text(len(cards) + 0.2, 0.5, f"= {row['label']}", va="center", fontsize=11, fontweight="bold")
    axes.set(xlim=(-3, longest + 3), ylim=(len(lines) + 1, 0), aspect="equal")
    axes.axis("off")


def found_of_digits(record: dict[str, Any]) -> str:
    """Both tables, a sentence, the figure and circumstances of the digits."""
    names = {
        "convolution": "convolution",
        "attention": "attention",
        "moved": "attention, each head moved to its pixel",
    }
    head = ["network", "parameters", "accuracy", "each seed"]
    rows = [
        [shown, f"{record['parameters'].get(name, record['parameters']['attention']):,}", _cell(each), _seeds(each)]
        for name, shown in names.items()
        for each in [record["accuracy"][name]]
    ]
    difference, (low, high) = record["difference"]["value"], record["difference"]["interval"]
    sentence = (
        f"Attention minus convolution: {difference:+.1f} [{low:+.1f}, {high:+.1f}], p = "
        f"{record['difference']['p_value']:.3f}. Moving each head to its pixel changes the accuracy of attention by "
        f"{record['accuracy']['moved']['mean'] - record['accuracy']['attention']['mean']:+.1f}."
    )
    figure = f"![Where the heads look]({_figure('digits').relative_to(DOCS).as_posix()})"
    seeds = ", ".join(map(str, record["seeds"]))
    how = (
        f"The figure shows the first seed: each head's centre and, around it, a circle of its standard deviation. "
        f"{record['training']} images train for {record['epochs']} epochs, {record['test']} test; seeds {seeds}. "
        f"Brackets: 95 % bootstrap intervals over images and seeds. {record['machine']}, torch {record['torch']}, one "
        f"thread, commit `{record['commit']}`."
    )
    return f"{_table(head, rows)}\n{sentence}\n\n{heads_table(record)}\n{figure}\n\n{how}\n"


def heads_table(record: dict[str, Any]) -> str:
    """Of each layer, before and after training: the means over heads and seeds."""
    head = ["layer", "distance to the grid", "weight on one pixel", "different pixels of 9"]
    rows = []
    for number, layers in enumerate(zip(*record["heads"].values(), strict=True), start=1):
        means = {
            key: [float(np.mean([layer[when][key] for layer in layers])) for when in ("before", "after")]
            for key in ("distance", "on_one_pixel", "pixels")
        }
        shares = " → ".join(f"{100 * each:.0f} %" for each in means["on_one_pixel"])
        distances = " → ".join(f"{each:.2f}" for each in means["distance"])
        rows.append([str(number), distances, shares, " → ".join(f"{each:.1f}" for each in means["pixels"])])
    return _table(head, rows)


@in_style
def draw_heads(layers: list[dict[str, Any]]) -> Any:
    """A column for each layer: the pixels around the query and each head's window, before training and after."""
    figure = new_figure(2.5 * len(layers) + 0.5, 5.6)
    panels = figure.subplots(2, len(layers), squeeze=False, sharex=True, sharey=True)
    for column, layer in enumerate(layers):
        for axes, when in zip(panels[:, column], ("before", "after"), strict=True):
            _window(axes, layer[when])
            axes.set_title(f"layer {column + 1}, {when}")
    for axes in panels[1]:
        axes.set_xlabel("pixels to the right")
    for axes in panels[:, 0]:
        axes.set_ylabel("pixels below the query")
    return figure


def _window(axes: Any, heads: dict[str, Any]) -> None:
    from matplotlib.patches import Circle, Rectangle

    for row in range(-REACH, REACH + 1):
        for column in range(-REACH, REACH + 1):
            shade = "#d5d9e2" if row == column == 0 else "#f0f2f6"
            axes.add_patch(Rectangle((column - 0.46, row - 0.46), 0.92, 0.92, facecolor=shade, lw=0))
    for head, ((row, column), alpha) in enumerate(zip(heads["centres"], heads["sharpness"], strict=True)):
        colour = HEAD_COLOURS[head % len(HEAD_COLOURS)]
        axes.add_patch(Circle((column, row), (2 * max(alpha, 0.01)) ** -0.5, facecolor=colour, alpha=0.25, lw=0))
        axes.plot(column, row, "o", color=colour, markersize=3.5)
    ticks = range(-REACH, REACH + 1, 2)
    side = REACH + 0.5
    axes.set(xlim=(-side, side), ylim=(side, -side), xticks=ticks, yticks=ticks, aspect="equal")
    axes.grid(visible=False)


def _record(name: str) -> dict[str, Any] | None:
    path = RECORDS / f"{name}.json"
    record: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return record


def _figure(name: str) -> Path:
    return DOCS / "figures" / f"{name}.svg"


def _cell(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return ""
    return f"{figure['mean']:.1f} [{figure['interval'][0]:.1f}, {figure['interval'][1]:.1f}]"


def _seeds(figure: dict[str, Any] | None) -> str:
    return "" if figure is None else ", ".join(f"{each:.1f}" for each in figure["seeds"].values())


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """The pages, and a figure for each record."""
    for path in (PEOPLE, CONVOLUTION):
        path.write_text(page(path), encoding="utf-8")
        sys.stdout.write(f"{path}\n")
    for name in COMPARISONS:
        if record := _record(f"looked_at/{name}"):
            sys.stdout.write(f"{save(draw(record['drawn']), _figure(f'looked-at-{name}'))}\n")
    if record := _record("digits"):
        sys.stdout.write(f"{save(draw_heads(next(iter(record['heads'].values()))), _figure('digits'))}\n")


if __name__ == "__main__":
    main()
