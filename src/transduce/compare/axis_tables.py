"""The tables and figures of a comparison's axis."""

from typing import TYPE_CHECKING, Any

from transduce.compare.chart import Band, band_chart
from transduce.compare.config import folder_name
from transduce.compare.crossing import sentences
from transduce.compare.tables import NOTHING, Results, Table, label_of, with_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTE = "[95 % intervals]: bootstrap over sentences and trainings, 1,000 resamples."


def axis_tables(results: Results) -> list[Table]:
    """Of each test, what decides along the axis, and in words where the variants cross."""
    if "axis" not in results:
        return []
    axis = results["axis"]
    decisive = decisive_figures(axis)
    tables = [_table(axis, figure) for figure in decisive]
    found = [[sentence] for figure in decisive for sentence in sentences(axis, figure)]
    return [*tables, *([Table(f"Along the axis: {axis['title']}", [], found, [])] if found else [])]


def points_tables(results: Results) -> list[Table]:
    """Of a comparison with a page for each value: everything on the page over all of them."""
    axis = results["axis"]
    headers = ["test", "search", "metric", "variant", axis["title"], "mean", "each training"]
    rows = [
        [
            figure["test"] or NOTHING,
            figure["search"] or NOTHING,
            figure["metric"],
            name,
            f"{point['at']:,}",
            with_interval(point, figure["digits"], ""),
            ", ".join(f"{run:.{figure['digits']}f}" for run in point["runs"].values()),
        ]
        for figure in axis["figures"]
        for name, points in figure["variants"].items()
        for point in points
    ]
    signatures = dict.fromkeys(f"{figure['metric']}: {figure['signature']}" for figure in axis["figures"])
    folders = ", ".join(f"{each['folder']}/compare.html" for each in results["points"])
    return [
        *axis_tables(results),
        Table("Every figure", headers, rows, [*signatures, f"Each value has a page of its own: {folders}"]),
    ]


def axis_charts(results: Results) -> "dict[str, Figure]":
    """Of each test, what decides along the axis: a line a variant, with its interval.

    Raises:
        InputError: no matplotlib.
    """
    if "axis" not in results:
        return {}
    axis, found = results["axis"], {}
    for figure in decisive_figures(axis):
        bands = [Band.of(name, points) for name, points in figure["variants"].items() if points]
        name = f"axis-{folder_name(figure['test'])}" if figure["test"] else "axis"
        title = label_of(figure, len(decisive_figures(axis)) > 1)
        found[name] = band_chart(title, axis["title"], figure["name"], bands, logarithmic=axis["logarithmic"])
    return found


def decisive_figures(axis: dict[str, Any]) -> list[dict[str, Any]]:
    """The first metric by the search that decides, of each test."""
    figures: list[dict[str, Any]] = axis["figures"]
    first = [(figure["search"], figure["metric"]) for figure in figures[:1]]
    return [figure for figure in figures if (figure["search"], figure["metric"]) in first]


def _table(axis: dict[str, Any], figure: dict[str, Any]) -> Table:
    labels = dict(zip(axis["places"], axis["labels"], strict=True))
    rows = []
    for name, points in figure["variants"].items():
        cells = {point["at"]: with_interval(point, figure["digits"], "") for point in points}
        rows.append([name, *(cells.get(place, NOTHING) for place in labels)])
    title = f"{label_of(figure, bool(figure['test']))} by {axis['title']}"
    return Table(title, ["variant", *labels.values()], rows, [NOTE, f"{figure['name']}: {figure['signature']}"])
