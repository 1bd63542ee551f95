"""What is carried: values, sums and draws are the model's own, and the mean of draws comes near the sum."""

import re

import numpy as np
import pytest
from reading import number, table

import transduce
from transduce.demo.corpus import PRONOUN_PAIR
from transduce.explore.exploration import asked
from transduce.interpret.layers import attending
from transduce.interpret.steps import steps

TIRED = PRONOUN_PAIR[0].english
LAYER, HEAD = 2, 2  # the page's own choice
NAME = f"encoder.blocks.{LAYER}.self_attention"


def computation(model, query, name=NAME, head=HEAD, text=TIRED):
    given = asked(model, text, None)
    return steps(model.model, model.task, given, (text, model.predict(text).text), name, head, query)


@pytest.fixture(scope="module")
def at(stored):
    return computation(stored, 0)["columns"].index("it")


def shown(page):
    """Weights, values and z of the figure."""
    rows = [[number(cell) if cell else 0.0 for cell in row[1:]] for row in table(page, "values")]
    return np.array(rows)[:-1, 0], np.array(rows)[:-1, 1:], np.array(rows)[-1, 1:]


def test_weights_values_and_sum_are_the_models(opened, stored, at):
    page = opened("values")
    for query in (at, 4):
        page.click(f"#ask-{query}")
        expected = computation(stored, query)
        weights, values, z = shown(page)
        np.testing.assert_allclose(weights, expected["weights"], atol=6e-4)
        np.testing.assert_allclose(values, expected["v"], rtol=6e-3, atol=1e-3)
        np.testing.assert_allclose(z, expected["head_output"], rtol=6e-3, atol=1e-3)
        best = expected["columns"][int(np.argmax(expected["weights"]))]
        assert f"from “{best}”" in page.text_content("#told")


def test_hard_attention_takes_one_value(opened, stored, at):
    page = opened("values")
    page.get_by_role("button", name="Hard: the heaviest").click()
    expected = computation(stored, at)
    best = int(np.argmax(expected["weights"]))
    weights, _, z = shown(page)
    assert weights.tolist() == np.eye(len(weights))[best].tolist()
    np.testing.assert_allclose(z, expected["v"][best], rtol=6e-3, atol=1e-3)
    assert f"takes the value of “{expected['columns'][best]}”" in page.text_content("#told")


def test_all_alike_is_the_mean(opened, stored, at):
    page = opened("values", link="#how=uniform")
    expected = computation(stored, at)
    _, _, z = shown(page)
    mean = np.mean(expected["v"], 0)
    np.testing.assert_allclose(z, mean, rtol=6e-3, atol=1e-3)
    away = np.linalg.norm(mean - expected["head_output"]) / np.linalg.norm(expected["head_output"])
    said = page.text_content("figure[data-name='values'] .note")
    assert number(re.search(r"is (\S+) of its length", said)[1]) == pytest.approx(100 * away, abs=0.6)


@pytest.mark.parametrize(("button", "change"), [("Hard", "argmax"), ("All alike", "uniform")])
def test_the_translation_is_that_of_the_changed_model(opened, stored, button, change):
    page = opened("values")
    page.get_by_role("button", name=button).click()
    encoder = [part.name for part in attending(stored.model, stored.task) if part.kind == "encoder"]
    with transduce.capture(stored, **{change: [transduce.Place(name) for name in encoder]}):
        expected = stored.predict(TIRED).text
    assert page.text_content("#writes") == expected


def drawn(weights, count, first=0):
    """Places drawn from the weights by NumPy."""
    upto = np.cumsum(weights)
    return np.searchsorted(upto, np.random.default_rng([1, first]).random(count) * upto[-1], side="right")


def away(expected, places):
    z = np.array(expected["head_output"])
    return np.linalg.norm(np.array(expected["v"])[places].mean(0) - z) / np.linalg.norm(z)


def distance_said(page):
    return number(re.search(r"is ([\d.]+)% away", page.text_content("#sampled"))[1])


def test_the_mean_of_draws_comes_near_the_sum(opened, stored, at):
    page = opened("values", link="#draws=10")
    expected = computation(stored, at)
    first = distance_said(page)
    assert first == pytest.approx(100 * away(expected, drawn(expected["weights"], 10)), rel=0.06)
    for _ in range(3):
        page.click("#hundred")
    places = drawn(expected["weights"], 310)
    times = [int(row[2]) for row in table(page, "sampling")]
    assert times == np.bincount(places, minlength=len(times)).tolist()
    assert distance_said(page) == pytest.approx(100 * away(expected, places), rel=0.06)
    page.evaluate("Transduce.go({draws: 1000})")
    assert distance_said(page) < first / 3


def test_drawing_again_draws_others(opened, stored, at):
    page = opened("values", link="#draws=40&first=7")
    expected = computation(stored, at)
    times = [int(row[2]) for row in table(page, "sampling")]
    assert times == np.bincount(drawn(expected["weights"], 40, 7), minlength=len(times)).tolist()
    page.click("#again")
    assert page.text_content("#sampled").startswith("1 drawn")
    page.click("#ten")
    places = drawn(expected["weights"], 11, 8)
    assert [int(row[2]) for row in table(page, "sampling")] == np.bincount(places, minlength=len(times)).tolist()
    assert f"last “{expected['columns'][places[-1]]}”" in page.text_content("#sampled")


def test_it_draws_until_it_is_paused(opened):
    page = opened("values", link="#draws=0")
    assert page.text_content("#sampled") == "Nothing is drawn yet."
    page.wait_for_timeout(600)
    assert page.text_content("#sampled") == "Nothing is drawn yet.", "nothing moves unasked"
    page.click("#play")
    page.wait_for_function("Number(Transduce.state().draws) > 3")
    page.click("#play")
    before = page.text_content("#sampled")
    page.wait_for_timeout(700)
    assert page.text_content("#sampled") == before
