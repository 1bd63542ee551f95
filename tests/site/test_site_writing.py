"""Writing: what the page says of each step is what the model says behind the same tokens."""

import re

import numpy as np
import pytest

from int8_model import in_eight_bits, log_probabilities, said_by
from transduce.attention import capture
from transduce.demo.corpus import PRONOUN_PAIR

TIRED, WIDE = PRONOUN_PAIR
CHARACTERS = "机器学习"


@pytest.fixture(scope="module")
def model(run):
    return in_eight_bits(run)


def lanes(page) -> list[list[str]]:
    """Lines of the table: step, what is read and said with a teacher, and by its own words."""
    button = page.locator("[data-name=lanes] button[data-figure]")
    button.click()
    lines = page.eval_on_selector_all(
        "[data-name=lanes] tbody tr", "all => all.map(e => [...e.cells].map(c => c.innerText))"
    )
    button.click()
    return lines


def said(page) -> list[str]:
    return page.locator("#writer .says text").all_text_contents()


def read(page) -> list[str]:
    return page.locator("#writer .reads text").all_text_contents()


def test_characters_appear_one_after_another(opened):
    page = opened("writing")
    assert said(page) == [*CHARACTERS, "<END>"]
    assert read(page) == ["<BEGIN>", *CHARACTERS]
    for step in range(1, 6):
        page.click("#next")
        assert said(page) == [*CHARACTERS, "<END>"][:step]
        assert read(page) == ["<BEGIN>", *CHARACTERS][:step]


def test_a_mistake_is_read_again_unless_a_teacher_corrects_it(opened):
    page = opened("writing")
    page.click("#wrong")
    assert said(page)[:2] == ["机", "气"]
    assert read(page)[2] == "气"
    page.get_by_role("button", name="Teacher forcing").click()
    assert said(page) == ["机", "气", "学", "习", "<END>"]
    assert read(page) == ["<BEGIN>", *CHARACTERS]
    page.click("#wrong")
    assert said(page) == [*CHARACTERS, "<END>"]


def test_it_plays_by_itself_unless_motion_is_unwanted(opened):
    page = opened("writing", still=False)
    page.wait_for_function("document.querySelectorAll('#writer .says').length === 2")
    page.wait_for_function("document.querySelectorAll('#writer .says').length === 5")
    assert page.text_content("#play") == "Play"
    still = opened("writing")
    still.wait_for_timeout(1500)
    assert len(said(still)) == 5


def ids_of(model, text: str) -> list[int]:
    return list(model.task.columns["target"].encode([text])[0])


def test_elle_is_said_in_the_place_of_il_and_what_follows_is_the_models(opened, model):
    page = opened("writing")
    writes = model.task.columns["target"]
    il, elle = writes.tokenizer.ids(["il", "elle"])
    truth = ids_of(model, TIRED.french)
    at = truth.index(il)
    page.click(f"#say-{elle}")
    own = [*truth[:at], elle]
    while own[-1] != writes.tokenizer.end:
        own.append(int(said_by(model, source(model, TIRED.english), [writes.start, *own])[-1].argmax()))
    expected = writes.tokenizer.decode(own[:-1])
    assert expected in page.text_content("#followed")
    lines = lanes(page)
    assert lines[at][2].startswith("elle") and lines[at][4].startswith("elle")
    assert [line[1] for line in lines][at + 1] == "il"  # a teacher's
    assert [line[3] for line in lines][at + 1] == "elle"  # its own
    assert percents(lines, 4) == pytest.approx(shares(model, own), abs=0.011)
    teacher = [*truth, writes.tokenizer.end]
    teacher_shares = shares(model, teacher)
    teacher_shares[at] = shares(model, own)[at]
    assert percents(lines, 2) == pytest.approx(teacher_shares, abs=0.011)


def source(model, text: str) -> list[int]:
    reads = model.task.columns["source"]
    return [*reads.encode([text])[0], reads.tokenizer.end]


def shares(model, ids: list[int]) -> list[float]:
    """The probability of each of these tokens behind those before it."""
    rows = said_by(model, source(model, TIRED.english), [model.task.columns["target"].start, *ids[:-1]])
    return [float(row[token].exp()) for row, token in zip(rows, ids, strict=True)]


def percents(lines: list[list[str]], column: int) -> list[float]:
    return [float(re.sub(r"[<%]", "", line[column].split()[-1])) / 100 for line in lines]


def test_the_adjective_that_would_agree_rises_by_what_the_model_says(opened, model):
    page = opened("writing")
    elle, agreeing = model.task.columns["target"].tokenizer.ids(["elle", "▁fatiguée"])
    page.click(f"#say-{elle}")
    told = page.text_content("#followed")
    masculine, feminine = (
        "L'animal n'a pas traversé la rue parce qu'il était trop",
        "L'animal n'a pas traversé la rue parce qu'elle était trop",
    )
    before, after = (
        float(log_probabilities(model, TIRED.english, text)[-1, agreeing].exp()) for text in (masculine, feminine)
    )
    assert after > before
    assert "fatiguée" in told
    numbers = [float(each) / 100 for each in re.findall(r"([\d.]+)%", told)]
    assert numbers == pytest.approx([before, after], abs=0.003)


def test_another_sentence_and_another_step_have_other_words(opened, model):
    page = opened("writing")
    page.fill("#typed", WIDE.english)
    tokens = [line[4].split()[0] for line in lanes(page)]
    assert "elle" in tokens and "large" in tokens
    before = page.text_content(".choosing h2")
    page.locator("#own-0").press("Enter")
    assert page.text_content(".choosing h2") != before
    chips = page.locator(".choosing .chips button").all_text_contents()
    row = log_probabilities(model, WIDE.english, "")[0]
    best = model.task.columns["target"].tokenizer.tokens(row.topk(4).indices.tolist())
    assert [chip.split()[0] for chip in chips[:4]] == best


def test_the_equation_adds_up_to_the_models_log_probability(opened, model):
    page = opened("writing")
    ids = [*ids_of(model, TIRED.french), model.task.columns["target"].tokenizer.end]
    total = float(np.log(shares(model, ids)).sum())
    numbers = page.locator("#stop math mn").all_text_contents()
    assert len(numbers) == len(ids) + 1
    assert float(numbers[-1].replace("−", "-")) == pytest.approx(total, rel=0.05)


def test_the_mask_shows_the_decoders_weights_and_nothing_later(opened, model):
    page = opened("writing")
    page.locator("[data-name=mask] button[data-figure]").click()
    cells = page.eval_on_selector_all(
        "[data-name=mask] tbody tr", "all => all.map(e => [...e.cells].slice(1).map(c => Number(c.innerText)))"
    )
    with capture(model) as record:
        log_probabilities(model, TIRED.english, TIRED.french)
    alpha = record["decoder.blocks.0.self_attention"][0][0].mean(0).numpy()
    np.testing.assert_allclose(np.array(cells), alpha, atol=0.004)
    assert not np.triu(np.array(cells), 1).any()


def test_what_was_changed_is_in_the_link(opened, model):
    page = opened("writing")
    elle = model.task.columns["target"].tokenizer.ids(["elle"])[0]
    page.click(f"#say-{elle}")
    told = page.text_content("#followed")
    again = opened("writing", link=page.evaluate("location.hash"))
    assert again.text_content("#followed") == told
    again.click("#mend")
    assert again.text_content("#followed") == "Try elle in the place of il."
