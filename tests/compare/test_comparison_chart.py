"""Line charts: everything inside the frame, the right thing where it should be."""

from itertools import product

import pytest
from matplotlib.axes import Axes

from transduce.compare.chart import Line, line_chart

Points = list[tuple[float, float]]
CURVES: list[list[Points]] = [
    [],
    [[]],
    [[(1, 1)]],
    [[(20, 3.5), (21, 3.6)], []],
    [[(1e-6, 1e15), (1e15, 1e-6)], [(3e4, 2.0)] * 50],
    [[(n, n + shift) for n in range(60)] for shift in range(30)],
]


@pytest.mark.parametrize(("curves", "logarithmic"), [*product(CURVES, [False, True])])
def test_nothing_runs_over_the_edge(curves: list[Points], logarithmic: bool) -> None:
    lines = [Line(f"<{number} & more>", points) for number, points in enumerate(curves)]
    figure = line_chart("a < b", "x", "y", lines, logarithmic=logarithmic)
    [axes] = figure.axes
    [legend] = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == [line.name for line in lines]
    assert (axes.get_title("left"), axes.get_xlabel(), axes.get_ylabel()) == ("a < b", "x", "y")
    inside = figure.bbox.padded(1)
    for part in (axes, legend):
        box = part.get_tightbbox()
        assert box is not None
        assert inside.x0 <= box.x0 < box.x1 <= inside.x1
        assert inside.y0 <= box.y0 < box.y1 <= inside.y1
    assert not axes.get_window_extent().overlaps(legend.get_window_extent())
    for line, points in zip(axes.lines, curves, strict=True):
        assert list(zip(*line.get_data(), strict=True)) == [point for point in points if not logarithmic or all(point)]
        for x, y in points:
            assert not logarithmic or axes.viewLim.contains(x, y) or not x * y


def test_lines_of_one_name_share_look_and_legend() -> None:
    names = [*map(str, range(20)), "0"]
    figure = line_chart("t", "x", "y", [Line(name, [(1, 1), (2, 2)]) for name in names])
    looks = [(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines]
    assert looks[0] == looks[-1]
    assert len(set(looks)) == 20
    assert len(figure.legends[0].get_texts()) == 20


@pytest.mark.parametrize(
    ("points", "logarithmic", "expected"),
    [
        ([(0, 1), (10, 2)], False, ["0", "2", "4", "6", "8", "10"]),
        ([(0.0, 1), (0.25, 2)], False, ["0", "0.05", "0.1", "0.15", "0.2", "0.25"]),
        ([(0, 1), (4e6, 2)], False, ["0", "1M", "2M", "3M", "4M"]),
        ([(8, 1), (4096, 2)], True, ["10", "20", "50", "100", "200", "500", "1,000", "2,000"]),
    ],
)
def test_ticks_are_round(points: Points, logarithmic: bool, expected: list[str]) -> None:
    [axes] = line_chart("t", "x", "y", [Line("a", points)], logarithmic=logarithmic).axes
    assert shown_ticks(axes) == expected


def shown_ticks(axes: Axes) -> list[str]:
    """The labels across that stand inside."""
    low, high = axes.get_xlim()
    ticks = zip(axes.get_xticks(), axes.get_xticklabels(), strict=True)
    return [label.get_text() for place, label in ticks if low <= place <= high]


def test_zeros_are_left_out_of_a_logarithmic_chart() -> None:
    [axes] = line_chart("t", "x", "y", [Line("a", [(0, 1), (1, 1), (2, 4)])], logarithmic=True).axes
    assert list(axes.lines[0].get_xdata()) == [1, 2]
