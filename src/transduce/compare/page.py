"""Write the results of a comparison as Markdown with figures beside it, and as a self-contained HTML page."""

from html import escape
from pathlib import Path
from typing import Any

from transduce.compare.chart import Line, line_chart
from transduce.compare.tables import Table, all_tables
from transduce.core.atomic import write_text

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1d2433; max-width: 1320px; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin-top: 2.2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #d5d9e2; text-align: right; white-space: nowrap; }
th { color: #6b7385; font-weight: 600; white-space: normal; vertical-align: bottom; } .text { text-align: left; }
.note { color: #6b7385; font-size: .85rem; margin: .2rem 0; overflow-wrap: anywhere; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem; } .figures svg { width: 570px; max-width: 100%; height: auto; }
"""
UNITS = {"minutes": "minutes of training", "tokens": "target tokens", "flops": "operations"}


def write_pages(results: dict[str, Any], folder: Path) -> None:
    """compare.md with figures/*.svg, and compare.html."""
    figures = charts(results)
    (folder / "figures").mkdir(exist_ok=True)
    for name, figure in figures.items():
        write_text(folder / "figures" / f"{name}.svg", figure)
    write_text(folder / "compare.md", markdown(results, list(figures)))
    write_text(folder / "compare.html", page(results, figures))


def charts(results: dict[str, Any]) -> dict[str, str]:
    """Learning curves, over what the budget counts, and growth with sequence length: name -> SVG."""
    unit = results["budget"]["unit"]
    curves = [
        Line(name, [(point[unit], point["loss"]) for point in run["curve"]])
        for name, variant in results["variants"].items()
        for run in variant["runs"]
        if run["curve"]
    ]
    growth = [
        Line(name, [(n, 1000 * t) for n, t in zip(each["lengths"], each["seconds_a_layer"], strict=True)])
        for name, variant in results["variants"].items()
        for each in [variant["growth"]]
    ]
    time = "milliseconds, forward and backward"
    figures = {"growth": line_chart("Time a layer", "sequence length", time, growth, logarithmic=True)}
    if curves:
        title, loss = "Learning curves", "validation loss, nats a token"
        figures = {"learning-curves": line_chart(title, UNITS[unit], loss, curves), **figures}
    return figures


def markdown(results: dict[str, Any], figures: list[str]) -> str:
    """The page as Markdown; the figures are linked as figures/NAME.svg."""
    parts = [f"# {results['name']}\n"]
    for number, table in enumerate(all_tables(results)):
        parts.append(f"## {table.title}\n")
        parts.append(_markdown_table(table))
        parts += [f"{note}\n" for note in table.notes]
        if number == 0:
            parts += [f"![{name}](figures/{name}.svg)\n" for name in figures]
    return "\n".join([*parts, f"{_machine(results)}\n"])


def page(results: dict[str, Any], figures: dict[str, str]) -> str:
    """The page as HTML, figures inside."""
    first, *others = [_html_table(table) for table in all_tables(results)]
    drawn = f'<div class="figures">{"".join(figures.values())}</div>'
    body = "\n".join([f"<h1>{escape(results['name'])}</h1>", first, drawn, *others, _note(_machine(results))])
    head = f'<meta charset="utf-8"><meta name="viewport" content="width=device-width"><style>{STYLE}</style>'
    head += f"<title>{escape(results['name'])}</title>"
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _markdown_table(table: Table) -> str:
    if not table.headers:
        return "".join(f"- {row[0]}\n" for row in table.rows)
    rows = [table.headers, ["---" if text else "---:" for text in _texts(table)], *table.rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def _html_table(table: Table) -> str:
    notes = "".join(map(_note, table.notes))
    if not table.headers:
        items = "".join(f"<li>{escape(row[0])}</li>" for row in table.rows)
        return f"<h2>{escape(table.title)}</h2><ul>{items}</ul>{notes}"
    left = [' class="text"' if text else "" for text in _texts(table)]
    head = "".join(f"<th{side}>{escape(cell)}</th>" for side, cell in zip(left, table.headers, strict=True))
    cells = (
        "".join(f"<td{side}>{escape(cell)}</td>" for side, cell in zip(left, row, strict=True)) for row in table.rows
    )
    body = "".join(f"<tr>{row}</tr>\n" for row in cells)
    rows = f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody>"
    return f'<h2>{escape(table.title)}</h2>\n<div class="wide"><table>{rows}</table></div>{notes}'


def _texts(table: Table) -> list[bool]:
    """Which columns are of words, not of figures: the first, and those with a cell that begins with a letter."""
    columns = zip(table.headers, *table.rows, strict=True)
    return [not number or any(cell[:1].isalpha() for cell in cells) for number, (_, *cells) in enumerate(columns)]


def _note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>'


def _machine(results: dict[str, Any]) -> str:
    machine, versions = results["environment"]["machine"], results["environment"]["versions"]
    return (
        f"{machine['processor']}, {machine['cores']} cores; transduce {versions['transduce']}, "
        f"torch {versions['torch']}, Python {versions['python']}. Seeds {', '.join(map(str, results['seeds']))}."
    )
