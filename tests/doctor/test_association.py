"""Word association, against slow loops and numpy's own decomposition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.doctor.association import (
    count_together,
    embed,
    leading_singular_vectors,
    vocabulary,
)
from transduce.doctor.evidence import logistic_regression
from transduce.doctor.words import WordCollector, WordStatistics, buckets

LINES = st.lists(st.sets(st.integers(0, 6), max_size=5), min_size=1, max_size=8)


def words_of(lines: list[set[int]]) -> WordStatistics:
    ends = np.cumsum([0, *map(len, lines)]).astype(np.int64)
    return WordStatistics(ends, np.array([word for line in lines for word in sorted(line)], np.uint16))


@given(source=LINES, target=LINES, data=st.data())
def test_counts_equal_a_slow_loop(source: list[set[int]], target: list[set[int]], data: st.DataObject) -> None:
    pairs = data.draw(st.lists(st.tuples(st.integers(0, len(source) - 1), st.integers(0, len(target) - 1)), max_size=8))
    slow = np.zeros((7, 7))
    for line, partner in pairs:
        for v in source[line]:
            for w in target[partner]:
                slow[v, w] += 1
    rows, partners = np.array(pairs, np.int64).reshape(-1, 2).T
    fast = count_together(words_of(source), words_of(target), rows, partners, (7, 7))
    assert np.array_equal(fast, slow)


@given(lines=LINES, first=st.integers(0, 7))
def test_a_line_is_the_unit_sum_of_its_words(lines: list[set[int]], first: int) -> None:
    vectors = np.random.default_rng(0).normal(size=(7, 4)).astype(np.float32)
    first = min(first, len(lines))
    lines_LD = embed(words_of(lines), vectors, first, len(lines))
    for row, line in zip(lines_LD, lines[first:], strict=True):
        total = vectors[sorted(line)].sum(axis=0)
        assert np.allclose(row, total / max(float(np.linalg.norm(total)), 1e-9), atol=1e-5)


def test_leading_singular_vectors_equal_the_full_decomposition() -> None:
    dice = np.random.default_rng(1)
    matrix_VW = (dice.normal(size=(60, 5)) @ np.diag([9, 7, 5, 3, 1]) @ dice.normal(size=(5, 40))).astype(np.float32)
    left, values, right = leading_singular_vectors(matrix_VW, 5)
    assert np.allclose(values, np.linalg.svd(matrix_VW)[1][:5], rtol=1e-4)
    assert np.allclose(left @ np.diag(values) @ right.T, matrix_VW, atol=1e-3)


def test_telling_words_are_neither_rare_nor_everywhere() -> None:
    collector = WordCollector()
    for line in range(10):
        collector.add(f"everywhere half{line % 2} rare{line}")
    assert vocabulary(collector.words()).per_line().tolist() == [1] * 10


def test_words_of_many_scripts() -> None:
    assert len(buckets("The the THE. the")) == 2
    assert buckets("nationality") == buckets("nationalities")
    assert len(buckets("日本語です。")) == 6
    assert buckets("日本") == [*buckets("日"), *buckets("本")]
    assert buckets("") == buckets(" \t\u3000") == []


def test_logit_is_the_log_likelihood_ratio() -> None:
    """For two normals with means 1 and -1 and variance 1 it is 2x, whatever the class sizes."""
    dice = np.random.default_rng(2)
    features = [np.stack([np.ones(n), dice.normal(mean, 1, n)], axis=1) for n, mean in ((40_000, 1), (8_000, -1))]
    assert logistic_regression(*features) == pytest.approx([0, 2], abs=0.06)
