"""Counted n-grams, compared with slow loops over dictionaries."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from transduce.core.errors import InputError
from transduce.data.kneser_ney import KneserNey, _discounts

END, SIZE = 0, 7


def drawn_text(lines: int, seed: int = 3) -> list[int]:
    """Lines of 0 to 6 tokens, some far more frequent than others, each with the end token behind it."""
    rng = np.random.default_rng(seed)
    every = ((rng.zipf(1.6, rng.integers(0, 7)) - 1) % (SIZE - 1) + 1 for _ in range(lines))
    return [int(each) for line in every for each in (*line, END)]


class SlowModel:
    """The equations, one n-gram at a time."""

    def __init__(self, text: list[int], order: int) -> None:
        self.order, self.counts = order, [Counter[tuple[int, ...]]() for _ in range(order + 1)]
        for gram in self._grams(text, order):
            self.counts[len(gram)][gram] += 1
        before = [defaultdict[tuple[int, ...], set[int]](set) for _ in range(order + 1)]
        for length in range(2, order + 1):
            for gram in self.counts[length]:
                before[length - 1][gram[1:]].add(gram[0])
        for length in range(1, order):
            for gram in self.counts[length]:
                if before[length][gram]:
                    self.counts[length][gram] = len(before[length][gram])
        self.discounts = [_discounts(np.array([*each.values(), 0])) for each in self.counts]

    @staticmethod
    def _grams(text: list[int], order: int) -> list[tuple[int, ...]]:
        found, line = [], [END]
        for token in text:
            line.append(token)
            found += [tuple(line[-length:]) for length in range(1, order + 1) if length <= len(line)]
            line = [END] if token == END else line
        return found

    def probability(self, context: tuple[int, ...], token: int) -> float:
        if not any(gram[:-1] == context for gram in self.counts[len(context) + 1]):
            return self.probability(context[1:], token) if context else 1 / SIZE
        counts, values = self.counts[len(context) + 1], self.discounts[len(context) + 1]
        after = {gram: count for gram, count in counts.items() if gram[:-1] == context and count}
        discount = {gram: values[min(count, 3) - 1] for gram, count in after.items()}
        gram, total = (*context, token), sum(after.values())
        shorter = self.probability(context[1:], token) if context else 1 / SIZE
        own = (after[gram] - discount[gram]) / total if gram in after else 0.0
        return own + sum(discount.values()) / total * shorter


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("lines", [6, 400])
def test_probabilities_are_those_of_slow_loops(order: int, lines: int) -> None:
    text, asked = drawn_text(lines), drawn_text(20, seed=8)
    found, slow = KneserNey.of(text, SIZE, END, order).log_probabilities(asked), SlowModel(text, order)
    line, wanted = [END], []
    for token in asked:
        context = tuple(line[-(order - 1) :]) if order > 1 else ()
        while context and not any(gram[:-1] == context for gram in slow.counts[len(context) + 1]):
            context = context[1:]
        wanted.append(math.log(slow.probability(context, token)))
        line = [END] if token == END else [*line, token]
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_what_follows_a_context_sums_to_one() -> None:
    model = KneserNey.of(drawn_text(300), SIZE, END, 3)
    for context in ([], [1], [2, 1], [5, 6], [6, 6]):
        after = [model.log_probabilities([*context, token])[-1] for token in range(SIZE)]
        assert np.exp(after).sum() == pytest.approx(1.0, abs=1e-12)


def test_discounts_are_those_of_the_equation_or_the_usual_ones() -> None:
    counts = np.repeat([1, 2, 3, 4, 9], [40, 20, 12, 8, 5])
    ratio = 40 / (40 + 2 * 20)
    assert _discounts(counts) == pytest.approx((1 - 2 * ratio / 2, 2 - 3 * ratio * 12 / 20, 3 - 4 * ratio * 8 / 12))
    assert _discounts(np.array([1, 1, 5])) == (0.5, 1.0, 1.5)


@pytest.mark.parametrize("text", [[], [1], [END], [1, END, 1, END]])
def test_of_a_text_shorter_than_the_longest_n_grams_every_token_is_possible(text: list[int]) -> None:
    model = KneserNey.of(text, SIZE, END)
    after = [model.log_probabilities([1, token])[-1] for token in range(SIZE)]
    assert np.isfinite(after).all()
    assert np.exp(after).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("order", [1, 2, 3, 5])
@pytest.mark.parametrize("lines", [0, 6, 400])
def test_token_by_token_it_says_what_it_says_of_a_text(order: int, lines: int) -> None:
    model, asked = KneserNey.of(drawn_text(lines), SIZE, END, order), drawn_text(20, seed=8)
    whole = model.log_probabilities(asked)
    contexts_NL = model.contexts(3)
    for place, token in enumerate(asked):
        after_NV = model.after(contexts_NL)
        np.testing.assert_allclose(after_NV[:, token], whole[place], rtol=1e-9)
        np.testing.assert_allclose(np.exp(after_NV).sum(1), 1.0)
        contexts_NL = model.contexts(3) if token == END else model.extended(contexts_NL, np.full(3, token))


def test_contexts_of_different_lines_do_not_mix() -> None:
    model, lines = KneserNey.of(drawn_text(300), SIZE, END, 4), [[1, 2, 1], [2, 6, 6], [1, 1, 1]]
    contexts_NL = model.contexts(3)
    for token_N in np.array(lines).T:
        contexts_NL = model.extended(contexts_NL, token_N)
    together = model.after(contexts_NL)
    for row, line in enumerate(lines):
        alone = [model.log_probabilities([*line, token])[-1] for token in range(SIZE)]
        np.testing.assert_allclose(together[row], alone, rtol=1e-9)


@pytest.mark.parametrize("order", [1, 4])
def test_it_comes_back_from_its_arrays(order: int) -> None:
    model, asked = KneserNey.of(drawn_text(200), SIZE, END, order), drawn_text(20, seed=8)
    again = KneserNey.of_arrays(model.to_arrays(), SIZE)
    assert (again.log_probabilities(asked) == model.log_probabilities(asked)).all()
    assert (again.vocabulary, again.end, len(again.levels)) == (SIZE, END, order)


DAMAGED: dict[str, Callable[[Any], Any]] = {
    "1.key": lambda keys: keys[:-1],
    "2.key": lambda keys: keys[::-1].copy(),
    "3.key": lambda keys: keys + 10**6,
    "2.share": lambda shares: shares * np.nan,
    "3.share": lambda shares: shares[:-1],
    "1.rest": lambda rests: rests + 1,
    "2.rest": lambda rests: rests.astype(np.float32),
    "end": lambda end: end + SIZE,
    "root": lambda root: root - 2,
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_arrays_are_refused(name: str) -> None:
    arrays = KneserNey.of(drawn_text(50), SIZE, END, 3).to_arrays()
    for changed in (arrays | {name: DAMAGED[name](arrays[name])}, {key: arrays[key] for key in arrays if key != name}):
        with pytest.raises(InputError, match="n-grams are damaged"):
            KneserNey.of_arrays(changed, SIZE)
    with pytest.raises(InputError, match="of other tokens than its 9"):
        KneserNey.of_arrays(arrays, SIZE + 2)
