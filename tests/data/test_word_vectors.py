"""Word vectors against slow loops of their equations and numpy's decomposition, and on pairs that everyone can read."""

import math
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from test_lexicon import Sentences, as_pairs, drawn, slow_table

from transduce.data.files import read_lines
from transduce.data.word_vectors import REACH, SMOOTHING, WordVectors, mixed, mutual_information, word_vectors


def slow_mutual_information(sentences: list[list[int]], size: int) -> np.ndarray:
    """PPMI with smoothed contexts (Levy et al. 2015, equations 3 and 6), one neighbour after the other."""
    count: Counter[tuple[int, int]] = Counter()
    for words in sentences:
        for place, word in enumerate(words):
            for other, context in enumerate(words):
                if 0 < abs(place - other) <= REACH:
                    count[word, context + (size if other > place else 0)] += 1 / abs(place - other)
    whole = sum(count.values())
    of_word, of_context = Counter(), Counter()
    for (word, context), times in count.items():
        of_word[word] += times
        of_context[context] += times
    smooth = sum(times**SMOOTHING for times in of_context.values())
    found = np.zeros((size, 2 * size))
    for (word, context), times in count.items():
        chance = of_word[word] / whole * of_context[context] ** SMOOTHING / smooth
        found[word, context] = max(0.0, math.log(times / whole / chance))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_mutual_information_is_the_slow_loop(seed: int) -> None:
    sentences = [target for _, target in drawn(seed)]
    pairs = as_pairs([([0], target) for target in sentences])
    mine = mutual_information(pairs.target, pairs.target_length_N, 11).to_dense().numpy()
    wanted = slow_mutual_information(sentences, 11)
    assert (wanted > 0).any() and (wanted == 0).any()
    np.testing.assert_allclose(mine, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("width", [3, 8, 40])
def test_vectors_are_the_decomposition_and_a_source_word_is_its_translations(width: int) -> None:
    sizes, sentences = (9, 11), drawn(1)
    source, target = word_vectors(as_pairs(sentences), sizes, width)
    left, values, _ = np.linalg.svd(slow_mutual_information([each for _, each in sentences], 11))
    rows = left[:, :width] * np.sqrt(values[: min(width, 11)])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    # Each axis may point either way: only the angles between words are given.
    cosine = (target.rows_VW @ target.rows_VW.T).numpy()
    np.testing.assert_allclose(cosine, rows @ rows.T, atol=1e-4)
    translated = np.zeros((9, width), np.float32)
    for (e, f), t in slow_table(sentences, sizes, 5).items():
        if e < 9:
            translated[e] += t * target.rows_VW[f].numpy()
    translated /= np.linalg.norm(translated, axis=1, keepdims=True)
    np.testing.assert_allclose(source.rows_VW.numpy(), translated, atol=1e-5)
    assert target.rows_VW.shape == (11, width)


def test_the_same_twice_whatever_was_drawn_before() -> None:
    pairs = as_pairs(drawn(2))
    first = word_vectors(pairs, (9, 11), 4)
    torch.rand(7)
    before = torch.random.get_rng_state()
    again = word_vectors(pairs, (9, 11), 4)
    assert torch.equal(before, torch.random.get_rng_state())
    assert all(
        torch.equal(*each) for one, other in zip(first, again, strict=True) for each in zip(one, other, strict=True)
    )


def test_words_that_occur_nowhere_or_alone_have_no_vector() -> None:
    sentences: Sentences = [([1], [2]), ([2, 3], [3, 4]), ([3, 2], [4, 3])]
    source, target = word_vectors(as_pairs(sentences), (5, 6), 4)
    assert target.rows_VW.any(1).tolist() == [False, False, False, True, True, False]
    assert source.rows_VW.any(1).tolist() == [False, False, True, True, False]  # 1 is translated by 2, which has none
    assert target.count_V.tolist() == [0, 0, 1, 2, 2, 0]
    assert source.count_V.tolist() == [0, 1, 2, 2, 0]


def test_sentences_of_one_word_say_nothing() -> None:
    for side in word_vectors(as_pairs([([1], [2]), ([0], [1])]), (3, 4), 5):
        assert side.rows_VW.shape[1] == 5 and not side.rows_VW.any()


def test_mixed_by_how_often() -> None:
    one = WordVectors(torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]]), torch.tensor([3.0, 5.0, 0.0]))
    other = WordVectors(torch.tensor([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0]]), torch.tensor([4.0, 0.0, 0.0]))
    torch.testing.assert_close(mixed([one, other]), torch.tensor([[0.6, 0.8], [0.0, 1.0], [0.0, 0.0]]))


def test_words_of_captions_find_their_kin_and_their_translations(data_root: Path) -> None:
    raw = data_root / "multi30k" / "raw"
    texts = [[line.split() for line in read_lines(raw / f"train.{side}.gz")][:8000] for side in ("en", "de")]
    names = [[word for word, times in Counter(w for line in side for w in line).items() if times > 4] for side in texts]
    ids = [{word: place for place, word in enumerate(side)} for side in names]
    known = [
        [[own[word] for word in line if word in own] for line in side] for side, own in zip(texts, ids, strict=True)
    ]
    sentences: Sentences = [pair for pair in zip(*known, strict=True) if all(pair)]
    source, target = word_vectors(as_pairs(sentences), (len(names[0]), len(names[1])), 128)

    def nearest(word: str) -> list[str]:
        likeness = target.rows_VW @ source.rows_VW[ids[0][word]]
        return [names[1][place] for place in likeness.topk(2).indices.tolist()]

    for word, translation in {
        "dog": "Hund",
        "woman": "Frau",
        "street": "Straße",
        "red": "roten",
        "two": "zwei",
    }.items():
        assert translation in nearest(word), (word, nearest(word))
    german = target.rows_VW @ target.rows_VW.T
    picked = random.Random(0).sample(range(len(names[1])), 50)
    assert german[ids[1]["roten"], ids[1]["blauen"]] > german[ids[1]["roten"], picked].quantile(0.95)
