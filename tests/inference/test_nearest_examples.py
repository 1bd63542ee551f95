"""The nearest training example, compared with slow loops."""

import math
from itertools import pairwise

import numpy as np
import torch

from transduce.inference.nearest_examples import FRAMES, NearestRecordings, NearestTexts

SIZE = 9


def ngrams_of(row: list[int]) -> set[tuple[int, ...]]:
    return {(each,) for each in row} | set(pairwise(row))


def test_the_nearest_text_is_that_of_slow_loops() -> None:
    rng = np.random.default_rng(5)
    rows = [rng.integers(0, SIZE, rng.integers(1, 8)).tolist() for _ in range(60)]
    asked = [rng.integers(0, SIZE, rng.integers(1, 8)).tolist() for _ in range(40)]
    known = [ngrams_of(row) for row in rows]
    count = {gram: sum(gram in each for each in known) for gram in set().union(*known)}
    rarity = {gram: math.log((1 + len(rows)) / times) for gram, times in count.items()}

    def similarity(one: set[tuple[int, ...]], other: set[tuple[int, ...]]) -> float:
        lengths = [math.sqrt(sum(rarity[gram] ** 2 for gram in each if gram in rarity)) for each in (one, other)]
        return sum(rarity[gram] ** 2 for gram in one & other) / max(1e-9, lengths[0] * lengths[1])

    found = NearestTexts.of(rows, SIZE).nearest(asked)
    for row, place in zip(asked, found, strict=True):
        every = [similarity(ngrams_of(row), each) for each in known]
        assert every[place] >= max(every) - 1e-6


def test_a_text_that_shares_nothing_has_the_first_one() -> None:
    model = NearestTexts.of([[1, 2], [3, 4]], SIZE)
    assert model.nearest([[3, 4], [7, 8], []]) == [1, 0, 0]


def test_the_nearest_recording_has_the_same_sounds_at_any_speed() -> None:
    generator = torch.Generator().manual_seed(1)
    slow = [torch.randn(5, 3, generator=generator).repeat_interleave(FRAMES * each, 0) for each in (2, 1, 3)]
    quick = [recording[:: FRAMES // 4].numpy() for recording in slow]
    model = NearestRecordings.of([recording.numpy() for recording in slow])
    assert model.nearest(quick) == [0, 1, 2]
    assert model.nearest([np.zeros((0, 3), np.float32)]) in ([0], [1], [2])
