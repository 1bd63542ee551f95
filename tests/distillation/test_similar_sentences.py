"""Sentences like given ones: how tokens are replaced, and which translations are not learnt from."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import transduce
from transduce.data.tokenizers.tokenizer import UnitsConfig, train_tokenizer
from transduce.distillation.similar_sentences import (
    TEMPERATURE,
    SimilarSentences,
    _corrected,
    _form,
    _repeats,
    _Similar,
)

STEPS = 4_000


def test_a_token_is_replaced_by_similar_ones(tiny_run: Path) -> None:
    """The first replacement of each token against the softmax of cosines, by hand."""
    model = transduce.load(tiny_run)
    tokenizer = model.task.tokenizers["source"]
    texts = tokenizer.tokens(range(tokenizer.size))
    weight = model.model.source_embedding.weight.detach().double().numpy()

    def cosine(one: str, other: str) -> float:
        a, b = weight[texts.index(one)], weight[texts.index(other)]
        return float(a @ b / math.sqrt((a @ a) * (b @ b)))

    words = [text for text in texts if text.isalnum()]  # one vocabulary for both sides
    chances = {other: math.exp(cosine("7", other) / TEMPERATURE) for other in words if other != "7"}
    similar, random = _Similar(model), np.random.default_rng(1)
    found = Counter[str]()
    for _ in range(STEPS):
        text, before, after = similar.to("7 7", random)
        first, second = text.split()
        assert (first == "7") != (second == "7")
        assert texts[before] == "7" and texts[after] in (first, second)
        found[texts[after]] += 1
    assert found.keys() <= chances.keys()
    for other, chance in chances.items():
        share = chance / sum(chances.values())
        assert found[other] / STEPS == pytest.approx(share, abs=4 * math.sqrt(share / STEPS))


def test_what_could_be_replaced_is_replaced_again(tiny_run: Path) -> None:
    similar, random = _Similar(transduce.load(tiny_run)), np.random.default_rng(1)
    tokenizer = transduce.load(tiny_run).task.tokenizers["source"]
    (seven, one, two), before = tokenizer.encode(["7 1 2"])[0], Counter[int]()
    for _ in range(20):
        similar.learn(seven, two, taken=True)
        similar.learn(one, two, taken=False)
    for _ in range(2000):
        _, token, other = similar.to("7 1", random)
        before[token] += 1
        if token == seven:
            before[-other] += 1
    assert before[seven] / 2000 == pytest.approx((21 / 22) / (21 / 22 + 1 / 22), abs=0.03)
    assert before[-two] / before[seven] > 0.45


@pytest.mark.parametrize(("token", "other"), [("▁a", "▁b"), ("Ġa", "Ġb1"), ("a", "b"), ("##a", "##b"), (",", "▁.")])
def test_tokens_of_one_form(token: str, other: str) -> None:
    assert _form(token) == _form(other)


def test_tokens_of_other_forms_are_told_apart() -> None:
    assert len({_form(each) for each in ("▁a", "a", "##a", "▁,")}) == 4


def test_what_new_targets_correct_is_not_learnt_again() -> None:
    wrong = _corrected("il a suivi la rue hier", "il a suivi l'avenue hier")
    assert wrong == [["la", "rue"]]
    assert _repeats("elle voit la rue", wrong)
    assert not _repeats("elle voit la grande rue", wrong) and not _repeats("la porte", wrong)
    assert _corrected("le chat", "le chat dort") == [] and not _repeats("le chat", [])


def test_a_step_is_taken_that_changes_the_output_and_leaves_the_model_sure(tiny_run: Path) -> None:
    model = transduce.load(tiny_run)
    walks = SimilarSentences(model, [("1 2 3", "three two one")], 1)
    (begun,), (found,) = walks._begun, model.predict(["1 2 3"], method="greedy", min_length=3)
    sure = replace(found, text="four words are here", ended=True, token_log_probabilities=(walks._least,) * 3)
    for step, taken in (
        (sure, True),
        (replace(sure, text=begun.target), False),
        (replace(sure, ended=False), False),
        (replace(sure, token_log_probabilities=(walks._least - 0.1,) * 3), False),
    ):
        assert walks._is_taken(begun, step) is taken
    longer = begun._replace(target="one two three four five")
    assert not walks._is_taken(longer, sure)


def test_walks_need_a_sentence(tiny_run: Path) -> None:
    assert SimilarSentences(transduce.load(tiny_run), [("  ", "x")], 1).pairs(5, 5, lambda done: None) == ([], [])


def test_characters_are_of_one_form() -> None:
    tokenizer = train_tokenizer(UnitsConfig(kind="character", vocabulary=50), ["abc, äö"])
    forms = {_form(each) for each in tokenizer.tokens(tokenizer.encode(["abcäö"])[0])}
    assert forms == {1}
