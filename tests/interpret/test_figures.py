"""Figures, drawn and saved for real, and looked at again."""

import re
import sys
import warnings
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.image import imread

from transduce.core.errors import InputError
from transduce.core.extras import installing
from transduce.interpret.colours import ink
from transduce.interpret.drawing import save
from transduce.interpret.figures import Spotlight, attention_figure, spotlight_figure, training_curves
from transduce.interpret.fonts import FontWarning

TIRED = ["The", "animal", "didn't", "cross", "the", "street", "because", "it", "was", "too", "tired", "."]
WIDE = [*TIRED[:-2], "wide", "."]
TRAIN = [
    {"event": "train", "update": u, "loss": 9 / u**0.2, "tokens_per_second": 4e4, "learning_rate": 1e-4 * u}
    for u in range(1, 101)
]
VALIDATION = [
    {
        "event": "validation",
        "update": u,
        "loss": 10 / u**0.2,
        "perplexity": np.exp(10 / u**0.2),
        "bleu": u / 5,
    }
    for u in range(20, 101, 20)
]
LOG = [*TRAIN, *VALIDATION, {"event": "checkpoint", "update": 100, "path": "model"}]


def softmax(shape, seed=0):
    weights = np.exp(3 * np.random.default_rng(seed).standard_normal(shape))
    return weights / weights.sum(axis=-1, keepdims=True)


def examples():
    return [Spotlight(TIRED, 7, softmax(12), "tired"), Spotlight(WIDE, 7, softmax(12, 1), "wide")]


def figures():
    return {
        "attention": attention_figure(TIRED, WIDE, softmax((12, 12)), "Layer 5"),
        "one cell": attention_figure(["a"], ["b"], np.ones((1, 1))),
        "long": attention_figure([f"wordy{i}" for i in range(40)], ["y"], softmax((40, 1)), "A long title " * 3),
        "spotlight": spotlight_figure(examples()),
        "heads": spotlight_figure([Spotlight(TIRED, 7, softmax((8, 12)), "Layer: 5")]),
        "curves": training_curves(LOG),
        "one point": training_curves([{"event": "validation", "update": 7, "loss": 2.0}]),
    }


@pytest.fixture(scope="module")
def drawn():
    return figures()


