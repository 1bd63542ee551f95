"""How all figures are made: with matplotlib (extra `figures`), in the style of `figures.mplstyle`.

Figures are made object by object, without pyplot and its current figure, so that they can be made beside any
other use of matplotlib. The same input gives the same file, with the same matplotlib and fonts.
"""

import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, ParamSpec

from transduce.core.atomic import writing
from transduce.core.errors import InputError
from transduce.core.extras import missing
from transduce.interpret.fonts import add_fonts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
Points = list[tuple[float, float]]
STYLE = Path(__file__).with_name("figures.mplstyle")
KEPT_OUT = {".png": ["Software"], ".svg": ["Date", "Creator", "Format", "Type"]}  # by format, of what it could tell
MARKED = 40  # points of a curve that are few enough to be marked each


def in_style(draw: "Callable[P, Figure]") -> "Callable[P, Figure]":
    """Of a function that draws a figure, one that draws it in our style and is done with its layout.

    It raises InputError where matplotlib is not installed, and warns of letters that no installed font has.
    """

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> "Figure":
        with _style():
            figure = draw(*args, **kwargs)
            add_fonts(figure)
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # matplotlib's moves a little at every drawing
        return figure

    return drawn


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of that size in inches; call it inside a function that is `in_style`."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height))


def save(figure: "Figure", path: str | Path) -> Path:
    """Writes `figure` to a .png or .svg file, which appears whole or not at all; folders are made.

    The file holds no date and no program name, so that the same figure is the same file.

    Raises:
        InputError: another suffix.
    """
    path = Path(path)
    if path.suffix not in KEPT_OUT:
        known = " or ".join(KEPT_OUT)
        raise InputError(f"{path}: figures are saved as {known}, not as {path.suffix or 'no suffix'!r}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    with writing(path) as file:
        _write(figure, file, path.suffix)
    return path


def svg(figure: "Figure") -> bytes:
    """What `save` would write to a .svg file."""
    file = io.BytesIO()
    _write(figure, file, ".svg")
    return file.getvalue()


def _write(figure: "Figure", file: BinaryIO, suffix: str) -> None:
    with _style():
        figure.savefig(file, format=suffix[1:], metadata=dict.fromkeys(KEPT_OUT[suffix]))


def few_ticks(axes: "Axes", integer: bool) -> None:
    """Round numbers on the axis across, the large ones as 20k or 3M."""
    from matplotlib.ticker import EngFormatter, MaxNLocator, StrMethodFormatter

    large = axes.get_xlim()[1] >= 10_000
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10], integer=integer, min_n_ticks=1))
    axes.xaxis.set_major_formatter(EngFormatter(sep="") if large else StrMethodFormatter("{x:,g}"))


def marker(points: Points) -> str:
    """Of a curve: a dot at each point where there are few."""
    return "o" if len(points) <= MARKED else ""


@contextmanager
def _style() -> Iterator[None]:
    try:
        import matplotlib.figure  # noqa: F401 (checks that it can be imported)
        from matplotlib import style
    except ImportError as error:
        raise missing("drawing figures", "matplotlib", "figures") from error
    with style.context([STYLE]), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from")  # add_fonts has told of it
        yield
