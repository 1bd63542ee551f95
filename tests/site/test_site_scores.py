"""Who answers my question? Queries, keys, scores and weights are the model's own; so are the five ways to compare."""

import re

import numpy as np
import pytest
import torch
from reading import number, slide, table

import transduce
from transduce.attention import scores
from transduce.demo.corpus import PRONOUN_PAIR
from transduce.explore.exploration import asked
from transduce.interpret.layers import attending
from transduce.interpret.steps import steps
from transduce.site.demo_model import pronoun_head

TIRED, WIDE = (each.english for each in PRONOUN_PAIR)
KEYS = {"The": (0.6, 0.2, 0.8), "weather": (0.2, 0.3, 0.1), "is": (0.9, 0.1, 0.8), "nice": (0.4, 0.1, 0.4)}
KEYS["today"] = (0.4, 0.1, 0.6)


def computation(model, text, query, layer, head):
    given = asked(model, text, None)
    output = model.predict(text).text
    name = f"encoder.blocks.{layer}.self_attention"
    return steps(model.model, model.task, given, (text, output), name, head, query)


def compared(page, expected):
    """The table against a computation."""
    rows = table(page, "scores")
    assert [row[0] for row in rows] == expected["columns"]
    for place, key in enumerate(("scores", "scaled", "weights"), 1):
        shown = [number(row[place]) for row in rows]
        np.testing.assert_allclose(shown, expected[key], rtol=6e-3, atol=6e-4, err_msg=key)


def test_its_numbers_are_the_models(opened, run, stored):
    from transduce.pipeline.pipeline import load

    page = opened("scores")
    layer, head = pronoun_head(load(run))
    at = computation(stored, TIRED, 0, layer, head)["columns"].index("it")
    compared(page, computation(stored, TIRED, at, layer, head))
    page.click("#ask-7")  # another word asks
    compared(page, computation(stored, TIRED, 7, layer, head))
    assert "“street”" in page.text_content("#told")
    page.select_option("#layer", index=0)
    page.select_option("#head", index=2)
    compared(page, computation(stored, TIRED, 7, 0, 2))
    page.fill("#typed", WIDE.replace("animal", "dog"))
    page.click("#ask-1")
    compared(page, computation(stored, WIDE.replace("animal", "dog"), 1, 0, 2))


def test_the_word_with_most_weight_is_named(opened, stored):
    page = opened("scores", link="#query=2&layer=1&head=1")
    expected = computation(stored, TIRED, 2, 1, 1)
    best = expected["columns"][int(np.argmax(expected["weights"]))]
    said = page.text_content("#told")
    assert f"“{best}”" in said
    entropy = -sum(weight * np.log(weight) for weight in expected["weights"] if weight)
    assert float(re.search(r"about ([\d.]+) of", said)[1]) == pytest.approx(np.exp(entropy), rel=6e-3)


@pytest.mark.parametrize(("step", "key"), [("2", "scores"), ("3", "scaled")])
def test_each_step_has_an_equation_with_its_numbers(opened, stored, step, key):
    page = opened("scores", link=f"#query=9&step={step}&layer=2&head=0")
    expected = computation(stored, TIRED, 9, 2, 0)
    best = int(np.argmax(expected["weights"]))
    last = page.text_content(".formula > mrow > mn:last-of-type").strip("()")
    assert number(last) == pytest.approx(expected[key][best], rel=6e-3)


@pytest.mark.parametrize("dim", [0, 13, 23])
def test_a_number_of_q_is_a_row_of_the_matrix_times_x(opened, stored, dim):
    page = opened("scores", link=f"#query=9&step=1&layer=5&head=3&dim={dim}")
    expected = computation(stored, TIRED, 9, 5, 3)["q"]
    shown = page.evaluate("(() => [...document.querySelectorAll('.formula mn')].at(-1).textContent)()")
    assert number(shown.strip("()")) == pytest.approx(expected[dim], rel=6e-3, abs=1e-4)
    slide(page, "dim", 5)
    shown = page.evaluate("(() => [...document.querySelectorAll('.formula mn')].at(-1).textContent)()")
    assert number(shown.strip("()")) == pytest.approx(expected[4], rel=6e-3, abs=1e-4)


