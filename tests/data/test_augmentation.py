"""Pairs that teach placeholders and terms, beside words that are known to translate each other."""

import re
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

from transduce.data.augmentation import Augmented, Augmenter
from transduce.data.placeholders import (
    NAME,
    NAMES,
    TERM_MARKS,
    has_placeholders,
    replaced,
    shared_parts,
    with_placeholders,
)
from transduce.data.tags import tags_of
from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.data.word_alignment import WordAligner

NOUNS = {
    "house": "maison", "car": "voiture", "tree": "arbre", "boat": "bateau", "horse": "cheval", "garden": "jardin",
    "window": "fenêtre", "street": "rue", "flower": "fleur", "castle": "château", "bridge": "pont",
    "kitchen": "cuisine", "pencil": "crayon", "bottle": "bouteille",
}  # fmt: skip
COLOURS = {
    "red": "rouge", "green": "verte", "white": "blanche", "black": "noire", "yellow": "jaune", "brown": "brune",
    "golden": "dorée", "purple": "pourpre", "heavy": "lourde", "small": "petite", "broken": "cassée", "sweet": "sucrée",
}  # fmt: skip
ENGLISH, SHADES = [*NOUNS], [*COLOURS]
PAIRS = [(f"the {c} {n} here", f"la {NOUNS[n]} {COLOURS[c]} ici") for n in NOUNS for c in COLOURS]
TRANSLATED = NOUNS | COLOURS


@cache
def aligner() -> WordAligner:
    return WordAligner.learnt(PAIRS)


def changed(placeholders: float, terms: float, seed: int = 1) -> list[tuple[str, str]]:
    change = Augmenter(aligner, "these pairs", Augmented(placeholders, terms), seed).begun()
    return [change(*pair) for pair in PAIRS]


def test_words_that_translate_each_other_are_linked() -> None:
    for source, target in PAIRS:
        linked = [
            (source[slice(*link.source)], target[slice(*link.target)]) for link in aligner().links(source, target)
        ]
        assert linked == [(word, TRANSLATED[word]) for word in source.split()[1:3]]  # not "the", which is everywhere


def test_characters_of_chinese_are_linked_to_a_word_together() -> None:
    names = [a + b for a, b in zip("小猫飞金奶老白青骆狮山海", "狗咪鸟鱼牛虎兔蛙驼王羊豚", strict=True)]
    deeds = [a + b for a, b in zip("跑睡唱吃游读写开喝打跳洗", "步觉歌饭泳书字车水球舞澡", strict=True)]
    animals, verbs = (dict(zip(both[0], both[1], strict=True)) for both in ((ENGLISH[:12], names), (SHADES, deeds)))
    pairs = [(f"a {a} {v}", f"一{animals[a]}在{verbs[v]}") for a in animals for v in verbs]
    found = WordAligner.learnt(pairs).links("a house white", "一小狗在唱歌")
    linked = [("a house white"[slice(*link.source)], "一小狗在唱歌"[slice(*link.target)]) for link in found]
    assert linked == [("house", "小狗"), ("white", "唱歌")]


def test_placeholders_stand_for_words_that_translate_each_other() -> None:
    replaced = 0
    for (source, target), (own, other) in zip(PAIRS, changed(0.9, 0.0), strict=True):
        numbers = NAME.findall(own)
        assert sorted(numbers) == sorted(NAME.findall(other))  # each is copied
        assert len({*numbers}) == len(numbers)
        words = source.split()
        for place, word in enumerate(own.split()[: len(words)]):
            if NAME.fullmatch(word) and len(own.split()) == len(words):
                replaced += 1
                hidden = [was for now, was in zip(other.split(), target.split(), strict=True) if now == word]
                assert hidden == [TRANSLATED[words[place]]]
                assert len(target.split()) == len(other.split())
    assert replaced > 20


