"""One block, six blocks: the pronoun after each block, and what each part adds, are the model's own."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch

from int8_model import in_eight_bits, log_probabilities
from transduce.attention import capture
from transduce.demo.corpus import PRONOUN_PAIR

TIRED, WIDE = PRONOUN_PAIR
IT = 9  # the token "it" of both sentences
PLURAL = "The animals didn't cross the street because they were too tired."


@pytest.fixture(scope="module")
def model(run):
    return in_eight_bits(run)


@contextmanager
def blocks_of_encoder(model, count: int) -> Iterator[None]:
    """Only the first `count` act: what comes into a later one leaves it unchanged."""
    hooks = [
        block.register_forward_hook(lambda _block, given, output: (given[0], *output[1:]))
        for block in list(model.model.encoder.blocks)[count:]
    ]
    try:
        with capture(model):
            yield
    finally:
        for hook in hooks:
            hook.remove()


def odds(model, question, count: int) -> list[float]:
    before = re.split(r"(?:il|elle) était", question.french)[0]
    with blocks_of_encoder(model, count):
        said = log_probabilities(model, question.english, before)
    return [float(said[-1][model.task.tokenizers["target"].ids([word])[0]]) for word in ("il", "elle")]


def table(page, name: str) -> list[list[str]]:
    button = page.locator(f"[data-name={name}] button[data-figure]")
    button.click()
    rows = page.eval_on_selector_all(
        f"[data-name={name}] tbody tr", "all => all.map(e => [...e.cells].map(c => c.innerText))"
    )
    button.click()
    return [[each.replace("−", "-") for each in row] for row in rows]


@pytest.mark.parametrize("question", [TIRED, WIDE], ids=["tired", "wide"])
def test_the_pronoun_after_each_block_is_what_the_decoder_makes_of_its_state(opened, model, question):
    page = opened("blocks")
    page.click(f"#{'tired' if question is TIRED else 'wide'}")
    rows = table(page, "lens")
    expected = [odds(model, question, count) for count in range(7)]
    assert [row[0] for row in rows] == [str(count) for count in range(7)]
    np.testing.assert_allclose([[float(each) for each in row[1:]] for row in rows], expected, rtol=0.01, atol=0.01)


@pytest.mark.parametrize("count", [0, 2, 6])
def test_a_block_that_is_clicked_is_the_last(opened, model, count):
    page = opened("blocks")
    page.locator(f"#unit-{count}").press("Enter")
    with blocks_of_encoder(model, count):
        expected = model.predict(TIRED.english).text
    assert page.text_content("#output") == expected
    assert page.locator("#model .unit.off").count() == 6 - count
    il = np.exp(odds(model, TIRED, count)[0])
    shown = float(re.search(r"il ([\d.]+)%", page.text_content("#model .answer"))[1])
    assert shown / 100 == pytest.approx(il, abs=0.01)


def test_columns_of_the_curve_and_buttons_choose_the_same(opened):
    page = opened("blocks")
    page.locator("#after-1").press(" ")
    one = page.text_content("#output")
    assert page.locator("#unit-1").get_attribute("aria-pressed") == "true"
    page.click("#mend")
    assert page.text_content("#output") == TIRED.french
    page.get_by_role("button", name="1", exact=True).click()
    assert page.text_content("#output") == one
    again = opened("blocks", link=page.evaluate("location.hash"))
    assert again.locator("#unit-1").get_attribute("aria-pressed") == "true"


def states(model, sentence: str, block: int, row: int) -> list[np.ndarray]:
    """What comes into a block, is read and added in it, and leaves it."""
    seen: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}

    def note(name: str):
        def keep(_module, given, output):
            seen[name] = (given[0], output[0] if isinstance(output, tuple) else output)

        return keep

    parts = model.model.encoder.blocks[block]
    names = ["self_residual", "self_attention", "feed_forward", "feed_forward_residual"]
    hooks = [getattr(parts, name).register_forward_hook(note(name)) for name in names]
    with capture(model):
        log_probabilities(model, sentence, "")
    for hook in hooks:
        hook.remove()
    found = [
        seen["self_residual"][0],
        seen["self_attention"][0],
        seen["self_attention"][1],
        seen["self_residual"][1],
        seen["feed_forward"][0],
        seen["feed_forward"][1],
        seen["feed_forward_residual"][1],
    ]
    return [each.reshape(-1, each.shape[-1])[row].numpy() for each in found]


@pytest.mark.parametrize(("block", "word", "token"), [(6, 7, IT), (3, 1, 1)])
def test_strips_are_the_states_inside_the_block(opened, model, block, word, token):
    page = opened("blocks", link=f"#blocks={block}")
    page.click(f"#word-{word}")
    shown = [[float(each.replace(",", "")) for each in row[1:]] for row in table(page, "inside")]
    np.testing.assert_allclose(shown, states(model, TIRED.english, block - 1, token), rtol=0.01, atol=0.01)


def test_the_equation_adds_up(opened, model):
    page = opened("blocks", link="#blocks=4")
    numbers = page.locator("#stop math").last.locator("mn").all_text_contents()
    came, attention, feed, leaves = (float(each.replace("−", "-")) for each in numbers[-4:])
    assert came + attention + feed == pytest.approx(leaves, abs=0.02)
    assert leaves == pytest.approx(states(model, TIRED.english, 3, IT)[-1][0], rel=0.01, abs=0.01)


def test_another_sentence_has_another_pronoun_or_none(opened):
    page = opened("blocks")
    page.fill("#typed", PLURAL)
    assert "ils" in page.text_content("#model .answer")
    page.fill("#typed", "The dog is old.")
    assert page.locator("#none").count() == 1
    assert page.locator("#inside").count() == 1