def test_a_temperature_acts_inside_the_softmax(opened, stored):
    page = opened("scores")
    layer, head = (page.evaluate(f"Transduce.stored.head.{each}") for each in ("layer", "head"))
    before = page.text_content("#writes")
    slide(page, "temperature", 5)
    name = f"encoder.blocks.{layer}.self_attention"
    with transduce.capture(stored, temperature={transduce.Place(name, head=head): 32.0}) as record:
        stored.predict(TIRED)
    query = [row[0] for row in table(page, "scores")].index("it")
    shown = [number(row[3]) for row in table(page, "scores")]
    np.testing.assert_allclose(shown, record[name][0][0, head, query].numpy(), atol=6e-4)
    encoder = [part.name for part in attending(stored.model, stored.task) if part.kind == "encoder"]
    with transduce.capture(stored, temperature={transduce.Place(each): 32.0 for each in encoder}):
        expected = stored.predict(TIRED).text
    assert page.text_content("#writes") == expected
    assert expected != before


def test_112_and_96(opened):
    """Golden example of the notes: 14 and 12, .88 and .12; without the division all but 1."""
    page = opened("scores")
    page.get_by_role("button", name="112 and 96").click()
    rows = table(page, "scores")
    assert [row[:3] for row in rows] == [["Thinking", "112", "14"], ["Machines", "96", "12"]]
    assert [number(row[3]) for row in rows] == pytest.approx([0.880797, 0.119203], abs=6e-4)
    page.uncheck("#divide")
    weights = [number(row[3]) for row in table(page, "scores")]
    assert weights[0] == 0.99999989
    assert weights[1] == pytest.approx(1.1e-7, rel=0.05)
    page.check("#divide")
    slide(page, "temperature", 1)
    expected = torch.softmax(torch.tensor([7.0, 6.0]), 0).tolist()
    assert [number(row[3]) for row in table(page, "scores")] == pytest.approx(expected, abs=6e-4)


def by_torch(q, keys, matrix):
    """The scores of the package with the same matrices."""
    query, key = torch.tensor(q)[None, None, None], torch.tensor(keys)[None, None]
    size = query.shape[-1]
    made = [
        scores.Dot(size, size),
        scores.ScaledDot(size, size),
        scores.Cosine(size, size),
        scores.Additive(size, size),
    ]
    with torch.no_grad():
        made[3].query.weight.copy_(torch.eye(size))
        made[3].key.weight.copy_(torch.eye(size))
        made[3].reader_A.fill_(1)
        made.append(scores.Bilinear(size, size))
        made[4].weight_EF.copy_(torch.tensor(matrix))
        return [each(query, each.keys(key))[0, 0, 0] for each in made]


def ways(page):
    """For each score its numbers and its weights."""
    rows = [[number(cell) for cell in row[1:]] for row in table(page, "ways")]
    columns = list(zip(*rows, strict=True))
    return columns[::2], columns[1::2]


SWAP, SAME = ([[0.0, 0, 1], [0, 1, 0], [1, 0, 0]], torch.eye(3).tolist())


def test_five_scores_of_the_notes_vectors(opened):
    page = opened("scores")
    for q, matrix in (((0.6, 0.2, 0.8), SWAP), ((-0.4, 1.0, 0.3), SWAP), ((-0.4, 1.0, 0.3), SAME)):
        for place, value in enumerate(q, 1):
            slide(page, f"q-{place}", value)
        if matrix is SAME:
            page.get_by_role("button", name="W = I", exact=True).click()
        shown, weights = ways(page)
        for one, other, weight in zip(shown, by_torch(q, list(KEYS.values()), matrix), weights, strict=True):
            np.testing.assert_allclose(one, other, rtol=6e-3, atol=1e-3)
            np.testing.assert_allclose(weight, other.softmax(0), atol=6e-4)
    assert ways(page)[0][0] == ways(page)[0][4], "with W = I it is the dot product"
    page.evaluate("Transduce.go({q: '0.6_0.2_0.8'})")
    assert ways(page)[0][0] == (1.04, 0.26, 1.2, 0.58, 0.74)  # golden example


def test_a_dot_product_of_q_and_k_is_a_bilinear_score_of_x(opened, stored):
    page = opened("scores", link="#vectors=model&layer=2&head=1&query=4")
    expected = computation(stored, TIRED, 4, 2, 1)
    shown, _ = ways(page)
    np.testing.assert_allclose(shown[0], expected["scores"], rtol=6e-3, atol=1e-3)
    np.testing.assert_allclose(shown[4], expected["scores"], rtol=6e-3, atol=1e-3)
    for one, other in zip(shown[:4], by_torch(expected["q"], expected["k"], torch.eye(24).tolist()), strict=False):
        np.testing.assert_allclose(one, other, rtol=6e-3, atol=1e-3)


def test_keys_choose_the_word_that_asks(opened):
    page = opened("scores")
    page.focus("#ask-1")
    page.keyboard.press("Enter")
    assert page.text_content("#told").startswith("“animal” gives")
    assert page.evaluate("document.activeElement.id") == "ask-1"