def test_terms_are_annotated_with_their_translations() -> None:
    found = 0
    for (source, target), (own, other) in zip(PAIRS, changed(0.0, 0.9), strict=True):
        assert other == target
        terms = re.findall(r"⟦term⟧ (\S+) ⟦as⟧ (\S+) ⟦end⟧", own)
        assert re.sub(r"⟦term⟧ (\S+) ⟦as⟧ \S+ ⟦end⟧", r"\1", own) == source
        assert all(TRANSLATED[word] == given for word, given in terms)
        found += len(terms)
    assert found > 100


def test_half_of_the_terms_are_given_in_another_form() -> None:
    forms, rest = ["Hund", "Hunde", "Hunden"], [pair for pair in PAIRS if "house" not in pair[0]]
    pairs = [(f"the {colour} dog", f"la {form} {COLOURS[colour]}") for colour in SHADES for form in forms]
    learnt = WordAligner.learnt(pairs + rest * 3)
    assert {*learnt.forms("dog", "Hunde")} == {"hund", "hunden"}
    change = Augmenter(lambda: learnt, "", Augmented(0.0, 0.99), 1).begun()
    given = [
        (re.search(r"dog ⟦as⟧ (\S+)", change(*pair)[0]), pair[1].split()[1]) for pair in pairs * 20 if "dog" in pair[0]
    ]
    same = [found[1] == form for found, form in given if found]
    assert 0.3 < np.mean(same) < 0.7
    assert all(found[1] in forms for found, _ in given if found)


def test_the_share_of_changed_pairs_is_the_one_asked_for() -> None:
    many = [pair for seed in range(1, 8) for pair in changed(0.2, 0.0, seed)]
    assert np.mean([NAME.search(source) is not None for source, _ in many]) == pytest.approx(0.2, abs=0.03)


def test_the_same_seed_gives_the_same_and_none_changes_nothing() -> None:
    assert changed(0.5, 0.5) == changed(0.5, 0.5)
    assert changed(0.5, 0.5) != changed(0.5, 0.5, seed=2)
    assert changed(0.5, 0.5, seed=0) == PAIRS


def test_what_stands_in_both_texts_becomes_a_placeholder() -> None:
    source, target = shared_parts("Call 555-1234 at 9:30 or 555-1234.", "Um 9:30: 555-1234 anrufen.")
    assert source == [(5, 13), (17, 21)]
    assert [("Um 9:30: 555-1234 anrufen.")[a:b] for a, b in target] == ["555-1234", "9:30"]
    assert replaced("Call 555-1234 at 9:30.", [(17, 21, "⟦2⟧"), (5, 13, "⟦1⟧")]) == "Call ⟦1⟧ at ⟦2⟧."


def tokenizers() -> Iterator[Tokenizer]:
    for kind in ("bpe", "unigram", "whitespace", "character", "byte"):
        yield train_tokenizer(TokenizerConfig(kind=kind, vocabulary=300), [text for pair in PAIRS for text in pair])


def test_tokenizers_keep_placeholders_and_the_spaces_around_them() -> None:
    texts = ["the ⟦1⟧ house", "⟦1⟧ here", "the ⟦2⟧ ⟦1⟧", "house ⟦9⟧"]
    for tokenizer in tokenizers():
        assert not has_placeholders(tokenizer)
        taught = Tokenizer.from_json(with_placeholders(tokenizer, [*NAMES, *TERM_MARKS]).to_json())
        assert has_placeholders(taught)
        assert [taught.decode(ids) for ids in taught.encode(texts)] == texts
        assert tags_of(taught) == []  # none says which language to write
        ids = taught.encode(["the house"])[0]
        assert ids == tokenizer.encode(["the house"])[0]


def test_pieces_of_words_keep_what_touches_a_placeholder() -> None:
    for tokenizer in [*tokenizers()][:2]:
        taught = with_placeholders(tokenizer, NAMES)
        for text in ("house⟦1⟧here", "the ⟦1⟧⟦2⟧ car"):
            assert taught.decode(taught.encode([text])[0]) == text
