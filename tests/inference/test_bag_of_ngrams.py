"""Bags of n-grams against sets of tuples, and their weights against the loss that they minimise, entry by entry."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest

from transduce.inference.bag_of_ngrams import MOST_TOKENS, BagOfNgrams, fit, ngrams, thinned

SIZE, END = 9, 2


def drawn(count: int, seed: int = 1, pairs: bool = False) -> list[list[int]]:
    random_ = random.Random(seed)
    rows = []
    for _ in range(count):
        row = random_.choices(range(3, SIZE), k=random_.randrange(0, 6))
        rows.append([*row, END, *random_.choices(range(3, SIZE), k=2)] if pairs else row)
    return rows


def sets(rows: list[list[int]]) -> list[set[tuple[int, ...]]]:
    """(which text of a pair, token) and (which text, token, next token)."""
    found = []
    for row in rows:
        sides, features = [[]], set()  # type: ignore[var-annotated]
        for each in row:
            if each == END:
                sides.append([])
            else:
                sides[-1].append(each)
        for side, tokens in enumerate(sides):
            features |= {(side, each) for each in tokens}
            features |= {(side, *both) for both in pairwise(tokens)}
        found.append(features)
    return found


@pytest.mark.parametrize("pairs", [False, True])
def test_ngrams_are_those_of_each_text_once(pairs: bool) -> None:
    rows = drawn(60, pairs=pairs)
    found = ngrams([np.array(row, np.int32) for row in rows], SIZE, END)
    names: dict[int, set[tuple[int, ...]]] = {}
    for text, features in enumerate(sets(rows)):
        codes = found.code_K[found.text_K == text].tolist()
        assert len(codes) == len(set(codes)) == len(features)
        for code in codes:
            names[code] = names.get(code, features) & features
    for text, features in enumerate(sets(rows)):  # equal numbers are equal n-grams
        for code in found.code_K[found.text_K == text].tolist():
            assert names[code] & features
    assert len(names) == len(set().union(*sets(rows)))


def test_it_is_the_minimum_of_its_loss() -> None:
    """The gradient of the loss at the top of the file, computed feature by feature, is 0."""
    rows, strength = drawn(40), 0.5
    labels = np.array([sum(row) % 3 for row in rows])
    weights = np.array([1.0 + (each == 1) for each in labels])
    [model] = fit(rows, labels, weights, 3, SIZE, END, [strength])
    bags_ = [set(ngrams([row], SIZE, END).code_K.tolist()) for row in rows]
    probabilities = []
    for bag in bags_:
        scores = [
            float(model.bias_C[label])
            + sum(
                float(model.weight_FC[place, label]) for place, code in enumerate(model.codes_F.tolist()) if code in bag
            )
            for label in range(3)
        ]
        total = sum(map(math.exp, scores))
        probabilities.append([math.exp(score) / total for score in scores])
    for label in range(3):
        off = [v * (p[label] - (y == label)) for v, p, y in zip(weights, probabilities, labels, strict=True)]
        assert sum(off) / 40 == pytest.approx(0, abs=1e-4)
        for place, code in enumerate(model.codes_F.tolist()):
            slope = sum(each for each, bag in zip(off, bags_, strict=True) if code in bag)
            assert (slope + float(model.weight_FC[place, label]) / strength) / 40 == pytest.approx(0, abs=1e-4)


def test_what_training_did_not_see_says_nothing() -> None:
    [model] = fit([[3], [4, 5]], np.array([0, 1]), np.ones(2), 2, SIZE, END)
    assert isinstance(model, BagOfNgrams)
    assert model.logits([[8, 7], []]).tolist() == [model.bias_C.tolist()] * 2
    assert model.predict([[3], [4, 5]]) == [0, 1]


def test_of_very_many_tokens_some_texts_are_taken() -> None:
    assert thinned(np.array([3, 4])).tolist() == [0, 1]
    assert thinned(np.full(10, MOST_TOKENS // 4)).tolist() == [0, 3, 6, 9]
