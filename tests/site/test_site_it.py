"""What does "it" mean? The page's pronoun, weights and cuts are the model's own."""

import numpy as np
import pytest

from transduce.demo.corpus import PRONOUN_PAIR
from transduce.demo.pronouns import Sought, attention_by_head, kept_from
from transduce.pipeline.pipeline import load
from transduce.site.demo_model import pronoun_head

TIRED, WIDE = PRONOUN_PAIR


@pytest.fixture(scope="module")
def model(run):
    return load(run)


def test_one_adjective_turns_the_pronoun(opened):
    page = opened("it")
    for question, adjective in ((WIDE, "wide"), (TIRED, "tired")):
        page.click(f"#{adjective}")
        assert page.text_content("#output") == question.french
        heaviest = max(weights(page).items(), key=lambda each: each[1])[0]
        assert heaviest == question.antecedent


def weights(page):
    """word -> what the picture says it weighs; of equal words the last."""
    told = page.eval_on_selector_all("#stop .asked", "all => all.map(each => each.getAttribute('aria-label'))")
    return {label.rsplit(" ", 1)[0]: float(label.rsplit(" ", 1)[1]) for label in told}


def test_its_weights_are_the_models(opened, model):
    page = opened("it", link="#text=The+animal+didn%27t+cross+the+street+because+it+was+too+wide.")
    [look] = attention_by_head(model, [Sought(WIDE.english, "it", "street")])[pronoun_head(model)]
    shown = weights(page)
    for word, weight in zip(look.words, look.weights, strict=True):
        if look.words.count(word) == 1:
            assert shown[word] == pytest.approx(float(weight), abs=0.03)  # the page's matrices are in 8 bits
    assert np.isclose(sum(look.weights), 1)


@pytest.mark.parametrize("words", [["animal"], ["animal", "tired"]])
def test_a_cut_does_what_it_does_in_python(opened, model, words):
    page = opened("it")
    for word in words:
        page.locator("#stop .asked", has_text=word).click()
    assert page.text_content("#output") == kept_from(model, TIRED.english, "it", words)
    page.click("#mend")
    assert page.text_content("#output") == TIRED.french


def test_cutting_noun_and_adjective_flips_the_pronoun(opened):
    page = opened("it")
    page.locator("#stop .asked", has_text="animal").press("Enter")
    assert " il " in page.text_content("#output").replace("'", " ")
    page.locator("#stop .asked", has_text="tired").press(" ")
    assert " elle " in page.text_content("#output").replace("'", " ")
    assert TIRED.french in page.text_content("#hint")


def test_it_plays_by_itself_and_stops_when_somebody_types(opened):
    page = opened("it", still=False)
    page.wait_for_function("document.getElementById('output').textContent.includes('elle')")
    page.fill("#typed", "The dog didn't cross the river because it was too deep.")
    assert "rivière" in page.text_content("#output")
    page.wait_for_timeout(3500)
    assert "rivière" in page.text_content("#output")
    assert page.text_content("#play") == "Play"


def test_who_wants_no_motion_sees_none(opened):
    page = opened("it")
    page.wait_for_timeout(3500)
    assert page.text_content("#output") == TIRED.french


def test_a_sentence_without_a_pronoun_is_said_to_have_none(opened):
    page = opened("it")
    page.fill("#typed", "The dog is old.")
    assert "no “it”" in page.text_content("#hint")


def test_the_equation_has_the_largest_weights(opened):
    page = opened("it")
    told = weights(page)
    text = page.text_content("#stop .formula")
    first = max(told, key=told.get)
    assert first in text
    assert f"{told[first]:.3g}"[:3] in text


def test_a_saved_picture_says_what_it_shows_and_under_which_licence(opened):
    page = opened("it")
    page.click("[data-saves=it]")
    with page.expect_download() as saving:
        page.click("[data-save=svg]")
    text = saving.value.path().read_text(encoding="utf-8")
    for said in ("What “it” attends to", "too tired.", "encoder layer", "CC BY 4.0", "#ffffff"):
        assert said in text
