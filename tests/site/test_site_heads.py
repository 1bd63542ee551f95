"""Many heads: the names come from the model's own weights by the rule that the page tells."""

import re
from itertools import product

import numpy as np
import pytest
from reading import number, table

import transduce
from transduce.demo.corpus import PRONOUN_PAIR
from transduce.demo.lexicon import lexicon
from transduce.demo.pronouns import Sought, attention_by_head
from transduce.site.stops import FOLDER

TIRED = PRONOUN_PAIR[0].english
FIRST = "The dog didn't cross the river because it was too deep."
OTHER = "The old fox found the key."
SCRIPT = (FOLDER / "heads.js").read_text(encoding="utf-8")
OTHERS = re.findall(r'^    "(.+\.)",$', SCRIPT, re.MULTILINE)
WORDS = lexicon()
NOUNS = {form for noun in WORDS.nouns.values() for form in (noun.english, noun.english_plural)}
VERBS = {form.split()[0] for verb in WORDS.verbs.values() for form in (verb.english, verb.past)}
KINDS = {
    "itself": lambda word, t, s: s == t,
    "one before": lambda word, t, s: s == t - 1,
    "one behind": lambda word, t, s: s == t + 1,
    "end": lambda word, t, s: word == "</s>",
    "stops": lambda word, t, s: word in set(".,!?;:"),
    "nouns": lambda word, t, s: word.lower() in NOUNS,
    "verbs": lambda word, t, s: word.lower() in VERBS,
    "adjectives": lambda word, t, s: word.lower() in WORDS.adjectives,
    "articles": lambda word, t, s: word.lower() in ("the", "a", "an"),
    "pronouns": lambda word, t, s: word.lower() in ("it", "they"),
}


def words_of(model, sentence):
    from transduce.interpret.token_spans import end_token, read_tokens, side

    reads = model.task.tokenizers["source"]
    return side(sentence, [*read_tokens(reads, sentence), end_token(reads, sentence)]).words


def matrices(model, sentence, cut=()):
    """The words, and (layer, head) -> weights (T, S), tokens joined into words one by one."""
    words = words_of(model, sentence)
    with transduce.capture(model, cut=list(cut)) as record:
        model.predict(sentence)
    found = {}
    for layer in range(6):
        alpha_HTS = record[f"encoder.blocks.{layer}.self_attention"][0][0].numpy()
        for head in range(len(alpha_HTS)):
            joined = np.zeros((len(words), len(words)))
            for (t, one), (s, other) in product(enumerate(words), enumerate(words)):
                joined[t, s] = np.mean([sum(alpha_HTS[head, a, b] for b in other.tokens) for a in one.tokens])
            found[layer, head] = joined
    return [word.text for word in words], found


def shares(words, alpha_TS):
    """kind -> (share, chance)."""
    found = {}
    for kind, is_one in KINDS.items():
        rows = []
        for t in range(len(words)):
            places = [s for s, word in enumerate(words) if is_one(word, t, s)]
            if places:
                rows.append((alpha_TS[t, places].sum(), len(places) / len(words)))
        found[kind] = tuple(np.mean(rows, 0)) if rows else (0.0, 0.0)
    return found


def name(found):
    passing = [kind for kind, (share, chance) in found.items() if share >= 0.15 and share >= 2 * chance]
    return max(passing, key=lambda kind: found[kind][0]) if passing else "mixed"


@pytest.fixture(scope="module")
def others(stored):
    assert len(OTHERS) == 8
    return [matrices(stored, sentence) for sentence in OTHERS]


def edge(found):
    """Whether a rounding error could give another name."""
    near = [abs(share - limit) for share, chance in found.values() for limit in (0.15, 2 * chance)]
    return min(near) < 2e-3


@pytest.mark.parametrize("sentence", [TIRED, "The frogs ate the big mushrooms, but they were too salty."])
def test_heads_are_named_by_the_rule(opened, stored, others, sentence):
    page = opened("heads")
    page.fill("#typed", sentence)
    words, alpha = matrices(stored, sentence)
    rows = table(page, "heads")
    assert len(rows) == 24
    for row in rows:
        layer, head = (int(each) - 1 for each in row[0].split("."))
        found = shares(words, alpha[layer, head])
        if edge(found):
            continue
        assert row[1] == name(found), row
        if row[1] == "mixed":
            continue
        assert number(row[2]) == pytest.approx(100 * found[row[1]][0], abs=0.6)
        assert number(row[3]) == pytest.approx(100 * found[row[1]][1], abs=0.6)
        elsewhere = [shares(*(each[0], each[1][layer, head])) for each in others]
        told = [each[row[1]] for each in elsewhere if each[row[1]][1]]
        assert number(row[4]) == pytest.approx(100 * np.mean([share for share, _ in told]), abs=0.6)
        if not any(map(edge, elsewhere)):
            assert row[5] == f"{sum(name(each) == row[1] for each in elsewhere)} / 8"


