"""How sure words are: beside the probabilities that outputs were made with, and a loss written out plainly."""

import random
from functools import cache

import numpy as np
import pytest

from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.inference.confidence import Calibration, WrittenText, expected_calibration_error

WORDS = ["".join(random.Random(n).choices("abcdefghij", k=5)) for n in range(200)]


@cache
def tokenizer(kind: str = "bpe") -> Tokenizer:
    return train_tokenizer(TokenizerConfig(kind=kind, vocabulary=400), [" ".join(WORDS)] * 3)


def outputs(count: int, kind: str = "bpe", draw: int = 1) -> tuple[list[WrittenText], list[str]]:
    """Sentences whose words are right as often as sigmoid(2 + 1.5 log p) says, p the probability of their tokens."""
    random_, made, references = random.Random(draw), [], []
    for _ in range(count):
        words = random_.sample(WORDS, k=8)
        text = " ".join(words)
        ids = tokenizer(kind).encode([text])[0]
        pieces = tokenizer(kind).tokens(ids)
        nats, right = list[float](), list[str]()
        for word in words:
            each = -random_.expovariate(1)
            nats += [each] * len(tokenizer(kind).encode([word])[0])
            right.append(word if random_.random() < 1 / (1 + np.exp(-(2 + 1.5 * each))) else "zzz")
        if len(nats) == len(pieces):
            made.append(WrittenText(text, pieces, [*nats, -0.1]))
            references.append(" ".join(right))
    return made, references


def test_probabilities_are_those_that_words_are_right_with() -> None:
    made, references = outputs(600)
    found = Calibration.of(made, references, tokenizer())
    assert found is not None
    assert found.error < 0.03
    assert found.words == sum(len(each.text.split()) for each in made)
    fresh, expected = outputs(300, draw=2)
    pairs = [
        (word.confidence, right != "zzz")
        for written, reference in zip(fresh, expected, strict=True)
        for word, right in zip(found.words_of(written, tokenizer()), reference.split(), strict=True)
    ]
    sure = np.array(pairs, float)
    assert expected_calibration_error(sure[:, 0], sure[:, 1]) < 0.05
    truth = 1 / (1 + np.exp(-(2 + 1.5 * np.array([written.log_probabilities[0] for written in fresh]))))
    own = np.array([found.words_of(written, tokenizer())[0].confidence for written in fresh])
    assert np.abs(own - truth).mean() < 0.05


def test_the_regression_is_where_its_loss_is_least() -> None:
    """Independent: no step in any direction makes the regularised log-loss smaller."""
    made, references = outputs(100)
    found = Calibration.of(made, references, tokenizer())
    assert found is not None
    rows, right = [], []
    for written, reference in zip(made, references, strict=True):
        for place, (word, wanted) in enumerate(zip(written.text.split(), reference.split(), strict=True)):
            start = sum(len(tokenizer().encode([other])[0]) for other in written.text.split()[:place])
            own = written.log_probabilities[start : start + len(tokenizer().encode([word])[0])]
            rows.append([np.mean(own), min(own), np.mean(written.log_probabilities[:-1]), 1.0])
            right.append(wanted != "zzz")

    def loss(weights: np.ndarray) -> float:
        score = np.array(rows) @ weights
        fit = np.logaddexp(0, -score)[np.array(right)].sum() + np.logaddexp(0, score)[~np.array(right)].sum()
        return float(fit + 0.5 * 1e-2 * weights @ weights)

    best = loss(np.array(found.weights))
    for direction in np.vstack([np.eye(4), -np.eye(4), np.random.default_rng(1).normal(size=(20, 4))]):
        assert loss(np.array(found.weights) + 0.02 * direction) > best


def test_the_error_is_the_gap_between_bins_and_their_shares() -> None:
    sure, right = np.array([0.05, 0.95, 0.95, 0.95, 0.55]), np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    slow = sum(
        abs(sum(s - r for s, r in zip(sure, right, strict=True) if int(s * 10) == bin_)) for bin_ in range(10)
    ) / len(sure)
    assert expected_calibration_error(sure, right) == pytest.approx(slow)


@pytest.mark.parametrize("kind", ["bpe", "whitespace", "character", "byte"])
def test_words_stand_where_they_are_in_the_text(kind: str) -> None:
    calibration = Calibration((1.0, 0.0, 0.0, 0.0), 0.0, 1)
    text = " ".join(WORDS[:3])
    pieces = tokenizer(kind).tokens(tokenizer(kind).encode([text])[0])
    found = calibration.words_of(WrittenText(text, pieces, [-0.5] * len(pieces)), tokenizer(kind))
    assert [text[word.start : word.end] for word in found] == WORDS[:3]
    assert all(word.confidence == pytest.approx(1 / (1 + np.exp(0.5))) for word in found)


def test_too_few_words_and_other_notes_give_none() -> None:
    made, references = outputs(10)
    assert Calibration.of(made, references, tokenizer()) is None
    noted = Calibration((1.0, 2.0, 3.0, 4.0), 0.01, 9).to_dict()
    assert Calibration.from_dict(noted) == Calibration((1.0, 2.0, 3.0, 4.0), 0.01, 9)
    for wrong in (
        None,
        [],
        {},
        {**noted, "weights": [1.0]},
        {**noted, "weights": [float("nan")] * 4},
        {"weights": "x"},
    ):
        assert Calibration.from_dict(wrong) is None
