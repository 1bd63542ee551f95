"""Cost and kin: counts as the textbooks have them, times as they were measured, and heads that are a convolution."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.signal import correlate

COST = Path(__file__).parents[2] / "benchmarks" / "results" / "limits" / "cost.json"
KINDS = {"rnn": "lstm", "attention": "softmax", "linear": "linear"}


def set_slider(page, name, value):
    page.locator(f"#{name}").fill(str(value))


def shown(page, kind, measure):
    text = page.text_content(f"[data-cost={kind}-{measure}]")
    found = re.fullmatch(r"([\d.,]+)(?: × 10([⁰¹²³⁴⁵⁶⁷⁸⁹]+))?", text)
    power = (found[2] or "⁰").translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))
    return float(found[1].replace(",", "")) * 10 ** int(power)


@pytest.mark.parametrize(("n", "d", "k"), [(32, 128, 3), (1024, 256, 5), (8, 64, 15)])
def test_operations_are_those_of_the_table(opened, n, d, k):
    """Vaswani et al. 2017, table 1."""
    page = opened("cost")
    set_slider(page, "n", int(np.log2(n)))
    set_slider(page, "d", int(np.log2(d)))
    set_slider(page, "k", k)
    wanted = {"cnn": k * n * d**2, "rnn": n * d**2, "attention": n**2 * d, "linear": n * d**2}
    for kind, operations in wanted.items():
        assert shown(page, kind, "operations") == pytest.approx(operations, rel=0.05)
    assert [shown(page, kind, "steps") for kind in wanted] == [1, n, 1, 1]
    assert ("is less than" in page.text_content("[data-name=costs]")) == (n < d)


def layers_needed(n, k, dilated):
    """How many layers lead from the first position to the last, each of which reads itself and k - 1 before it."""
    seen, layers = {0}, 0
    while n - 1 not in seen:
        stride = k**layers if dilated else 1
        seen = {i + j * stride for i in seen for j in range(k) if i + j * stride < n}
        layers += 1
    return layers


@pytest.mark.parametrize("stack", ["plain", "dilated"])
def test_the_path_through_convolutions_is_the_shortest_there_is(opened, stack):
    page = opened("cost")
    cases = [(n, k) for n in (2, 3, 8, 9, 14, 15, 64, 365, 366) for k in (2, 3, 4, 7)]
    count = "([n, k, stack]) => Transduce.costs.costs({ n, d: 8, k, stack }).cnn.path"
    for n, k in cases:
        assert page.evaluate(count, [n, k, stack]) == layers_needed(n, k, stack == "dilated"), (n, k)


def test_the_picture_draws_the_path_to_the_first_word(opened):
    page = opened("cost", link="#n=9&stack=dilated")
    assert [page.text_content(f".count[data-kind={kind}]") for kind in ("cnn", "rnn", "attention", "linear")] == [
        "2 steps",
        "8 steps",
        "1 step",
        "1 step",
    ]
    ways = page.eval_on_selector_all(".walked", "all => all.map(each => each.points.length)")
    assert ways == [1 + 2, 1 + 9, 2, 3]


def test_times_are_the_measured_ones(opened):
    page = opened("cost")
    told = json.loads(COST.read_text())
    found = page.evaluate("Transduce.costs.MEASURED")
    assert found["commit"] == told["commit"]
    assert told["machine"]["processor"] in found["machine"]
    assert told["date"] in found["machine"]
    for kind, variant in KINDS.items():
        true = told["variants"][variant]
        assert found["lengths"][: len(true["lengths"])] == true["lengths"]
        assert found["seconds"][kind] == [round(each, 3) for each in true["seconds"]]


def test_another_length_names_other_times(opened):
    page = opened("cost")
    before = page.text_content("#nearest")
    set_slider(page, "n", 12)
    assert "4,096" in page.text_content("#nearest") != before
    assert "4.069" in page.text_content("#nearest")


def test_a_text_of_ones_own_sets_the_length(opened):
    page = opened("cost")
    page.fill("#own", "机器学习")
    assert shown(page, "rnn", "steps") == 4
    page.fill("#own", "one two three, four five")
    assert shown(page, "rnn", "steps") == 6  # with the comma


@pytest.mark.parametrize("name", ["mean", "edge", "shift", "sharp"])
def test_sharp_heads_are_the_convolution_of_scipy(opened, name):
    page = opened("cost", link=f"#sharp=4&kernel={name}")
    kernel = page.evaluate(f"Transduce.costs.KERNELS.{name}")
    signal = [1, 1, 2, 2, 6, 7, 7, 6, 2, 2, 1, 1]
    found = page.evaluate("([s, k, a]) => Transduce.costs.convolved(s, k, a)", [signal, kernel, 12])
    assert found["convolution"] == pytest.approx(correlate(signal, kernel, mode="same"))
    assert found["attention"][1:-1] == pytest.approx(found["convolution"][1:-1], abs=1e-3)
    assert difference(page) < 0.7


def test_heads_are_softmaxes_of_relative_positions(opened):
    page = opened("cost")
    found = page.evaluate("Transduce.costs.convolved(Array.from({ length: 12 }, (_, i) => i), [0.5, 2, -1], 0.7)")
    place = np.arange(12)
    mixed = np.zeros(12)
    for offset, weight in zip((-1, 0, 1), (0.5, 2, -1), strict=True):
        scores = -0.7 * (place[None] - place[:, None] - offset) ** 2
        mixed += weight * (np.exp(scores) / np.exp(scores).sum(1, keepdims=True)) @ place
    assert found["attention"] == pytest.approx(mixed)


def difference(page):
    return float(page.text_content("#difference").split()[-1].rstrip("."))


def test_sharper_heads_come_nearer_and_a_click_changes_the_signal(opened):
    page = opened("cost")
    blurred = difference(page)
    set_slider(page, "sharp", 3)
    assert difference(page) < blurred / 3
    picture = page.locator("[data-name=signal] svg.signal")
    picture.focus()
    picture.press("Home")
    picture.press("Enter")
    assert "signal=2_1_" in page.url
