"""The training example whose input is nearest to a given one: a baseline that answers with that example's output.

Texts are compared by the cosine between their 1-grams and 2-grams of tokens, each counted once and weighted with the
logarithm of how rare it is (tf-idf; Salton and Buckley 1988); recordings by the distance between their features, each
recording stretched to the same number of frames.

Shapes: N training examples, Q inputs, F different n-grams, L frames, W features of a frame.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from transduce.inference.bag_of_ngrams import Bags, Ids, bags, ngrams

AT_ONCE = 2**24  # numbers of a dense matrix (F, Q)
MOST_TOKENS = 2_000_000  # of training texts: of more, every second text is taken, or every third ..
FRAMES = 32  # L
MOST_FRAMES = 2_000_000  # of training recordings, five and a half hours


@dataclass(frozen=True, eq=False)
class NearestTexts:
    """codes_F: the n-grams of the training texts, ascending. rarity_F: their weights. texts: each as n-grams, K in all.
    share_K: the weight of each n-gram in its text, as a vector of length 1.
    """

    codes_F: Ids
    rarity_F: Tensor
    texts: Bags
    share_K: Tensor
    vocabulary: int

    @classmethod
    def of(cls, rows: Sequence[Any], vocabulary: int) -> Self:
        """Training texts as ids, of a vocabulary of so many."""
        found = ngrams(rows, vocabulary, separator=vocabulary)
        codes_F, count_F = np.unique(found.code_K, return_counts=True)
        rarity_F = torch.from_numpy(np.log((1 + len(rows)) / count_F)).float()
        texts = bags(found, codes_F, len(rows))
        return cls(codes_F, rarity_F, texts, _shares(texts, rarity_F), vocabulary)

    def nearest(self, rows: Sequence[Any]) -> list[int]:
        """The place of the nearest training text of each; the first of several, and of texts that share nothing."""
        size = max(1, AT_ONCE // max(1, len(self.codes_F)))
        parts = (rows[first : first + size] for first in range(0, len(rows), size))
        return [each for part in parts for each in self._nearest(part)]

    def _nearest(self, rows: Sequence[Any]) -> list[int]:
        asked = bags(ngrams(rows, self.vocabulary, separator=self.vocabulary), self.codes_F, len(rows))
        asked_FQ = torch.zeros(len(self.codes_F), len(rows))
        asked_FQ[torch.from_numpy(asked.features), _texts(asked)] = _shares(asked, self.rarity_F)
        features_K, starts_N = torch.from_numpy(self.texts.features), torch.from_numpy(self.texts.starts[:-1])
        cosine_NQ = F.embedding_bag(features_K, asked_FQ, starts_N, mode="sum", per_sample_weights=self.share_K)
        return cosine_NQ.argmax(0).tolist()


@dataclass(frozen=True, eq=False)
class NearestRecordings:
    """recordings_NX: the frames of each, one behind the other. frames: L."""

    recordings_NX: Tensor
    frames: int = FRAMES

    @classmethod
    def of(cls, recordings: Iterable[NDArray[np.float32]]) -> Self:
        """Training recordings, (S, W) each."""
        return cls(torch.stack([_stretched(each) for each in recordings]))

    def nearest(self, recordings: Sequence[NDArray[np.float32]]) -> list[int]:
        """The place of the nearest training recording of each."""
        asked_QX = torch.stack([_stretched(each) for each in recordings])
        return torch.cdist(asked_QX, self.recordings_NX).argmin(1).tolist()


def _texts(bag: Bags) -> Tensor:
    """(K,) the text of each n-gram."""
    return torch.repeat_interleave(torch.arange(len(bag.starts) - 1), torch.from_numpy(bag.starts).diff())


def _shares(bag: Bags, rarity_F: Tensor) -> Tensor:
    """(K,) the weight of each n-gram in its text."""
    weight_K, text_K = rarity_F[bag.features], _texts(bag)
    square_N = torch.zeros(len(bag.starts) - 1).index_add_(0, text_K, weight_K.square())
    return weight_K / square_N.sqrt().clamp(min=1e-9)[text_K]


def _stretched(features_SW: NDArray[np.float32]) -> Tensor:
    """(L * W,), by linear interpolation over time; silence where there is no frame."""
    if not len(features_SW):
        return torch.zeros(FRAMES * features_SW.shape[1])
    frames_1WS = torch.from_numpy(np.array(features_SW, np.float32)).T[None]
    return F.interpolate(frames_1WS, FRAMES, mode="linear", align_corners=False).flatten()