def test_words_are_joined_as_elsewhere(stored):
    words, alpha = matrices(stored, TIRED)
    at = words.index("it")
    for head, [look] in attention_by_head(stored, [Sought(TIRED, "it", "animal")]).items():
        np.testing.assert_allclose(alpha[tuple(head)][at], look.weights, atol=1e-6)


def test_another_sentence_gives_other_shares(opened):
    page = opened("heads")
    before = table(page, "heads")
    page.fill("#typed", OTHER)
    after = table(page, "heads")
    assert [row[2] for row in before] != [row[2] for row in after]
    assert {row[5].split(" / ")[1] for row in after} == {"7"}, "a sentence is not compared with itself"


def test_a_tile_is_chosen(opened, stored):
    page = opened("heads")
    page.click("#tile-1-2")
    assert page.text_content("#told").startswith("Layer 2, head 3:")
    words, alpha = matrices(stored, FIRST)
    shown = [[number(cell) for cell in row[1:]] for row in table(page, "head")]
    np.testing.assert_allclose(shown, alpha[1, 2], atol=2e-3)
    found = shares(words, alpha[1, 2])
    rule = {row[0]: number(row[1].replace("<", "")) for row in table(page, "rule")}
    assert {*rule} == {*KINDS}
    for kind, (share, _) in found.items():
        assert rule[kind] == pytest.approx(100 * share, abs=0.6)


def test_keys_walk_between_the_tiles(opened):
    page = opened("heads", link="#layer=1&head=2")
    page.focus("#tile-1-2")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tile-2-3"
    assert page.text_content("#told").startswith("Layer 3, head 4:")
    assert page.get_attribute("#tile-2-3", "aria-checked") == "true"


def test_heads_are_switched_off_inside_the_model(opened, stored):
    page = opened("heads", link="#layer=1&head=2")
    assert page.text_content("#whole") == stored.predict(FIRST).text
    page.click("#switch")
    cut = [transduce.Place("encoder.blocks.1.self_attention", head=2)]
    with transduce.capture(stored, cut=cut):
        assert page.text_content("#without") == stored.predict(FIRST).text
    assert "all its weights are 0" in page.text_content("#told")
    _, alpha = matrices(stored, FIRST, cut)
    page.click("#tile-3-3")  # a later head, which now reads something else
    shown = [[number(cell) for cell in row[1:]] for row in table(page, "head")]
    np.testing.assert_allclose(shown, alpha[3, 3], atol=2e-3)
    page.click("#restore")
    assert page.locator("#without").count() == 0


def test_all_heads_of_a_name_are_switched_off(opened, stored):
    page = opened("heads")
    rows = table(page, "heads")
    place = next(place for place, row in enumerate(rows) if row[1] == "adjectives")
    page.click("[data-figure='heads']")  # the picture again
    page.click(f"#tile-{place // 4}-{place % 4}")
    alike = [tuple(int(each) - 1 for each in row[0].split(".")) for row in rows if row[1] == "adjectives"]
    assert len(alike) > 1
    page.click("#alike")
    assert page.evaluate("Transduce.state().off") == "_".join(f"{layer}.{head}" for layer, head in alike)
    assert page.text_content("#without") == without(stored, alike)


def without(model, heads):
    """The translation with these heads of the encoder cut."""
    cut = [transduce.Place(f"encoder.blocks.{layer}.self_attention", head=head) for layer, head in heads]
    with transduce.capture(model, cut=cut):
        return model.predict(FIRST).text


def test_without_any_head_the_pronoun_is_lost(opened, stored):
    page = opened("heads")
    page.click("#everything")
    expected = without(stored, list(product(range(6), range(4))))
    assert page.text_content("#without") == expected != page.text_content("#whole")
    assert all(row[1] == "off" for row in table(page, "heads"))
