"""The tables and figures of a comparison's axis.

Where two lines along the axis of a comparison cross, and how often over the seeds.

Between two neighbouring places a line is straight; on a logarithmic axis, in the logarithm of the place.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from transduce.compare.chart import Band, band_chart
from transduce.compare.config import folder_name
from transduce.compare.tables import NOTHING, Results, Table, label_of, with_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FEW = 3  # variants of which each is compared with each; of more, all with the first

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


class Crossing(NamedTuple):
    """Two lines cross at `place`, between the places `low` and `high`; `rises`: the second one is above from there."""

    place: float
    low: float
    high: float
    rises: bool


def crossings(
    places: Sequence[float], one: Sequence[float], other: Sequence[float], *, logarithmic: bool = False
) -> list[Crossing]:
    """Of two lines over the same places. Where they only touch they do not cross.

    Where they are the same at some places before they part to the other side, they cross at the first of these.
    """
    gaps = [(place, second - first) for place, first, second in zip(places, one, other, strict=True)]
    found = []
    for (low, before), (high, behind) in pairwise((place, gap) for place, gap in gaps if gap):
        if (before > 0) == (behind > 0):
            continue
        same = [place for place, gap in gaps if low < place < high and not gap]
        place = same[0] if same else _between(low, high, before / (before - behind), logarithmic)
        found.append(Crossing(place, low, high, behind > 0))
    return found


def _between(low: float, high: float, share: float, logarithmic: bool) -> float:
    return low * (high / low) ** share if logarithmic else low + share * (high - low)


def sentences(axis: Mapping[str, Any], figure: Mapping[str, Any]) -> list[str]:
    """Of each two variants: where they cross, or which is better everywhere."""
    names = list(figure["variants"])
    pairs = combinations(names, 2) if len(names) <= FEW else ((names[0], name) for name in names[1:])
    return [said for one, other in pairs for said in _sentence(axis, figure, one, other)]


def _sentence(axis: Mapping[str, Any], figure: Mapping[str, Any], one: str, other: str) -> Iterator[str]:
    lines = {name: {point["at"]: point for point in figure["variants"][name]} for name in (one, other)}
    places = [place for place in axis["places"] if all(place in line for line in lines.values())]
    if len(places) < 2:
        return
    first, second = ([lines[name][place]["value"] for place in places] for name in (one, other))
    logarithmic = axis["logarithmic"]
    found = crossings(places, first, second, logarithmic=logarithmic)
    label = " on ".join(part for part in (figure["name"], figure["test"]) if part)
    often = _often(_over_seeds(lines[one], lines[other], places, logarithmic))
    if not found:
        yield f"{label}: {_without_crossing(figure, one, other, first, second)}.{often}"
        return
    for crossing in found:
        better = other if crossing.rises != figure["lower_is_better"] else one
        yield (
            f"{label}: {one} and {other} cross at about {_number(crossing.place)} {axis['title']}, between "
            f"{crossing.low:,} and {crossing.high:,}; {better} is better above.{often}"
        )


def _without_crossing(figure: Mapping[str, Any], one: str, other: str, first: list[float], second: list[float]) -> str:
    gaps = [after - before for before, after in zip(first, second, strict=True) if after != before]
    if not gaps:
        return f"{one} and {other} are the same everywhere"
    better = other if (gaps[0] > 0) != figure["lower_is_better"] else one
    worse = one if better == other else other
    everywhere = "everywhere" if len(gaps) == len(first) else "wherever they differ"
    return f"{better} is better than {worse} {everywhere}"


def _over_seeds(
    one: Mapping[float, Any], other: Mapping[float, Any], places: Sequence[float], logarithmic: bool
) -> list[list[Crossing]]:
    """Of each seed that both were trained with at every place."""
    points = [line[place]["runs"] for line in (one, other) for place in places]
    seeds = [seed for seed in points[0] if all(seed in runs for runs in points)]
    found = []
    for seed in seeds:
        first, second = ([line[place]["runs"][seed] for place in places] for line in (one, other))
        found.append(crossings(places, first, second, logarithmic=logarithmic))
    return found


def _often(seeds: list[list[Crossing]]) -> str:
    """How many of the seeds' own lines cross, and where."""
    if len(seeds) < 2:
        return ""
    between = Counter((each.low, each.high) for found in seeds for each in found)
    parts = [
        f"between {low:,} and {high:,} ({count} of {len(seeds)})" for (low, high), count in sorted(between.items())
    ]
    if never := sum(not found for found in seeds):
        parts.append(f"nowhere ({never} of {len(seeds)})")
    return f" Seed by seed, they cross {', '.join(parts)}."


def _number(place: float) -> str:
    """Three digits that count."""
    if not place:
        return "0"
    digits = 2 - math.floor(math.log10(abs(place)))
    return f"{round(place, digits):,.{max(0, digits)}f}"
