"""A linear classifier of bags of n-grams: what can be told from which words and pairs of words a text has.

    p(c | x) ~ exp(b_c + sum_{f in x} W_fc),   minimise  sum_i v_i (-log p(y_i | x_i)) + |W|^2 / (2 C)

The features f of a text are its 1-grams and 2-grams of tokens, each counted once (Wang & Manning 2012 found presence to
be better than counts); those of a pair's second text are features of their own. This is logistic regression as
scikit-learn has it, found by L-BFGS; the loss is convex, so there is one solution and no seed.

Shapes: N examples, F features, K features of all examples together, C labels.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

Ids = NDArray[np.int64]
MOST_TOKENS = 5_000_000  # of training: of more, every second example is taken, or every third ..
STRENGTHS = (0.03, 0.1, 0.3)  # C, of which validation chooses
USUAL = 0.1  # without validation
STEPS, TOLERANCE = 100, 1e-5  # of L-BFGS, at most; where the gradient is this small, it ends


class Bags(NamedTuple):
    """Texts as features: text i has features[starts[i] : starts[i + 1]]."""

    features: Ids
    starts: Ids


class Codes(NamedTuple):
    """The n-grams of texts, each once: text_K ascending, code_K."""

    text_K: Ids
    code_K: Ids


@dataclass(frozen=True, eq=False)
class BagOfNgrams:
    """codes_F: the n-grams, ascending. weight_FC, bias_C: W and b. vocabulary, separator: see `ngrams`."""

    codes_F: Ids
    weight_FC: Tensor
    bias_C: Tensor
    vocabulary: int
    separator: int

    def logits(self, rows: Sequence[Any]) -> Tensor:
        """(N, C) of texts as ids; n-grams that training did not see say nothing."""
        found = ngrams(rows, self.vocabulary, self.separator)
        return _logits(bags(found, self.codes_F, len(rows)), self.weight_FC, self.bias_C)

    def predict(self, rows: Sequence[Any]) -> list[int]:
        """The likeliest label of each text."""
        return self.logits(rows).argmax(1).tolist()


@torch.no_grad()
def fit(
    rows: Sequence[Any],
    labels: Ids,
    weights: NDArray[np.float64],
    classes: int,
    vocabulary: int,
    separator: int,
    strengths: Sequence[float] = (USUAL,),
) -> list[BagOfNgrams]:
    """One for each C in `strengths`.

    Args:
        rows: the texts as ids. labels: of each, from 0. weights: v. classes: how many labels there are.
        vocabulary, separator: see `ngrams`.
    """
    found = ngrams(rows, vocabulary, separator)
    codes_F = np.unique(found.code_K)
    bag, label_N = bags(found, codes_F, len(rows)), torch.from_numpy(labels)
    weight_N = torch.from_numpy(weights).float()
    weight_FC, bias_C = torch.zeros(len(codes_F), classes), torch.zeros(classes)
    models = []
    for strength in strengths:
        weight_FC, bias_C = weight_FC.clone(), bias_C.clone()  # from the solution before, which is near
        _minimise(bag, label_N, weight_N, [weight_FC, bias_C], strength)
        models.append(BagOfNgrams(codes_F, weight_FC, bias_C, vocabulary, separator))
    return models


def ngrams(rows: Sequence[Any], vocabulary: int, separator: int) -> Codes:
    """The 1-grams and 2-grams of each text, each once, as numbers.

    Args:
        vocabulary: how many ids there are.
        separator: the id between the two texts of a pair. It is no token, and what stands behind it is the second text.
    """
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    ids_K = np.concatenate([np.asarray(row, np.int64) for row in rows]) if len(rows) else np.empty(0, np.int64)
    text_K = np.repeat(np.arange(len(rows)), lengths)
    apart = ids_K == separator
    before_K = np.cumsum(apart)
    first_K = np.repeat((np.cumsum(lengths) - lengths), lengths)
    side_K = before_K - np.where(first_K > 0, before_K[first_K - 1], 0)  # separators of the same text before it
    one_K = side_K * (vocabulary + vocabulary**2) + ids_K
    two_K = one_K[:-1] + vocabulary * (1 + ids_K[1:])
    whole_K = (text_K[1:] == text_K[:-1]) & ~apart[1:] & ~apart[:-1]
    texts = np.concatenate((text_K[~apart], text_K[:-1][whole_K]))
    codes = np.concatenate((one_K[~apart], two_K[whole_K]))
    order = np.lexsort((codes, texts))
    texts, codes = texts[order], codes[order]
    first = np.ones(len(texts), bool)
    first[1:] = (texts[1:] != texts[:-1]) | (codes[1:] != codes[:-1])
    return Codes(texts[first], codes[first])


def bags(found: Codes, codes_F: Ids, count: int) -> Bags:
    """`count` texts as places in `codes_F`; what is not in it is left out."""
    place_K = np.searchsorted(codes_F, found.code_K)
    known_K = place_K < len(codes_F)
    known_K[known_K] = codes_F[place_K[known_K]] == found.code_K[known_K]
    starts = np.searchsorted(found.text_K[known_K], np.arange(count + 1))
    return Bags(place_K[known_K], starts.astype(np.int64))


def thinned(lengths: NDArray[Any]) -> Ids:
    """Which of many texts are taken, so that they have `MOST_TOKENS` at most: all, or every second, or third .."""
    step = max(1, -(-int(lengths.sum()) // MOST_TOKENS))
    return np.arange(0, len(lengths), step)


def _logits(bag: Bags, weight_FC: Tensor, bias_C: Tensor) -> Tensor:
    return _sums(bag.features, bag.starts, weight_FC) + bias_C


def _sums(places: Ids, starts: Ids, rows: Tensor) -> Tensor:
    """The sum of rows[places[starts[i] : starts[i + 1]]] for each i."""
    if not len(places):
        return rows.new_zeros(len(starts) - 1, rows.shape[1])
    return F.embedding_bag(torch.from_numpy(places), rows, torch.from_numpy(starts[:-1]), mode="sum")


def _turned(bag: Bags, count: int) -> Bags:
    """For each of `count` features the texts that have it."""
    texts = np.repeat(np.arange(len(bag.starts) - 1), np.diff(bag.starts))
    order = np.argsort(bag.features, kind="stable")
    return Bags(texts[order], np.searchsorted(bag.features[order], np.arange(count + 1)).astype(np.int64))


def _minimise(bag: Bags, label_N: Tensor, weight_N: Tensor, parameters: list[Tensor], strength: float) -> None:
    """W and b, in place. The gradient is written out: summing over the texts of each feature is three times faster."""
    weight_FC, bias_C = parameters
    turned, true_NC = _turned(bag, len(weight_FC)), F.one_hot(label_N, weight_FC.shape[1])
    scale_N1 = (weight_N / len(label_N))[:, None]
    decay = 1 / (strength * len(label_N))
    descent = torch.optim.LBFGS(
        parameters, max_iter=STEPS, tolerance_grad=TOLERANCE, tolerance_change=1e-9, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        normed_NC = _logits(bag, weight_FC, bias_C).log_softmax(1)
        off_NC = scale_N1 * (normed_NC.exp() - true_NC)
        weight_FC.grad = _sums(turned.features, turned.starts, off_NC) + decay * weight_FC
        bias_C.grad = off_NC.sum(0)
        return -(scale_N1 * normed_NC * true_NC).sum() + decay / 2 * weight_FC.square().sum()

    descent.step(loss)  # type: ignore[no-untyped-call]
    weight_FC.grad = bias_C.grad = None
