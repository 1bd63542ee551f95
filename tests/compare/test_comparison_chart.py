"""Charts as SVG: well-formed, everything inside the frame, the right thing where it should be."""

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.compare.chart import HEIGHT, WIDTH, Line, Scale, line_chart

SVG = "{http://www.w3.org/2000/svg}"
values = st.floats(1e-6, 1e15)
curves = st.lists(st.lists(st.tuples(values, values), max_size=5), max_size=12)


@given(curves, st.booleans())
def test_every_point_lies_inside(points: list[list[tuple[float, float]]], logarithmic: bool) -> None:
    lines = [Line(f"<{number} & more>", curve) for number, curve in enumerate(points)]
    root = ET.fromstring(line_chart("a < b", "x", "y", lines, logarithmic=logarithmic))
    drawn = root.findall(f"{SVG}polyline")
    assert len(drawn) == sum(bool(curve) for curve in points)
    for each in drawn:
        for place in each.attrib["points"].split():
            x, y = map(float, place.split(","))
            assert 0 <= x <= WIDTH
            assert 0 <= y <= HEIGHT
    texts = [each.text for each in root.findall(f"{SVG}text")]
    assert texts[0] == "a < b"
    assert {"x", "y", *(line.name for line in lines)} <= set(texts)


def test_lines_of_one_name_share_colour_and_legend() -> None:
    svg = line_chart("t", "x", "y", [Line("a", [(1, 1)]), Line("a", [(2, 2)]), Line("b", [(3, 3)])])
    root = ET.fromstring(svg)
    colours = [each.attrib["stroke"] for each in root.findall(f"{SVG}polyline")]
    assert colours[0] == colours[1] != colours[2]
    assert [each.text for each in root.findall(f"{SVG}text")].count("a") == 1


def test_points_stand_where_the_axes_say() -> None:
    for logarithmic in (False, True):
        root = ET.fromstring(
            line_chart("t", "x", "y", [Line("a", [(1, 1), (10, 10), (100, 100)])], logarithmic=logarithmic)
        )
        labels = {
            each.text: float(each.attrib["x"]) for each in root.findall(f"{SVG}text") if each.attrib["y"] == "330.0"
        }
        places = [float(place.split(",")[0]) for place in root.find(f"{SVG}polyline").attrib["points"].split()]  # type: ignore[union-attr]
        assert labels["100"] == pytest.approx(places[2], abs=0.1)
        middle = (places[0] + places[2]) / 2
        assert (places[1] == pytest.approx(middle, abs=0.1)) == logarithmic


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(0, 10, [0, 2, 4, 6, 8, 10]), (0.13, 0.31, [0.15, 0.2, 0.25, 0.3]), (-1, 1, None)]
)
def test_ticks_are_round(low: float, high: float, expected: list[float] | None) -> None:
    ticks = Scale(low, high, 0, 100, False).ticks()
    if expected:
        assert ticks == pytest.approx(expected)
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in ticks)


def test_zeros_are_left_out_of_a_logarithmic_chart() -> None:
    root = ET.fromstring(line_chart("t", "x", "y", [Line("a", [(0, 1), (1, 1), (2, 4)])], logarithmic=True))
    assert len(root.find(f"{SVG}polyline").attrib["points"].split()) == 2  # type: ignore[union-attr]
