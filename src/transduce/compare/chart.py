"""Line charts as SVG text, so that a page is self-contained."""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from transduce.interpret.colours import HEADS

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 190, 34, 46
TEXT, FAINT, RULE = "#1d2433", "#6b7385", "#d5d9e2"
DASHES = ("", "6 3", "2 3")  # the colours go round three times


class Line(NamedTuple):
    """One curve. Lines of the same name have one colour and one entry in the legend."""

    name: str
    points: Sequence[tuple[float, float]]


class Scale(NamedTuple):
    """Maps values to pixels.

    low, high: the values (their logarithms, where `logarithmic`) at the ends. start, end: the pixels there.
    """

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        place = math.log10(value) if self.logarithmic else value
        return self.start + (place - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        """Round values along the scale."""
        if self.logarithmic:
            return _logarithmic_ticks(self.low, self.high)
        step = _round_step(self.high - self.low)
        first = math.ceil(self.low / step - 1e-9)
        return [step * number for number in range(first, math.floor(self.high / step + 1e-9) + 1)]


def line_chart(title: str, x_title: str, y_title: str, lines: Sequence[Line], *, logarithmic: bool = False) -> str:
    """An <svg> element. Logarithmic: both axes; then only points above 0 are drawn.

    A chart without a point is an empty frame.
    """
    drawn = [Line(name, [point for point in points if not logarithmic or min(point) > 0]) for name, points in lines]
    points = [point for line in drawn for point in line.points] or [(1.0, 1.0), (2.0, 2.0)]
    x = _scale([point[0] for point in points], LEFT, WIDTH - RIGHT, logarithmic)
    y = _scale([point[1] for point in points], HEIGHT - BOTTOM, TOP, logarithmic)
    names = list(dict.fromkeys(line.name for line in drawn))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(title)}" font-family="system-ui, sans-serif" font-size="11">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        _text(LEFT, 18, title, TEXT, weight="bold", size=13),
        *_axes(x, y, x_title, y_title),
        *(_curve(line, names.index(line.name), x, y) for line in drawn if line.points),
        *(_legend(name, number) for number, name in enumerate(names)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _axes(x: Scale, y: Scale, x_title: str, y_title: str) -> list[str]:
    parts = []
    for value in x.ticks():
        parts.append(_rule(x(value), y.start, x(value), y.end))
        parts.append(_text(x(value), y.start + 16, _short(value), FAINT, anchor="middle"))
    for value in y.ticks():
        parts.append(_rule(x.start, y(value), x.end, y(value)))
        parts.append(_text(x.start - 6, y(value) + 4, _short(value), FAINT, anchor="end"))
    parts.append(_text((x.start + x.end) / 2, y.start + 36, x_title, FAINT, anchor="middle"))
    middle = (y.start + y.end) / 2
    turned = f' transform="rotate(-90 16 {middle:.1f})"'
    return [*parts, _text(16, middle, y_title, FAINT, anchor="middle", more=turned)]


def _curve(line: Line, number: int, x: Scale, y: Scale) -> str:
    places = " ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in line.points)
    dots = "".join(f'<circle cx="{x(a):.1f}" cy="{y(b):.1f}" r="2" fill="{_colour(number)}"/>' for a, b in line.points)
    return f'<polyline points="{places}" fill="none" {_stroke(number)}/>{dots if len(line.points) <= 40 else ""}'


def _legend(name: str, number: int) -> str:
    left, top = WIDTH - RIGHT + 14, TOP + 8 + 17 * number
    return f'<line x1="{left}" y1="{top}" x2="{left + 22}" y2="{top}" {_stroke(number)}/>' + _text(
        left + 28, top + 4, name, TEXT
    )


def _colour(number: int) -> str:
    return HEADS[number % len(HEADS)]


def _stroke(number: int) -> str:
    dash = DASHES[number // len(HEADS) % len(DASHES)]
    return f'stroke="{_colour(number)}" stroke-width="1.7"' + (f' stroke-dasharray="{dash}"' if dash else "")


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{RULE}" stroke-width="0.6"/>'


def _text(
    x: float, y: float, text: str, colour: str, *, anchor: str = "start", weight: str = "normal", size: int = 11,
    more: str = "",
) -> str:  # fmt: skip
    style = f'fill="{colour}" text-anchor="{anchor}" font-weight="{weight}" font-size="{size}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}{more}>{escape(text)}</text>'


def _scale(values: Sequence[float], start: float, end: float, logarithmic: bool) -> Scale:
    places = [math.log10(value) for value in values] if logarithmic else list(values)
    low, high = min(places), max(places)
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    margin = 0.03 * (high - low)
    return Scale(low - margin, high + margin, start, end, logarithmic)


def _round_step(span: float) -> float:
    """About five steps of 1, 2 or 5 times a power of ten."""
    raw = span / 5
    power = 10.0 ** math.floor(math.log10(raw))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= raw)


def _logarithmic_ticks(low: float, high: float) -> list[float]:
    found = [
        factor * 10.0**power
        for power in range(math.floor(low), math.ceil(high) + 1)
        for factor in (1, 2, 5)
        if low <= math.log10(factor * 10.0**power) <= high
    ]
    return found if len(found) <= 9 else [value for value in found if f"{value:e}".startswith("1.0")]


def _short(value: float) -> str:
    """`0.05`, `20`, `3k`, `1.5M`; powers of ten beyond that."""
    size = abs(value)
    if size >= 1e12 or 0 < size < 1e-3:
        return f"{value:.3g}".replace("e-0", "e-").replace("e+", "e")
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= limit:
            return f"{value / limit:.4g}{letter}"
    return f"{value:.4g}"
