"""Writes the tables and figures of the pages on attention that people use, from benchmarks/results/.

    python benchmarks/looked_at.py runs/compare/cards runs/compare/eights
    python docs/make_attention_pages.py

`tests/test_attention_pages.py` fails when a page is out of date.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from transduce.data.glyph_rows import BLACK, RED
from transduce.interpret.colours import ink
from transduce.interpret.drawing import in_style, new_figure, save

DOCS = Path(__file__).parent
RECORDS = DOCS.parent / "benchmarks" / "results" / "looked_at"
PAGE = DOCS / "attention-as-people-do.md"
COMPARISONS = {"cards": "the black cards", "eights": "the 8"}
END = "<!-- end -->\n"
CELL = 0.36  # inches


def page(path: Path = PAGE) -> str:
    """The page as it should be: what lies between its marks is made from the records, where there are any."""
    text = path.read_text(encoding="utf-8")
    for name, what in COMPARISONS.items():
        record = _record(name)
        if record:
            text = between(text, f"<!-- {name} -->\n", found(record, what))
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
    figure = f"![What each hop attends to in a few rows]({_figure(name).relative_to(DOCS).as_posix()})"
    return f"{_table(head, rows)}\n{said(record, what)}\n\n{figure}\n\n{how}\n"


def said(record: dict[str, Any], what: str) -> str:
    """Which variants look at what counts, in a sentence."""
    shares = {name: each["share"]["mean"] for name, each in record["variants"].items() if "share" in each}
    told = ", ".join(f"`{name}` {share:.1f} %" for name, share in shares.items())
    least = min(shares, key=lambda name: shares[name])
    rest = 100 - shares[least]
    return f"Of the attention, this is on {what}: {told}. At most {rest:.1f} % goes anywhere else (`{least}`)."


def draw(record: dict[str, Any]) -> Any:
    """A panel for each row: its glyphs, and under them what each hop of each variant attends to."""
    return _figure_of(record["drawn"])


@in_style
def _figure_of(drawn: list[dict[str, Any]]) -> Any:
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


def _record(name: str) -> dict[str, Any] | None:
    path = RECORDS / f"{name}.json"
    record: dict[str, Any] | None = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    return record


def _figure(name: str) -> Path:
    return DOCS / "figures" / f"looked-at-{name}.svg"


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
    """The page, and a figure for each record."""
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")
    for name in COMPARISONS:
        record = _record(name)
        if record:
            sys.stdout.write(f"{save(draw(record), _figure(name))}\n")


if __name__ == "__main__":
    main()
