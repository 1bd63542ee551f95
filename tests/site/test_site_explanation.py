"""Does attention explain? What the page says of a cut is what the model does without these connections."""

import re
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from int8_model import in_eight_bits, log_probabilities
from transduce.attention import capture
from transduce.attention.interventions import Place
from transduce.demo.corpus import PRONOUN_PAIR
from transduce.demo.pronouns import kept_from

TIRED, WIDE = PRONOUN_PAIR
WORDS = ["The", "animal", "didn't", "cross", "the", "street", "because", "it", "was", "too", "tired", ".", "</s>"]
IT = 9  # its token: "didn't" has three
TOKEN = {"animal": 1, "street": 7, "tired": 12, "wide": 12}


@pytest.fixture(scope="module")
def model(run):
    return in_eight_bits(run)


def odds(model, question, words: Sequence[str], layers=range(6), head: int | None = None) -> list[float]:
    """log p of il and elle behind "... parce qu'", where "it" may not read `words`."""
    before = re.split(r"(?:il|elle) était", question.french)[0]
    cut = [Place(f"encoder.blocks.{layer}.self_attention", head, IT, TOKEN[word]) for layer in layers for word in words]
    with capture(model, cut=cut):
        said = log_probabilities(model, question.english, before)
    return [float(said[-1][model.task.tokenizers["target"].ids([word])[0]]) for word in ("il", "elle")]


def tried(page) -> list[list[float]]:
    """What each line of the experiments says of il and elle."""
    labels = page.eval_on_selector_all("#stop .attempt", "all => all.map(each => each.getAttribute('aria-label'))")
    return [[float(each.replace("−", "-")) for each in re.findall(r"\) (\S+?)(?:,|$)", label)] for label in labels]


def cut(page, *words: str) -> None:
    for word in words:
        page.locator("#stop .asked", has_text=word).click()


def test_the_noun_alone_changes_nothing_and_the_adjective_with_it_flips_the_pronoun(opened, model):
    page = opened("explanation")
    assert page.text_content("#output") == TIRED.french
    cut(page, "animal")
    assert page.text_content("#output") == kept_from(model, TIRED.english, "it", ["animal"]) == TIRED.french
    assert "still il" in page.text_content("#hint")
    cut(page, "tired")
    assert page.text_content("#output") == kept_from(model, TIRED.english, "it", ["animal", "tired"])
    assert "from il to elle" in page.text_content("#hint")
    page.click("#mend")
    assert page.text_content("#output") == TIRED.french


def test_the_list_of_experiments_has_the_models_numbers(opened, model):
    page = opened("explanation")
    cut(page, "animal", "tired")
    page.select_option("#cut-layer", "3")
    page.select_option("#cut-head", "3")
    expected = [
        odds(model, TIRED, []),
        odds(model, TIRED, ["animal"]),
        odds(model, TIRED, ["animal", "tired"]),
        odds(model, TIRED, ["animal", "tired"], [3]),
        odds(model, TIRED, ["animal", "tired"], [3], head=3),
    ]
    np.testing.assert_allclose(tried(page), expected, rtol=0.01, atol=0.006)
    pronouns = page.locator("#stop .attempt-word").all_text_contents()
    assert pronouns == ["il" if il > elle else "elle" for il, elle in expected]
    assert "elle" in pronouns


def test_an_experiment_is_chosen_again_by_keys_and_by_its_link(opened):
    page = opened("explanation")
    cut(page, "animal", "tired")
    flipped = page.text_content("#output")
    page.locator("#tried-0").press("Enter")
    assert page.text_content("#output") == TIRED.french
    page.locator("#tried-2").press(" ")
    assert page.text_content("#output") == flipped
    link = page.evaluate("location.hash")
    again = opened("explanation", link=link)
    assert again.text_content("#output") == flipped
    assert again.locator("#stop .attempt").count() == 3


def test_every_head_is_measured_by_a_cut_in_it_alone(opened, model):
    page = opened("explanation")
    page.click("#wide")
    cut(page, "wide")
    page.click("#measure")
    page.wait_for_selector("#effects")
    page.locator("[data-name=effects] button[data-figure]").click()
    cells = page.locator("[data-name=effects] tbody td").all_text_contents()
    shown = np.array([float(each.replace("−", "-")) for each in cells]).reshape(6, 4)
    margin = lambda pair: pair[1] - pair[0]  # noqa: E731
    whole = margin(odds(model, WIDE, []))
    for layer, head in ((0, 0), (1, 2), (3, 3), (5, 2)):
        expected = margin(odds(model, WIDE, ["wide"], [layer], head)) - whole
        assert shown[layer, head] == pytest.approx(expected, rel=0.02, abs=0.01)


def test_a_head_of_the_picture_is_cut_alone(opened, model):
    page = opened("explanation")
    page.focus("#weights")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.input_value("#cut-layer") == "1"
    assert page.input_value("#cut-head") == "0"
    np.testing.assert_allclose(tried(page)[-1], odds(model, TIRED, ["animal"], [1], 0), rtol=0.01, atol=0.006)


def test_another_sentence_has_other_numbers_and_nothing_tried(opened):
    page = opened("explanation")
    cut(page, "animal")
    before = tried(page)[0]
    page.fill("#typed", "The dog didn't cross the river because it was too deep.")
    assert page.locator("#stop .attempt").count() == 1
    assert tried(page)[0] != before
    page.fill("#typed", "The dog is old.")
    assert "no pronoun" in page.text_content("#none")


def test_the_weights_are_the_models(opened, model):
    page = opened("explanation")
    said = page.eval_on_selector_all("#stop .asked", "all => all.map(each => each.getAttribute('aria-label'))")
    with capture(model) as record, torch.inference_mode():
        log_probabilities(model, TIRED.english, "")
    alpha = record["encoder.blocks.3.self_attention"][0][0, 3, IT]
    groups = [[0], [1], [2, 3, 4], *([each] for each in range(5, 15))]
    expected = [float(alpha[group].sum()) for group in groups]
    assert [label.rsplit(" ", 1)[0] for label in said] == WORDS
    np.testing.assert_allclose([float(label.rsplit(" ", 1)[1]) for label in said], expected, atol=0.004)
