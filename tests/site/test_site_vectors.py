"""Words become vectors: embeddings and positions are the model's own; without positions, order does not count."""

import numpy as np
import pytest
import torch
from reading import number, slide, table

import transduce
from transduce.core.padded import Padded

OWN, SWAPPED = "The dog followed the cat.", "The cat followed the dog."
ORDER = [0, 4, 2, 3, 1, 5, 6]


def closed(model, text):
    source = model.task.columns["source"]
    return list(source.closed(source.encode([text])[0]))


def one(ids):
    return Padded(torch.tensor([ids]), torch.tensor([len(ids)]))


def encoded(model, ids, positions):
    with torch.inference_mode(), transduce.capture(model, positions=positions):
        return model.model.encode(one(ids)).values[0].numpy()


def changes(model, ids, order, positions=True):
    """How far each token's output moved, as a share of its length, by place."""
    own = encoded(model, ids, positions)
    now = encoded(model, [ids[at] for at in order], positions)
    return [np.linalg.norm(now[to] - own[at]) / np.linalg.norm(own[at]) for to, at in enumerate(order)]


def translated(model, ids, positions):
    """Greedily, by the model's own steps; only the encoder's positions are switched."""
    target = model.task.columns["target"]
    with torch.inference_mode():
        with transduce.capture(model, positions=positions):
            memory, state = model.model.start(one(ids), 1)
        said = [target.start]
        while len(said) < 40 and said[-1] != target.tokenizer.end:
            row, state = model.model.step(torch.tensor(said[-1:]), memory, state)
            row[0, [target.tokenizer.pad, target.tokenizer.start, target.tokenizer.unknown]] = -torch.inf
            said.append(int(row[0].argmax()))
    return target.tokenizer.decode(said[1:-1])


def shown(page):
    """The change of each token, by its place."""
    return [number(row[3]) / 100 for row in table(page, "order")]


def test_sum_of_embedding_and_position(opened, stored):
    page = opened("vectors", link="#order=" + "_".join(map(str, ORDER)))
    rows = table(page, "vectors")
    ids = closed(stored, SWAPPED)
    assert [int(row[1]) for row in rows[::3]] == ids
    numbers = np.array([[number(cell) for cell in row[3:]] for row in rows]).reshape(len(ids), 3, -1)
    table_VD = stored.model.source_embedding.weight.detach().numpy()
    size = table_VD.shape[1]
    angles = np.arange(len(ids))[:, None] / 10_000 ** (2 * np.arange(size // 2) / size)
    positions = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(len(ids), size)
    embeddings = table_VD[ids] * size**0.5
    for place, expected in enumerate((embeddings, positions, embeddings + positions)):
        np.testing.assert_allclose(numbers[:, place], expected, rtol=6e-3, atol=2e-3)


def test_two_words_change_places(opened, stored):
    page = opened("vectors")
    assert shown(page) == [0] * 7
    page.click("#word-1")
    assert "“dog” swaps places" in page.text_content("#hint")
    page.focus("#word-4")
    page.keyboard.press("Enter")
    ids = closed(stored, OWN)
    assert [ids[at] for at in ORDER] == closed(stored, SWAPPED)
    np.testing.assert_allclose(shown(page), changes(stored, ids, ORDER), rtol=0.06, atol=1e-3)
    assert min(shown(page)) > 0.001
    assert "7 of 7 tokens changed" in page.text_content("#told")
    assert page.text_content("#own") == stored.predict(OWN).text
    assert page.text_content("#now") == stored.predict(SWAPPED).text != page.text_content("#own")
    page.click("#back")
    assert shown(page) == [0] * 7


def test_without_positions_only_the_order_of_the_outputs_changes(opened, stored):
    page = opened("vectors", link="#order=" + "_".join(map(str, ORDER)))
    page.uncheck("#positions")
    ids = closed(stored, OWN)
    assert max(changes(stored, ids, ORDER, positions=False)) < 1e-5
    assert max(shown(page)) < 1e-5
    assert "of 7 outputs, 0 changed" in page.text_content("#told")
    swapped = [ids[at] for at in ORDER]
    assert page.text_content("#own") == page.text_content("#now") == translated(stored, ids, False)
    assert translated(stored, swapped, False) == translated(stored, ids, False)
    assert page.text_content("#own") != stored.predict(OWN).text
    rows = table(page, "vectors")
    assert {cell for row in rows[1::3] for cell in row[3:]} == {"0"}
    page.check("#positions")
    assert page.text_content("#now") == translated(stored, swapped, True)


def test_a_sentence_of_ones_own_is_shuffled(opened, stored):
    page = opened("vectors")
    page.fill("#typed", "The old fox found the key because it was very curious.")
    count = len(closed(stored, "The old fox found the key because it was very curious."))
    page.click("#shuffle")
    order = [int(each) for each in page.evaluate("Transduce.state().order").split("_")]
    assert sorted(order) == list(range(count)) != order
    assert order[-1] == count - 1, "the end stays the end"
    ids = closed(stored, "The old fox found the key because it was very curious.")
    np.testing.assert_allclose(shown(page), changes(stored, ids, order), rtol=0.06, atol=1e-3)
    page.uncheck("#positions")
    assert max(shown(page)) < 1e-5


def test_the_clock_shows_the_angles_of_a_position(opened):
    page = opened("vectors")
    for position in (1, 17, 63):
        slide(page, "position", position)
        angles = position / 10_000 ** (2 * np.arange(48) / 96)
        rows = [[number(cell) for cell in row[1:]] for row in table(page, "clock")]
        np.testing.assert_allclose(rows, np.stack([angles, np.sin(angles), np.cos(angles)], 1), rtol=6e-3, atol=6e-4)
    hands = "[...document.querySelectorAll('.dial-hand')].map((each) => each.getAttribute('x2')).join()"
    page.locator("[data-figure='clock']").click()
    before = page.evaluate(hands)
    slide(page, "position", 3)
    assert page.evaluate(hands) != before


@pytest.mark.parametrize("still", [False, True])
def test_hands_move_when_one_says_so(opened, still):
    page = opened("vectors", still=still)
    hand = "document.querySelector('.dial-hand').getAttribute('x2')"
    before = page.evaluate(hand)
    page.wait_for_timeout(500)
    assert page.evaluate(hand) == before
    page.click("#turn")
    page.wait_for_function(f"{hand} !== '{before}'")
    page.wait_for_function("Number(document.querySelector('#position').value) >= 3")
    page.click("#turn")
    assert int(page.evaluate("Transduce.state().position")) >= 3
    at = page.evaluate(hand)
    page.wait_for_timeout(500)
    assert page.evaluate(hand) == at


def test_dot_products_of_positions(opened):
    page = opened("vectors")
    shown = np.array([[number(cell) for cell in row[1:]] for row in table(page, "dots")])
    apart = np.arange(24)
    expected = np.cos(apart[:, None] / 10_000 ** (2 * np.arange(48) / 96)).sum(1)
    np.testing.assert_allclose(shown[0, 1:], expected[1:], rtol=6e-3)
    assert shown.diagonal().tolist() == [0] * 24
    assert [shown[3 + away, 3] for away in (1, 2, 5)] == [shown[0, away] for away in (1, 2, 5)]
    grows = next(away for away in apart[1:] if expected[away + 1] > expected[away])
    assert f"From distance {grows} to {grows + 1} it grows" in page.text_content("#question")
