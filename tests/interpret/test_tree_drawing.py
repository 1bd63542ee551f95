"""Trees as pictures: every phrase and word stands where the tree has it."""

import copy
import pickle
from xml.etree import ElementTree

from rich.console import Console

from transduce.data.structures.trees import parse_tree
from transduce.interpret.tree_drawing import TreeDrawing, placed
from transduce.tasks.parsing import ParsePrediction

TEXT = '(S (NP (DT The) (NN <cat>)) (VP (VBZ "sleeps") (PRT (RP on))) (. .))'
SVG = "{http://www.w3.org/2000/svg}"


def test_the_svg_holds_every_phrase_word_and_edge_once() -> None:
    root = ElementTree.fromstring(TreeDrawing(parse_tree(TEXT)).svg())  # our own
    texts = [each.text for each in root.iter(f"{SVG}text")]
    assert texts == ["S", "NP", "The", "<cat>", "VP", '"sleeps"', "PRT", "on", "."]
    assert [each.text for each in root.iter(f"{SVG}title")] == ["DT", "NN", "VBZ", "RP", "."]
    assert len(list(root.iter(f"{SVG}polyline"))) == len(texts) - 1
    assert root.get("aria-label") == TEXT
    for each in root.iter(f"{SVG}text"):
        assert 0 < float(each.attrib["x"]) < float(root.attrib["width"])
        assert 0 < float(each.attrib["y"]) < float(root.attrib["height"])


def test_words_stand_in_their_order_in_one_line_and_phrases_above_them() -> None:
    nodes = placed(parse_tree(TEXT))
    words = [node for node in nodes if node.is_word]
    assert [node.text for node in words] == ["The", "<cat>", '"sleeps"', "on", "."]
    assert sorted(node.x for node in words) == [node.x for node in words]
    assert len({node.y for node in words}) == 1
    for number, node in enumerate(nodes):
        below = [each for each in nodes if each.above == number]
        assert node.is_word or min(each.x for each in below) <= node.x <= max(each.x for each in below)
        assert all(each.y > node.y for each in below)


def test_no_line_crosses_another() -> None:
    root = ElementTree.fromstring(TreeDrawing(parse_tree(f"(X (A a) {TEXT} (B b) {TEXT} (C c))")).svg())
    lines = []
    for each in root.iter(f"{SVG}polyline"):
        points = [tuple(map(float, point.split(","))) for point in each.attrib["points"].split()]
        lines += [(points[0], points[1]), (points[1], points[2])]

    def side(line: tuple[tuple[float, ...], ...], point: tuple[float, ...]) -> float:
        (x, y), (right, below) = line
        return (right - x) * (point[1] - y) - (below - y) * (point[0] - x)

    def crosses(one: tuple[tuple[float, ...], ...], other: tuple[tuple[float, ...], ...]) -> bool:
        return all(
            side(first, second[0]) * side(first, second[1]) < -1e-6 for first, second in ((one, other), (other, one))
        )

    assert not [(one, other) for one in lines for other in lines if crosses(one, other)]


def test_the_terminal_shows_branches_and_no_markup() -> None:
    console = Console(width=60, no_color=True, record=True, file=open("/dev/null", "w"))  # noqa: SIM115, PTH123
    console.print(TreeDrawing(parse_tree("(S (NP (XX [bold]) (XX :cat:)) (VP (VBZ is)))")))
    assert console.export_text().split("\n")[:6] == [
        "S",
        "├── NP",
        "│   ├── [bold]",
        "│   └── :cat:",
        "└── VP",
        "    └── VBZ is",
    ]


def test_a_prediction_shows_its_tree_in_a_notebook() -> None:
    plain = ParsePrediction("The cat", "(NP (XX The) (XX cat))", 0.0, 0.0, (), ())
    assert plain._repr_html_() is None
    shown = plain.shown_by(lambda each: None, lambda each: TreeDrawing.of(each)._repr_html_())
    assert "<svg" in str(shown._repr_html_())
    assert "picture" not in shown.to_dict()
    assert pickle.loads(pickle.dumps(shown)) == copy.deepcopy(plain)  # noqa: S301  # our own
