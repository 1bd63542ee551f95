"""Searching: the notes' tables against all outputs one by one, the model's beam against the model in Python."""

import math
import re
from itertools import product

import numpy as np
import pytest

from int8_model import in_eight_bits

LETTERS = ["A", "B", "C", "<eos>"]
# Dive into Deep Learning, figures s2s-prob1 and s2s-prob2; what follows any other prefix is uniform.
FIRST = np.array([[0.5, 0.1, 0.2, 0.0], [0.2, 0.4, 0.2, 0.2], [0.2, 0.3, 0.4, 0.2], [0.1, 0.2, 0.2, 0.6]])
SECOND = np.array([[0.1, 0.6, 0.2, 0.1], [0.1, 0.2, 0.1, 0.6]])  # after A C, after A C B
GUESSED = "The animal didn't cross the street because it was too good."


def p(output: str) -> float:
    """Of an output such as "A C <eos>", from the tables."""
    total, before = 1.0, list[str]()
    for token in output.split():
        place = LETTERS.index(token)
        if before in (["A", "C"], ["A", "C", "B"]):
            total *= SECOND[len(before) - 2, place]
        elif before == ["A", "B", "C"][: len(before)]:
            total *= FIRST[place, len(before)]
        else:
            total *= 0.25
        before.append(token)
    return total


ENDED = [" ".join([*before, "<eos>"]) for length in range(4) for before in product("ABC", repeat=length)]


def chosen(page) -> str:
    """The left side and the numbers of the equation below the table."""
    return page.locator("#stop math").first.text_content()


def slide(page, name: str, value: str) -> None:
    page.locator(f"#{name}").fill(value)


def best(page) -> str:
    """The spine of the beam over the tables."""
    return " ".join(page.locator("[data-name=beam] .pill.best .pill-text").all_text_contents())


def ranking(page) -> list[list[str]]:
    button = page.locator("[data-name=ranking] button[data-figure]")
    button.click()
    rows = page.eval_on_selector_all(
        "[data-name=ranking] tbody tr", "all => all.map(e => [...e.cells].map(c => c.innerText))"
    )
    button.click()
    return rows


def number(text: str) -> float:
    return float(text.replace("−", "-"))


def test_greedy_has_0_048_and_another_way_0_054(opened):
    page = opened("searching")
    assert "A B C <eos>" in chosen(page)
    assert "= 0.048" in re.sub(r"=", "= ", chosen(page))
    for cell in ("1-C", "2-B"):
        page.click(f"#cell-{cell}")
    page.locator("#cell-3-e").press("Enter")
    numbers = [number(each) for each in page.locator("#stop math").first.locator("mn").all_text_contents()]
    assert numbers == pytest.approx([0.5, 0.3, 0.6, 0.6, 0.054, -math.log(0.054)], rel=5e-3)
    page.click("#greedy")
    assert "A B C <eos>" in chosen(page)


@pytest.mark.parametrize("path", ["AB", "AC", "ACB", "B", "AA"])
def test_columns_are_what_follows_the_prefix(opened, path):
    page = opened("searching", link=f"#path={path}")
    for t in range(len(path) + 1):
        said = [page.text_content(f"#cell-{t}-{letter}") for letter in "ABCe"]
        before = " ".join(path[:t])
        expected = [p(f"{before} {letter}") / (p(before) if before else 1) for letter in LETTERS]
        assert [float(each) for each in said] == pytest.approx(expected)
    note = page.text_content("[data-name=table] .note")
    assert ("no numbers" in note) == (path in ("B", "AA"))


@pytest.mark.parametrize(
    ("width", "alpha", "output"),
    [
        ("1", "0", "A B C <eos>"),
        ("1", "1.5", "A B C <eos>"),
        ("2", "0", "A C B <eos>"),
        ("2", "0.75", "A C B <eos>"),
        ("3", "0", "A <eos>"),
        ("3", "0.75", "A C B <eos>"),
    ],
)
def test_beams_find_what_the_notes_say(opened, width, alpha, output):
    page = opened("searching")
    slide(page, "width", width)
    slide(page, "alpha", alpha)
    assert best(page) == output


@pytest.mark.parametrize("alpha", ["0", "0.6", "0.75", "1"])
def test_outputs_are_ranked_by_the_score_of_all(opened, alpha):
    page = opened("searching", link=f"#alpha={alpha}")
    score = {output: math.log(p(output)) / len(output.split()) ** float(alpha) for output in ENDED if p(output)}
    order = sorted(score.values(), reverse=True)
    rows = ranking(page)
    assert [number(row[3]) for row in rows][:6] == pytest.approx(order[:6], rel=2e-3)
    for output, probability, minus_log, scored, told in rows:
        assert number(probability) == pytest.approx(p(output), abs=6e-4)
        assert number(minus_log) == pytest.approx(-math.log(p(output)), rel=2e-3)
        assert number(scored) == pytest.approx(score[output], rel=2e-3)
        assert ("exhaustive" in told) == (score[output] > order[0] - 1e-9)
        assert ("greedy" in told) == (output == "A B C <eos>")
    winners = {output for output, value in score.items() if value > order[0] - 1e-9}
    assert winners == ({"<eos>", "A <eos>"} if alpha == "0" else {"A C B <eos>"})
    told = page.text_content("#winner")
    assert "120 outputs" in told
    assert all(output in told for output in winners)


def test_the_printed_scores(opened):
    page = opened("searching")
    scores = {row[0]: number(row[3]) for row in ranking(page)}
    assert scores["A C B <eos>"] == pytest.approx(-1.0319, abs=6e-4)
    assert scores["A B C <eos>"] == pytest.approx(-1.0736, abs=6e-4)
    assert scores["A <eos>"] == pytest.approx(-1.3691, abs=6e-4)
    assert scores["A B <eos>"] == pytest.approx(-1.4121, abs=6e-4)


def test_a_branch_unfolds_by_pointer_and_keys(opened):
    page = opened("searching", link="#width=3")
    pills = page.locator("[data-name=beam] .pill")
    before = pills.count()
    branch = page.locator("[data-name=beam] .folds").first
    assert branch.get_attribute("aria-expanded") == "false"
    branch.click()
    assert pills.count() > before
    branch = page.locator("[data-name=beam] .folds[aria-expanded=true]")
    branch.focus()
    page.keyboard.press("Enter")
    page.wait_for_function(f"document.querySelectorAll('[data-name=beam] .pill').length === {before}")


@pytest.mark.parametrize(("width", "alpha"), [(1, 0.75), (3, 0.75), (4, 0.0)])
def test_the_models_beam_is_that_of_python(opened, run, width, alpha):
    model = in_eight_bits(run)
    page = opened("searching", link=f"#width={width}&alpha={alpha}")
    found = model.predict(GUESSED, method="beam", beam=width, nbest=width, alpha=alpha)
    expected = found.alternatives or (found,)
    rows = page.eval_on_selector_all("#nbest tbody tr", "all => all.map(e => [...e.cells].map(c => c.innerText))")
    assert [row[0] for row in rows] == [each.text for each in expected]
    assert [number(row[3]) for row in rows] == pytest.approx([each.score for each in expected], abs=2e-3)
    assert page.text_content("#output") == found.text
    spine = page.locator("[data-name=model-beam] .pill.best .pill-text").all_text_contents()
    assert spine == [*(token.replace("▁", "") for token in found.tokens), "</s>"]


def test_another_sentence_has_another_beam(opened):
    page = opened("searching")
    before = page.text_content("#output")
    page.fill("#typed", "The dog was hungry.")
    assert page.text_content("#output") != before