@pytest.mark.parametrize("name", ["attention", "one cell", "long", "spotlight", "heads", "curves", "one point"])
def test_a_saved_figure_is_an_image_with_an_empty_margin(drawn, name, tmp_path):
    """Something is drawn, and nothing runs over the edge: labels are not clipped."""
    figure = drawn[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        path = save(figure, tmp_path / "new folder" / "figure.png")
    image = imread(path)[..., :3]
    width, height = (round(inches * figure.dpi) for inches in figure.get_size_inches())
    assert abs(image.shape[0] - height) <= 1
    assert abs(image.shape[1] - width) <= 1
    assert image.std() > 0.02
    edges = [image[:3], image[-3:], image[:, :3], image[:, -3:]]
    assert all((edge == 1).all() for edge in edges)
    assert [p.name for p in path.parent.iterdir()] == ["figure.png"]


def test_the_same_figure_is_the_same_file(drawn, tmp_path):
    for name, another in figures().items():
        for suffix in (".svg", ".png")[: 2 if name == next(iter(drawn)) else 1]:  # one path draws all of either kind
            first = save(drawn[name], tmp_path / f"a{suffix}").read_bytes()
            again = save(another, tmp_path / f"b{suffix}").read_bytes()
            assert first == again, (name, suffix)
            assert b"dc:date" not in first
            assert b"tEXt" not in first


def test_cells_have_the_colour_of_their_weight(tmp_path):
    weights = np.array([[0.0, 1.0], [0.6, 0.4]])
    figure = attention_figure(["a", "b"], ["c", "d"], weights)
    image = imread(save(figure, tmp_path / "cells.png"))
    axes = figure.axes[0]
    for row, column in np.ndindex(2, 2):
        x, y = axes.transData.transform((column + 0.2, row + 0.2))
        pixel = image[image.shape[0] - round(y), round(x), :3]
        np.testing.assert_allclose(pixel, ink(weights[row, column]), atol=0.02)


def test_the_strongest_line_goes_to_the_strongest_word():
    axes = spotlight_figure([Spotlight(TIRED, 7, np.eye(12)[1] * 0.8 + 0.01)]).axes[0]
    strongest = max(axes.lines, key=lambda line: line.get_linewidth())
    assert list(strongest.get_ydata()) == [7, 1]
    bold = [text.get_text() for text in axes.texts if text.get_fontweight() == "bold"]
    assert bold == ["it"]


def test_curves_are_the_records():
    figure = training_curves([*LOG, {"event": "train", "update": 50, "loss": 1.25}])
    panels = {axes.get_title(loc="left"): axes for axes in figure.axes}
    assert list(panels) == ["Loss", "Perplexity", "BLEU", "Learning rate", "Tokens per second"]
    train, validation = panels["Loss"].lines
    assert list(train.get_xdata()) == list(range(1, 101))
    assert train.get_ydata()[49] == 1.25  # the later record of an update counts
    np.testing.assert_allclose(validation.get_ydata(), [10 / u**0.2 for u in range(20, 101, 20)])
    assert list(panels["BLEU"].lines[0].get_ydata()) == [4, 8, 12, 16, 20]


def test_a_diverged_run_can_be_drawn(tmp_path):
    records = [{"event": "train", "update": u, "loss": float("nan") if u > 5 else 2.0} for u in range(10)]
    assert save(training_curves(records), tmp_path / "nan.png").stat().st_size > 1000


def test_words_of_any_script_and_with_signs_of_formulas_are_drawn(tmp_path):
    words = ["我", "$x", "$ \\foo $", "<script>", "_a"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", FontWarning)  # of a machine without Chinese fonts
        figure = attention_figure(words, words, np.eye(5), "中文")
        save(figure, tmp_path / "words.png")
        file = save(figure, tmp_path / "words.svg")
    assert {*words, "中文"} <= {element.text for element in ElementTree.parse(file).iter()}


def test_style_does_not_reach_the_figures_of_others(drawn):
    assert drawn
    assert matplotlib.rcParams["svg.hashsalt"] is None


def test_pyplot_is_left_alone(drawn):
    assert drawn
    assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums()


def test_all_problems_of_the_examples_at_once():
    with pytest.raises(InputError) as raised:
        spotlight_figure([Spotlight(TIRED, 12, softmax(12)), Spotlight(WIDE, 0, softmax(11))])
    assert [problem[:10] for problem in raised.value.problems] == ["example 1:", "example 2:"]


@pytest.mark.parametrize(
    ("draw", "problem"),
    [
        (lambda: attention_figure(["a"], ["b", "c"], np.ones((2, 1))), r"expected shape \(1, 2\)"),
        (lambda: attention_figure([], [], np.ones((0, 0))), "at least one row"),
        (lambda: spotlight_figure([]), "at least one example"),
        (lambda: spotlight_figure([Spotlight(TIRED, 0, np.ones((1, 2, 12)))]), "expected shape"),
        (lambda: training_curves([{"event": "checkpoint", "update": 1}]), "holds no"),
        (lambda: save(attention_figure(["a"], ["b"], np.ones((1, 1))), "x.pdf"), ".png or .svg"),
    ],
)
def test_wrong_input_is_refused(draw, problem):
    with pytest.raises(InputError, match=problem):
        draw()


def test_a_missing_matplotlib_is_named(monkeypatch):
    for module in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(InputError, match=re.escape(installing("figures"))):
        attention_figure(["a"], ["b"], np.ones((1, 1)))


def test_importing_is_cheap():
    import subprocess

    program = "import sys, transduce.interpret.figures; print('matplotlib' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"
