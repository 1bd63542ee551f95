"""The bootstrap interval against theory, and the line that a score prints."""

import json
import math
import random

import numpy as np
import pytest

from scores import bleu
from transduce.metrics.bootstrap import bootstrap_interval
from transduce.metrics.score import Score


def noisy_corpus(size: int) -> tuple[list[str], list[str]]:
    """References of random words; one word in five replaced in the hypotheses."""
    draw = random.Random(0)
    words = [f"w{number}" for number in range(50)]
    references = [draw.choices(words, k=draw.randint(6, 14)) for _ in range(size)]
    hypotheses = [[draw.choice(words) if draw.random() < 0.2 else word for word in line] for line in references]
    return [" ".join(line) for line in hypotheses], [" ".join(line) for line in references]


def test_the_interval_of_a_mean_is_the_textbooks() -> None:
    values_S1 = np.random.default_rng(1).normal(10, 2, (400, 1))
    interval = bootstrap_interval(values_S1, lambda sums_1: float(sums_1[0]) / 400)
    assert interval is not None
    half = 1.96 * values_S1.std() / math.sqrt(400)
    assert interval[0] == pytest.approx(values_S1.mean() - half, abs=0.03)
    assert interval[1] == pytest.approx(values_S1.mean() + half, abs=0.03)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    draw = np.random.default_rng(2)
    covered = 0
    for _ in range(200):
        interval = bootstrap_interval(draw.normal(0, 1, (60, 1)), lambda sums_1: float(sums_1[0]) / 60, resamples=200)
        assert interval is not None
        covered += interval[0] <= 0 <= interval[1]
    assert 0.88 <= covered / 200 <= 0.99


def test_a_bleu_interval_holds_the_value_and_shrinks_with_more_sentences() -> None:
    few, many = bleu(*noisy_corpus(50)), bleu(*noisy_corpus(800))
    widths = []
    for score in (few, many):
        assert score.interval is not None
        low, high = score.interval
        assert low < score.value < high
        widths.append(high - low)
    assert widths[1] < widths[0] / 2  # sixteen times the sentences: a quarter, with luck either way


def test_the_interval_is_the_same_every_time() -> None:
    corpus = noisy_corpus(30)
    assert bleu(*corpus) == bleu(*corpus)


def test_one_sentence_has_no_interval() -> None:
    assert bleu(["a b c d"], ["a b c d"]).interval is None


def test_a_score_reads_well_and_is_json() -> None:
    score = Score(41.34, "nrefs:1|case:lc", (40.06, 42.61), "BLEU")
    assert str(score) == "BLEU 41.3 [40.1, 42.6] nrefs:1|case:lc"
    assert json.loads(json.dumps(score.to_dict())) == {
        "name": "BLEU",
        "value": 41.34,
        "interval": [40.06, 42.61],
        "signature": "nrefs:1|case:lc",
    }
