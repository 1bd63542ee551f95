"""Write the results of a comparison as Markdown with figures beside it, and as a self-contained HTML page."""

from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.compare.axis_tables import axis_charts, axis_tables, points_tables
from transduce.compare.chart import Line, line_chart
from transduce.compare.tables import Table, all_tables
from transduce.core.atomic import write_text
from transduce.core.errors import InputError
from transduce.core.templates import render
from transduce.interpret.drawing import save, svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TEMPLATE = Path(__file__).with_name("page.html.jinja")
UNITS = {"minutes": "minutes of training", "tokens": "target tokens", "flops": "operations"}


def write_pages(results: dict[str, Any], folder: Path, tell: Callable[[str], None]) -> None:
    """compare.md with figures/*.svg, and compare.html; without matplotlib no figures, which is told."""
    try:
        figures = charts(results)
    except InputError as error:
        figures = {}
        tell(f"Figures left out: {error}")
    for name, figure in figures.items():
        save(figure, folder / "figures" / f"{name}.svg")
    write_text(folder / "compare.md", markdown(results, list(figures)))
    write_text(folder / "compare.html", page(results, figures))


def charts(results: dict[str, Any]) -> "dict[str, Figure]":
    """What decides along the axis, learning curves, over what the budget counts, and growth with length, by name.

    Raises:
        InputError: no matplotlib.
    """
    along = axis_charts(results)
    if "points" in results:
        return along
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
    return along | figures


def tables(results: dict[str, Any]) -> list[Table]:
    """Everything, what decides first."""
    if "points" in results:
        return points_tables(results)
    first, *others = all_tables(results)
    return [*axis_tables(results), first, *others]


def markdown(results: dict[str, Any], figures: list[str]) -> str:
    """The page as Markdown; the figures are linked as figures/NAME.svg."""
    parts = [f"# {results['name']}\n"]
    for number, table in enumerate(tables(results)):
        parts.append(f"## {table.title}\n")
        parts.append(_markdown_table(table))
        parts += [f"{note}\n" for note in table.notes]
        if number == 0:
            parts += [f"![{name}](figures/{name}.svg)\n" for name in figures]
    return "\n".join([*parts, f"{_machine(results)}\n"])


def page(results: dict[str, Any], figures: "dict[str, Figure]") -> str:
    """The page as HTML, figures inside."""
    images = {name: b64encode(svg(figure)).decode() for name, figure in figures.items()}
    values = {"tables": tables(results), "figures": images, "machine": _machine(results)}
    return render(TEMPLATE, name=results["name"], texts=_texts, **values)


def _markdown_table(table: Table) -> str:
    if not table.headers:
        return "".join(f"- {row[0]}\n" for row in table.rows)
    rows = [table.headers, ["---" if text else "---:" for text in _texts(table)], *table.rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def _texts(table: Table) -> list[bool]:
    """Which columns are of words, not of figures: the first, and those with a cell that begins with a letter."""
    columns = zip(table.headers, *table.rows, strict=True)
    return [not number or any(cell[:1].isalpha() for cell in cells) for number, (_, *cells) in enumerate(columns)]


def _machine(results: dict[str, Any]) -> str:
    machine, versions = results["environment"]["machine"], results["environment"]["versions"]
    return (
        f"{machine['processor']}, {machine['cores']} cores; transduce {versions['transduce']}, "
        f"torch {versions['torch']}, Python {versions['python']}. Seeds {', '.join(map(str, results['seeds']))}."
    )
