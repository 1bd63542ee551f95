"""Line charts of a comparison."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from transduce.interpret.colours import HEADS
from transduce.interpret.drawing import Points, few_ticks, in_style, marker, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT, ENTRY = 6.4, 3.6, 0.2  # inches; an entry of the legend takes ENTRY
DASHES = ("-", "--", ":")  # the colours go round three times


class Line(NamedTuple):
    """One curve. Lines of the same name have one colour and one entry in the legend."""

    name: str
    points: Points


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
        round_, number = divmod(names.index(name), len(HEADS))
        dash = DASHES[round_ % len(DASHES)]
        [entries[name]] = axes.plot(x, y, color=HEADS[number], linestyle=dash, marker=marker(drawn))
    _scales(axes, logarithmic)
    figure.legend(entries.values(), entries, loc="outside right upper")
    return figure


def _scales(axes: "Axes", logarithmic: bool) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    if not logarithmic:
        return few_ticks(axes, integer=False)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
        axis.set_minor_formatter(NullFormatter())
    return None
