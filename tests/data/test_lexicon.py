"""IBM model 1 against a slow loop of its equations and the textbook's corpus, and the lexicon made from it."""

import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from transduce.data import lexicon
from transduce.data.lexicon import Lexicon, LinkedPairs, learn, read_links, translation_table
from transduce.data.store import Store, write_store

Sentences = list[tuple[list[int], list[int]]]


def as_pairs(sentences: Sentences) -> LinkedPairs:
    flat = [np.array([token for pair in sentences for token in pair[side]], np.int64) for side in (0, 1)]
    lengths = [np.array([len(pair[side]) for pair in sentences], np.int64) for side in (0, 1)]
    return LinkedPairs(*flat, *lengths, len(sentences))


def slow_table(sentences: Sentences, sizes: tuple[int, int], iterations: int) -> dict[tuple[int, int], float]:
    """The equations of Brown et al. 1993, one link after the other."""
    with_null = [([sizes[0], *source], target) for source, target in sentences]
    t: dict[tuple[int, int], float] = defaultdict(lambda: 1 / sizes[1])
    for _ in range(iterations):
        count: dict[tuple[int, int], float] = defaultdict(float)
        total: dict[int, float] = defaultdict(float)
        for source, target in with_null:
            for f in target:
                norm = sum(t[e, f] for e in source)
                for e in source:
                    count[e, f] += t[e, f] / norm
                    total[e] += t[e, f] / norm
        t = defaultdict(float, {(e, f): value / total[e] for (e, f), value in count.items()})
    return dict(t)


def drawn(seed: int, count: int = 40, sizes: tuple[int, int] = (9, 11)) -> Sentences:
    pick = random.Random(seed)
    sides = [[pick.choices(range(size), k=pick.randint(1, 7)) for _ in range(count)] for size in sizes]
    return list(zip(*sides, strict=True))


@pytest.mark.parametrize("at_once", [1, 60, 10**6])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_slow_loop(seed: int, at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexicon, "AT_ONCE", at_once)
    sizes, sentences = (9, 11), drawn(seed)
    code_U, t_U = translation_table(as_pairs(sentences), sizes, 4)
    mine = {(int(code) // sizes[1], int(code) % sizes[1]): t for code, t in zip(code_U, t_U.tolist(), strict=True)}
    assert mine == pytest.approx(slow_table(sentences, sizes, 4), rel=1e-9)


def test_das_haus_is_the_house() -> None:
    das, haus, buch, ein = range(4)
    the, house, book, a = range(4)
    sentences = [([das, haus], [the, house]), ([das, buch], [the, book]), ([ein, buch], [a, book])]
    found = learn(as_pairs(sentences), (4, 4), 2, 4)
    assert found.candidates_SC[:, 0].tolist() == [the, house, book, a]
    code_U, t_U = translation_table(as_pairs(sentences), (4, 4), 50)
    best = dict(zip(code_U.tolist(), t_U.tolist(), strict=True))
    assert all(best[4 * e + f] > 0.95 for e, f in [(das, the), (buch, book)])
    assert found.frequent_F.tolist() == [the, book, house, a], "of equally frequent ones the lower first"


def test_candidates_come_by_probability_and_nothing_fills_up() -> None:
    sizes, sentences = (10, 11), drawn(5)  # source id 9 never occurs
    found, table = learn(as_pairs(sentences), sizes, 8, 3), slow_table(sentences, sizes, lexicon.ITERATIONS)
    for e in range(10):
        row = found.candidates_SC[e].tolist()
        words = [f for f in row if f >= 0]
        assert row == words + [-1] * (8 - len(words))
        values = sorted((t for (source, _), t in table.items() if source == e), reverse=True)[:8]
        assert [table[e, f] for f in words] == pytest.approx(values)
    counts = np.bincount([f for _, target in sentences for f in target])
    assert sorted(counts[found.frequent_F]) == sorted(counts)[-3:]


def test_of_equally_likely_ones_the_lower_comes_first() -> None:
    found = learn(as_pairs([([0], [3, 1, 2]), ([1], [4, 0])]), (2, 5), 3, 1)
    assert found.candidates_SC.tolist() == [[1, 2, 3], [0, 4, -1]]


def test_a_word_that_never_occurs_is_not_frequent() -> None:
    assert learn(as_pairs([([0], [3, 1, 3])]), (1, 5), 1, 4).frequent_F.tolist() == [3, 1]


def test_what_is_allowed() -> None:
    found = Lexicon(np.array([[4, 5, 6], [7, -1, -1], [2, 4, -1]], np.int32), np.array([1, 0, 3], np.int32))
    allowed_BV = found.allowed([[0, 1], [2]], 2, 1, 9)
    assert [np.flatnonzero(row).tolist() for row in allowed_BV] == [[1, 4, 5, 7], [1, 2, 4]]


def stored(path: Path, sentences: Sentences) -> Store:
    examples = [{"source": source, "target": target} for source, target in sentences]
    write_store(path, examples, {"source": 9, "target": 11}, {})
    return Store(path)


def test_stores_are_read_whole_or_by_lot(tmp_path: Path) -> None:
    parts = drawn(1, 5000), drawn(2, 30)
    stores = [stored(tmp_path / f"{number}.arrow", part) for number, part in enumerate(parts)]
    whole, expected = read_links(stores), as_pairs(parts[0] + parts[1])
    for field in ("source", "target", "source_length_N", "target_length_N", "of"):
        assert np.array_equal(getattr(whole, field), getattr(expected, field))
    links = int(((expected.source_length_N + 1) * expected.target_length_N).sum())
    some = read_links(stores, links // 3)
    used = int(((some.source_length_N + 1) * some.target_length_N).sum())
    assert links // 3 - 56 <= used <= links // 3, "as many as there is room for"
    assert some.of == 5030
    same = [stored(tmp_path / "same.arrow", [([1], [2])] * 3)]  # 2 links each
    assert [len(read_links(same, most)) for most in (3, 4, 5, 6)] == [1, 2, 2, 3]
    assert len(some.source) == some.source_length_N.sum()
    again, other = read_links(stores, links // 3), read_links(stores, links // 3, seed=1)
    assert np.array_equal(some.source, again.source)
    assert not np.array_equal(some.source[:100], other.source[:100])
