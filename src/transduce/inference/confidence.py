"""How sure a translation is, as a probability: of each word, that the reference has it; of a sentence, its words' mean.

A model's own probabilities are too high (Guo et al. 2017, "On calibration of modern neural networks"). Calibrated here,
on validation pairs, is

    P(word is in the reference) = sigmoid(a mean + b least + c sentence + d)

of the mean and the least log-probability of the word's tokens, and the mean of the sentence's (logistic regression, as
Platt 1999 calibrates with). The expected calibration error is that of each half of the sentences under what the other
half was calibrated to. Nothing here imports torch.

Shapes: W words, F features.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from transduce.core.errors import InputError
from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.data.words import SINGLE


class HasTokens(Protocol):
    """A prediction; see `transduce.inference.prediction.Prediction`."""

    @property
    def text(self) -> str: ...
    @property
    def tokens(self) -> tuple[str, ...]: ...
    @property
    def token_log_probabilities(self) -> tuple[float, ...]: ...
    @property
    def edits(self) -> object: ...


Reals = NDArray[np.float64]

FEATURES = 4
LEAST_WORDS = 200  # of the outputs of validation pairs, from which it is calibrated
STEPS, RIDGE = 30, 1e-2  # of Newton's method; weight of the squares
BINS = 10  # of equal width, of the expected calibration error
FLOOR = -20.0  # nats, of a token's log-probability
WORD = re.compile(rf"[{SINGLE}]|[^\W_{SINGLE}]+")


class WrittenText(NamedTuple):
    """What a model wrote: its text, its tokens, and their log-probabilities, with or without that of the end."""

    text: str
    tokens: Sequence[str]
    log_probabilities: Sequence[float]


class WordConfidence(NamedTuple):
    """Characters [start, end) of an output, and the probability that the word is right."""

    start: int
    end: int
    confidence: float


@dataclass(frozen=True)
class Calibration:
    """weights: of the features. error: the expected calibration error. words: how many it was measured on."""

    weights: tuple[float, ...]
    error: float
    words: int

    @classmethod
    def of(cls, outputs: Sequence[WrittenText], references: Sequence[str], tokenizer: Tokenizer) -> Self | None:
        """From outputs of validation pairs; None where they have too few words, or words that are not told apart."""
        read = [_judged(*both, tokenizer) for both in zip(outputs, references, strict=True)]
        found = [each for each in read if each is not None]
        if sum(len(right_W) for _, right_W in found) < LEAST_WORDS:
            return None
        halves = [_joined(found[half::2]) for half in (0, 1)]
        whole_WF, right_W = _joined(found)
        crossed = [(_probabilities(_fitted(*halves[1 - half]), halves[half][0]), halves[half][1]) for half in (0, 1)]
        probability_W, held_W = (np.concatenate(each) for each in zip(*crossed, strict=True))
        error = expected_calibration_error(probability_W, held_W)
        return cls(tuple(map(float, _fitted(whole_WF, right_W))), float(error), len(right_W))

    def words_of(self, written: WrittenText, tokenizer: Tokenizer) -> list[WordConfidence]:
        """How sure each word of an output is; none where tokens and text do not go together."""
        places, features_WF = _features(written, tokenizer)
        if not places:
            return []
        found = _probabilities(np.array(self.weights), features_WF)
        return [WordConfidence(*place, float(one)) for place, one in zip(places, found, strict=True)]

    def to_dict(self) -> dict[str, Any]:
        """For a model file."""
        weights = [round(weight, 6) for weight in self.weights]
        return {"weights": weights, "expected_calibration_error": round(self.error, 4), "words": self.words}

    @classmethod
    def from_dict(cls, noted: Any) -> Self | None:
        """As a model file has it; None where it has none, or another kind of note."""
        if not isinstance(noted, Mapping):
            return None
        weights, error, words = (noted.get(name) for name in ("weights", "expected_calibration_error", "words"))
        if not isinstance(weights, list) or len(weights) != FEATURES or not all(map(_is_number, weights)):
            return None
        if not isinstance(error, int | float) or not isinstance(words, int):
            return None
        return cls(tuple(map(float, weights)), float(error), words)


def _is_number(noted: Any) -> bool:
    """Whether it is one that a weight can be."""
    try:
        return type(noted) in (int, float) and math.isfinite(float(noted))
    except OverflowError:
        return False


def judging(noted: Any, tokenizer: Tokenizer) -> "Callable[[HasTokens], list[WordConfidence]] | None":
    """What says how sure the words of a model's predictions are; None where it was not calibrated.

    Args:
        noted: what its file says of it.
        tokenizer: that it writes with.
    """
    calibration = Calibration.from_dict(noted)
    if calibration is None:
        return None

    def judge(prediction: HasTokens) -> list[WordConfidence]:
        raw = tokenizer.decode(tokenizer.ids(prediction.tokens))
        if prediction.edits is None and raw != prediction.text:  # it is of several pieces
            return []
        return calibration.words_of(WrittenText(raw, prediction.tokens, prediction.token_log_probabilities), tokenizer)

    return judge


def expected_calibration_error(probability_W: Reals, right_W: Reals) -> float:
    """The mean distance between how sure words are and how many are right, by bins (Guo et al. 2017, equation 3)."""
    bin_W = np.minimum((probability_W * BINS).astype(np.int64), BINS - 1)
    apart = np.abs(np.bincount(bin_W, probability_W, BINS) - np.bincount(bin_W, right_W, BINS))
    return float(apart.sum() / max(1, len(probability_W)))


def _judged(written: WrittenText, reference: str, tokenizer: Tokenizer) -> tuple[Reals, Reals] | None:
    """The features of the words of an output, and which of them the reference has, each as often as it has it."""
    places, features_WF = _features(written, tokenizer)
    if not places:
        return None
    return features_WF, np.array(judged_words(written, reference, places), np.float64)


def judged_words(written: WrittenText, reference: str, places: Sequence[tuple[int, int]]) -> list[bool]:
    """Which words of an output, at these places, the reference has, each as often as it has it; case apart."""
    left = Counter(word.lower() for word in WORD.findall(reference))
    right = list[bool]()
    for start, end in places:
        word = written.text[start:end].lower()
        right.append(left[word] > 0)
        left[word] -= 1
    return right


def _features(written: WrittenText, tokenizer: Tokenizer) -> tuple[list[tuple[int, int]], Reals]:
    """Where the words of an output are, and (W, F) what is known of each."""
    places = [match.span() for match in WORD.finditer(written.text)]
    spans = _spans(written, tokenizer) if places and written.tokens else []
    if not spans:
        return [], np.zeros((0, FEATURES))
    nats = np.maximum(np.array(written.log_probabilities[: len(spans)], np.float64), FLOOR)
    starts, ends = np.array(spans).T
    rows = [nats[(starts < end) & (ends > start)] for start, end in places]
    kept = [place for place, own in enumerate(rows) if len(own)]
    mean = float(nats.mean())
    features = [[float(rows[place].mean()), float(rows[place].min()), mean, 1.0] for place in kept]
    return [places[place] for place in kept], np.array(features)


def _spans(written: WrittenText, tokenizer: Tokenizer) -> list[tuple[int, int]]:
    """Which characters of the text each token wrote; none where that cannot be told."""
    try:
        spelled = tokenizer.spelled(tokenizer.ids(written.tokens))
    except InputError:
        return []
    whole = b"".join(spelled)
    dropped = len(whole) - len(whole.removeprefix(b" ")) if not written.text.startswith(" ") else 0
    if whole[dropped:].decode(errors="replace") != written.text:
        return []
    ends = np.cumsum([len(each) for each in spelled]) - dropped
    at = _characters(written.text)
    return [(at[max(0, end - len(each))], at[max(0, end)]) for end, each in zip(ends.tolist(), spelled, strict=True)]


def _characters(text: str) -> list[int]:
    """For each byte of a text, and for its end, the number of characters before it."""
    found = [place for place, character in enumerate(text) for _ in character.encode()]
    return [*found, len(text)]


def _joined(read: Sequence[tuple[Reals, Reals]]) -> tuple[Reals, Reals]:
    features, right = zip(*read, strict=True)
    return np.concatenate(features), np.concatenate(right)


def _probabilities(weights_F: Reals, features_WF: Reals) -> Reals:
    return np.asarray(1 / (1 + np.exp(-(features_WF @ weights_F))))


def _fitted(features_WF: Reals, right_W: Reals) -> Reals:
    """Weights (F,) of the logistic regression, by Newton's method."""
    weights_F, ridge_FF = np.zeros(features_WF.shape[1]), RIDGE * np.eye(features_WF.shape[1])
    for _ in range(STEPS):
        probability_W = _probabilities(weights_F, features_WF)
        slope_F = features_WF.T @ (probability_W - right_W) + ridge_FF @ weights_F
        curve_FF = (features_WF * (probability_W * (1 - probability_W))[:, None]).T @ features_WF + ridge_FF
        weights_F = weights_F - np.linalg.solve(curve_FF, slope_F)
    return weights_F
