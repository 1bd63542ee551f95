"""A language model of counted n-grams, with modified Kneser-Ney smoothing (Chen and Goodman 1999, section 3.3).

    p_k(w | h)  =  max(c(h w) - D(c(h w)), 0) / c(h .)  +  gamma(h) p_{k-1}(w | h'),      p_0(w) = 1 / V

h' is h without its first token, and gamma(h) what makes the sum over w one. c of the longest n-grams is how often they
occur; of shorter ones, how many different tokens stand before them. An n-gram that begins a line has nothing before it
and is counted as it is. D has three values for each length, for c = 1, 2 and more.

Shapes: N tokens of a text, or contexts, K n-grams of one length, L lengths of a context, V vocabulary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from transduce.core.errors import InputError
from transduce.data.ranges import Ids, ranges

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

    @classmethod
    def names(cls) -> list[str]:
        """Of its fields, without their axis."""
        return [name.removesuffix("_K") for name in cls._fields]

    def is_sound(self, keys: int) -> bool:
        """Whether the keys ascend and are below `keys`, and all else are shares of one."""
        shapes = len(self.key_K) > 0 and all(each.shape == (len(self.key_K),) for each in self)
        types = self.key_K.dtype == np.int64 and self.share_K.dtype == self.rest_K.dtype == np.float64
        if not (shapes and types and self.key_K[0] >= 0 and self.key_K[-1] < keys):
            return False
        shares = np.concatenate((self.share_K, self.rest_K))
        return bool((np.diff(self.key_K) > 0).all() and ((shares >= 0) & (shares <= 1)).all())

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

    def to_arrays(self) -> dict[str, Ids | Shares]:
        """For a file: see `of_arrays`."""
        found: dict[str, Ids | Shares] = {"end": np.array([self.end]), "root": np.array([self.root])}
        for length, level in enumerate(self.levels, 1):
            found |= {f"{length}.{name}": getattr(level, f"{name}_K") for name in Ngrams.names()}
        return found

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Any], vocabulary: int) -> Self:
        """What `to_arrays` gave, read from a file.

        Raises:
            InputError: it is damaged, or of another vocabulary.
        """
        orders = [length for length in range(1, len(arrays)) if f"{length}.key" in arrays]
        wanted = {"end", "root"} | {f"{length}.{name}" for length in orders for name in Ngrams.names()}
        if arrays.keys() != wanted or not orders or orders != list(range(1, len(orders) + 1)):
            raise InputError("the model file's n-grams are damaged: parts of them are missing.")
        levels = [Ngrams(*(np.asarray(arrays[f"{length}.{name}"]) for name in Ngrams.names())) for length in orders]
        places = [1, *(len(level.key_K) for level in levels)]
        ends, roots = (np.asarray(arrays[name]) for name in ("end", "root"))
        sound = all(level.is_sound(before * vocabulary) for level, before in zip(levels, places, strict=False))
        one = ends.shape == roots.shape == (1,) and ends.dtype.kind == "i" and roots.dtype.kind == "f"
        if not sound or not one or places[1] != vocabulary or not 0 <= ends[0] < vocabulary or not 0 < roots[0] <= 1:
            raise InputError(f"the model file's n-grams are damaged, or of other tokens than its {vocabulary}.")
        return cls(tuple(levels), vocabulary, int(ends[0]), float(roots[0]))

    def contexts(self, rows: int) -> Ids:
        """(N, L) int64: of each of so many beginnings of a line, the places of its last 1, .. L tokens, for `after`."""
        place_NL = np.full((rows, max(1, len(self.levels) - 1)), NONE)
        place_NL[:, 0] = self.end
        return place_NL

    def extended(self, place_NL: Ids, token_N: Ids) -> Ids:
        """The contexts of lines with one more token, which is not the end."""
        longer = [
            level.places(np.where(place_N != NONE, place_N * self.vocabulary + token_N, NONE))
            for level, place_N in zip(self.levels[1:-1], place_NL.T, strict=False)
        ]
        return np.stack([token_N, *longer], 1)

    def after(self, place_NL: Ids) -> Shares:
        """(N, V) the log-probabilities of every token after these contexts."""
        found_NV = np.tile(self.levels[0].share_K + self.root / self.vocabulary, (len(place_NL), 1))
        for shorter, level, place_N in zip(self.levels, self.levels[1:], place_NL.T, strict=False):
            known_M = np.flatnonzero(place_N != NONE)
            key_M = place_N[known_M] * self.vocabulary
            found_NV[known_M] *= shorter.rest_K[place_N[known_M], None]
            first_M, last_M = (np.searchsorted(level.key_K, each) for each in (key_M, key_M + self.vocabulary))
            seen_S, owner_S = ranges(first_M, last_M)
            found_NV[known_M[owner_S], level.key_K[seen_S] % self.vocabulary] += level.share_K[seen_S]
        return np.log(found_NV)


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
