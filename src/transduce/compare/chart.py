"""Line charts of a comparison."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from transduce.interpret.colours import HEADS
from transduce.interpret.drawing import Points, few_ticks, in_style, marker, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT, ENTRY = 6.4, 3.6, 0.2  # inches; an entry of the legend takes ENTRY
DASHES = ("-", "--", ":")  # the colours go round three times
SHADE = 0.15  # opacity of a band


class Line(NamedTuple):
    """One curve. Lines of the same name have one colour and one entry in the legend."""

    name: str
    points: Points


class Band(NamedTuple):
    """A curve with what it could be above and below each point."""

    name: str
    points: Points
    low: list[float]
    high: list[float]

    @classmethod
    def of(cls, name: str, points: Sequence[Mapping[str, Any]]) -> Self:
        """Of points along an axis; where one has no interval, from its lowest training to its highest."""
        intervals = [each["interval"] or (min(each["runs"].values()), max(each["runs"].values())) for each in points]
        low, high = zip(*intervals, strict=True)
        return cls(name, [(each["at"], each["value"]) for each in points], list(low), list(high))


@in_style
def line_chart(title: str, x_title: str, y_title: str, lines: Sequence[Line], *, logarithmic: bool = False) -> "Figure":
    """Logarithmic: both axes; then only points above 0 are drawn.

    Raises:
        InputError: no matplotlib.
    """
    names = list(dict.fromkeys(line.name for line in lines))
    figure = new_figure(WIDTH, max(HEIGHT, ENTRY * len(names) + 0.4))
    axes = figure.subplots()
    scale = "log" if logarithmic else "linear"
    axes.set(title=title, xlabel=x_title, ylabel=y_title, xscale=scale, yscale=scale)
    entries = {}
    for name, points in lines:
        drawn = [point for point in points if not logarithmic or min(point) > 0]
        x, y = zip(*drawn, strict=True) if drawn else ((), ())
        colour, dash = _look(names.index(name))
        [entries[name]] = axes.plot(x, y, color=colour, linestyle=dash, marker=marker(drawn))
    _scales(axes, logarithmic)
    figure.legend(entries.values(), entries, loc="outside right upper")
    return figure


@in_style
def band_chart(title: str, x_title: str, y_title: str, bands: Sequence[Band], *, logarithmic: bool = False) -> "Figure":
    """A line and its band for each of `bands`, and a tick where there are points. Logarithmic: the axis across.

    Raises:
        InputError: no matplotlib.
    """
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    figure = new_figure(WIDTH, max(HEIGHT, ENTRY * len(bands) + 0.4))
    axes = figure.subplots()
    axes.set(title=title, xlabel=x_title, ylabel=y_title, xscale="log" if logarithmic else "linear")
    entries = {}
    for number, (name, points, low, high) in enumerate(bands):
        colour, dash = _look(number)
        x, y = zip(*points, strict=True)
        axes.fill_between(x, low, high, color=colour, alpha=SHADE, linewidth=0)
        [entries[name]] = axes.plot(x, y, color=colour, linestyle=dash, marker=marker(points))
    axes.xaxis.set_major_locator(FixedLocator(sorted({x for band in bands for x, _ in band.points})))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    figure.legend(entries.values(), entries, loc="outside right upper")
    return figure


def _look(number: int) -> tuple[str, str]:
    """Colour and dash of the so many-th name."""
    round_, colour = divmod(number, len(HEADS))
    return HEADS[colour], DASHES[round_ % len(DASHES)]


def _scales(axes: "Axes", logarithmic: bool) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    if not logarithmic:
        return few_ticks(axes, integer=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axis.set_minor_formatter(NullFormatter())
    return None
