"""A language model of counted n-grams, with modified Kneser-Ney smoothing (Chen and Goodman 1999, section 3.3).

    p_k(w | h)  =  max(c(h w) - D(c(h w)), 0) / c(h .)  +  gamma(h) p_{k-1}(w | h'),      p_0(w) = 1 / V

h' is h without its first token, and gamma(h) what makes the sum over w one. c of the longest n-grams is how often they
occur; of shorter ones, how many different tokens stand before them. An n-gram that begins a line has nothing before it
and is counted as it is. D has three values for each length, for c = 1, 2 and more.

Shapes: N tokens of a text, K n-grams of one length, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Shares = NDArray[np.float64]
ORDER = 5  # tokens of the longest n-grams, by default
MOST_TOKENS = 3_000_000  # that a baseline counts
USUAL = (0.5, 1.0, 1.5)  # D, where a text is too small to estimate it
NONE = -1


class Ngrams(NamedTuple):
    """Those of one length, by `key` = V * (the place of all tokens but the last, one length lower) + the last token.

    key_K: ascending. share_K: max(c - D(c), 0) / c(h .). rest_K: gamma of the n-gram as h; 1 where nothing follows it.
    """

    key_K: Ids
    share_K: Shares
    rest_K: Shares

    def places(self, key_N: Ids) -> Ids:
        """Where these keys are; NONE for n-grams that were never seen, and for negative keys."""
        place_N = np.minimum(np.searchsorted(self.key_K, key_N), len(self.key_K) - 1)
        return np.where(self.key_K[place_N] == key_N, place_N, NONE)


@dataclass(frozen=True, eq=False)
class KneserNey:
    """levels: the n-grams of 1, 2, .. tokens. end: the token between lines, which no n-gram crosses; it begins and ends
    one. root: gamma of no context at all.
    """

    levels: tuple[Ngrams, ...]
    vocabulary: int
    end: int
    root: float

    @classmethod
    def of(cls, tokens: Sequence[int] | Ids, vocabulary: int, end: int, order: int = ORDER) -> Self:
        """Counts the n-grams of up to `order` tokens of a text, whose lines end in `end`."""
        text_N = np.concatenate(([end], np.asarray(tokens, np.int64)))
        behind_N = _behind(text_N, end)
        seen = [_Seen(np.arange(vocabulary), np.bincount(text_N[1:], minlength=vocabulary), text_N, np.empty(0, int))]
        for length in range(1, order):
            if len(there_M := np.flatnonzero(behind_N >= length)):  # no line may be so long
                seen.append(_one_longer(seen[-1], text_N, there_M, vocabulary))
        counts = [_different_before(one, longer) for one, longer in pairwise(seen)] + [seen[-1].count_K]
        parents = [np.zeros(vocabulary, np.int64)] + [each.key_K // vocabulary for each in seen[1:]]
        sizes = [1] + [len(each.key_K) for each in seen]
        found = [_discounted(*each) for each in zip(counts, parents, sizes, strict=False)]
        rests = [*(rest for _, rest in found[1:]), np.ones(sizes[-1])]
        levels = [Ngrams(one.key_K, share, rest) for one, (share, _), rest in zip(seen, found, rests, strict=True)]
        return cls(tuple(levels), vocabulary, end, root=float(found[0][1][0]))

    def log_probabilities(self, tokens: Sequence[int] | Ids) -> Shares:
        """(N,) of each token of a text after those before it; a line may end in `end`, and the first one begins it."""
        text_N = np.concatenate(([self.end], np.asarray(tokens, np.int64)))
        behind_N = _behind(text_N, self.end)
        place_N = text_N
        found_N = self.levels[0].share_K[text_N] + self.root / self.vocabulary
        for length, level in enumerate(self.levels[1:], 1):
            before_N = np.concatenate(([NONE], place_N[:-1]))
            known_N = (before_N != NONE) & (behind_N >= length)
            place_N = level.places(np.where(known_N, before_N * self.vocabulary + text_N, NONE))
            share_N = np.where(place_N != NONE, level.share_K[place_N], 0.0)
            rest_N = np.where(known_N, self.levels[length - 1].rest_K[before_N], 1.0)
            found_N = share_N + rest_N * found_N
        return np.log(found_N[1:])


class _Seen(NamedTuple):
    """The n-grams of one length in a text: their keys, how often each occurs, which stands where (N,), NONE where none
    does, and where in the text each first ends.
    """

    key_K: Ids
    count_K: Ids
    place_N: Ids
    first_K: Ids


def _one_longer(shorter: _Seen, text_N: Ids, there_M: Ids, vocabulary: int) -> _Seen:
    """The n-grams that end at these places of the text and have one token more."""
    key_M = shorter.place_N[there_M - 1] * vocabulary + text_N[there_M]
    key_K, first_K, place_M, count_K = np.unique(key_M, return_index=True, return_inverse=True, return_counts=True)
    place_N = np.full(len(text_N), NONE)
    place_N[there_M] = place_M
    return _Seen(key_K, count_K, place_N, there_M[first_K])


def _different_before(one: _Seen, longer: _Seen) -> Ids:
    """Before how many different tokens each n-gram stands; what begins a line is counted as it is."""
    ways_K = np.bincount(one.place_N[longer.first_K], minlength=len(one.key_K))
    return np.where(ways_K > 0, ways_K, one.count_K)


def _behind(text_N: Ids, end: int) -> Ids:
    """How many tokens before each belong to its line, the end token of the line before included."""
    place_N = np.arange(len(text_N))
    last_N = np.maximum.accumulate(np.where(text_N == end, place_N, 0))
    return place_N - np.concatenate(([0], last_N[:-1]))


def _discounted(count_K: Ids, parent_K: Ids, parents: int) -> tuple[Shares, Shares]:
    """The share of each n-gram among those with the same tokens before the last, and what is left to shorter ones."""
    discount_K = np.array((0.0, *_discounts(count_K)))[np.minimum(count_K, 3)]
    total_P = np.bincount(parent_K, count_K, parents)
    left_P = np.bincount(parent_K, discount_K, parents)
    seen_P = np.maximum(total_P, 1)
    return (count_K - discount_K) / seen_P[parent_K], np.where(total_P > 0, left_P / seen_P, 1.0)


def _discounts(count_K: Ids) -> tuple[float, float, float]:
    """D of 1, 2 and more (Chen and Goodman 1999, equation 17), from how many n-grams occur once, .. four times."""
    one, two, three, four = (int(np.count_nonzero(count_K == times)) for times in range(1, 5))
    if not (one and two and three and four):
        return USUAL
    ratio = one / (one + 2 * two)
    found = 1 - 2 * ratio * two / one, 2 - 3 * ratio * three / two, 3 - 4 * ratio * four / three
    return found if all(0 < each <= most for each, most in zip(found, (1, 2, 3), strict=True)) else USUAL
