"""Which lines of a side are in another language, and which pairs have their sides exchanged, told by the words alone.

Two languages differ in their commonest words. So the words of the two sides make a naive Bayes classifier of the two
languages, learnt from the very files; pairs whose sides are each rather the other are swapped, and the classifier is
learnt again without them, until nothing changes (expectation and maximisation with hard decisions). Half of the pairs
may be swapped. The lines of one side that lack its commonest words teach a third language in the same way, if there
is one. The words are those of `transduce.doctor.words`; in scripts without spaces they are single characters.

Shape letters: L lines, N pairs, W buckets of words.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transduce.doctor.alignment import AlignedPairs
from transduce.doctor.words import BUCKETS, WordStatistics, buckets

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]

FEWEST_PAIRS = 200  # from which languages are told apart
FEWEST_LINES = 15  # of another language: of fewer, names and titles make a language of their own
ROUNDS = 12
COMMON = 60  # words of a side that most of its lines have some of
COMMONEST = 15  # words by which languages are compared
RARE = 0.25  # times as frequent as in its own language, below which a word is rare in the other,
MOST_RARE = 0.75  # as so many of them are: English and German share "in" and "an"
USUAL, USUAL_LINES = 0.2, 6  # share of a language's lines, and number, that have each of its five commonest words
LACKS = 2.0  # standard deviations fewer common words than usual, in a line that may be of another language
FEWEST_WORDS = 5  # of a line that teaches another language; FEWEST_TOLD: of a line that is told to be of one
FEWEST_TOLD = 3
ABOUT_HALF = 0.1  # off a half, the share of swapped pairs does not say which way is right
CERTAIN = 5.0  # nats
LIKELY = 3.0
CLEAR = 10.0  # nats by which most pairs have the two languages
MOST_NATS = 4.0  # that one word counts
LINES_AT_ONCE = 65_536
MARKS = ".,;:!?¿¡-–—()[]{}<>/\\\"'«»„“”‘’…。，！？、；：「」『』（）・〜&%+*=#@0123456789"
NO_LANGUAGE = np.unique([bucket for mark in MARKS for bucket in buckets(mark)])


def _lines_with(words: WordStatistics, chosen_L: Mask) -> Floats:
    """(W,) How many of the chosen lines have each word; punctuation and digits are of no language."""
    counts_W = np.zeros(BUCKETS)
    for first, last, ids, owner in _chunks(words):
        counts_W += np.bincount(ids[chosen_L[first:last][owner]], minlength=BUCKETS)
    counts_W[NO_LANGUAGE] = 0
    return counts_W


def _sums(words: WordStatistics, values_W: Floats) -> Floats:
    """(L,) For each line, the sum over its words."""
    sums = [np.bincount(owner, values_W[ids], minlength=last - first) for first, last, ids, owner in _chunks(words)]
    return np.concatenate(sums)


def _chunks(words: WordStatistics) -> Iterator[tuple[int, int, NDArray[np.uint16], Rows]]:
    """Some lines at a time: the first, the one behind the last, their words, and which of them has each."""
    for first in range(0, len(words), LINES_AT_ONCE):
        last = min(first + LINES_AT_ONCE, len(words))
        ends = words.ends[first : last + 1]
        yield first, last, words.ids[ends[0] : ends[-1]], np.repeat(np.arange(last - first), np.diff(ends))


def _log_odds(one_W: Floats, other_W: Floats) -> Floats:
    """(W,) Nats by which each word is rather of the one language; a word seen once tells nothing."""
    prior = 0.1
    odds_W = np.log(one_W + prior) - np.log(other_W + prior)
    odds_W -= np.log((one_W.sum() + prior * BUCKETS) / (other_W.sum() + prior * BUCKETS))
    odds_W[(one_W + other_W < 2) | _no_language()] = 0
    return np.clip(odds_W, -MOST_NATS, MOST_NATS)


def _no_language() -> Mask:
    mask_W = np.zeros(BUCKETS, np.bool_)
    mask_W[NO_LANGUAGE] = True
    return mask_W


def are_apart(one_W: Floats, other_W: Floats) -> bool:
    """Whether these are words of two languages: most of the commonest words of each are rare in the other."""
    return min(_rare(one_W, other_W), _rare(other_W, one_W)) >= MOST_RARE


def _rare(own_W: Floats, other_W: Floats) -> float:
    """The share of the commonest words of the one that are rare in the other."""
    commonest = np.argsort(-own_W)[:COMMONEST]
    in_own, in_other = (each_W[commonest] / max(each_W.sum(), 1) for each_W in (own_W, other_W))
    return float((in_other < RARE * in_own).mean())


def swapped_mask(source: WordStatistics, target: WordStatistics, pairs: AlignedPairs) -> Mask:
    """(N,) Pairs whose source is in the language of the other targets, and whose target in that of the other sources.

    None where the sides are not two languages. Where about as many pairs stand either way, the first line is right.
    """
    none = np.zeros(len(pairs), np.bool_)
    if len(pairs) < FEWEST_PAIRS or source.by_character:
        return none
    swapped_N = none
    for _ in range(ROUNDS):
        one_W, other_W = _of_languages(source, target, pairs, swapped_N)
        odds_W = _log_odds(one_W, other_W)
        source_N, target_N = _sums(source, odds_W)[pairs.source_rows], -_sums(target, odds_W)[pairs.target_rows]
        gain_N = source_N + target_N
        if ((gain_N < 0) == swapped_N).all():
            break
        swapped_N = gain_N < 0
    if np.median(np.abs(gain_N)) < CLEAR or not are_apart(one_W, other_W):
        return none
    sign = -1 if _is_turned(swapped_N) else 1
    return (sign * gain_N < -CERTAIN) & (sign * source_N < 0) & (sign * target_N < 0)


def of_one_language(source: WordStatistics, target: WordStatistics, pairs: AlignedPairs, swapped_N: Mask) -> bool:
    """Whether both sides are in one language, as texts and their summaries are; few pairs are not judged."""
    return len(pairs) >= FEWEST_PAIRS and not are_apart(*_of_languages(source, target, pairs, swapped_N))


def _is_turned(swapped_N: Mask) -> bool:
    """Whether the swapped pairs are the right ones: most of them are, or about half and the first among them."""
    share, first = swapped_N.mean(), swapped_N[: max(len(swapped_N) // 20, 1)].mean()
    return bool(share > 0.5 if abs(share - 0.5) > ABOUT_HALF else first > 0.5)


def _of_languages(
    source: WordStatistics, target: WordStatistics, pairs: AlignedPairs, swapped_N: Mask
) -> tuple[Floats, Floats]:
    """(W,) How many lines of each language have each word, those of swapped pairs in their own language."""
    (of_source, turned_source), (of_target, turned_target) = (
        [_lines_with(words, _chosen(words, rows[mask])) for mask in (~swapped_N, swapped_N)]
        for words, rows in ((source, pairs.source_rows), (target, pairs.target_rows))
    )
    return of_source + turned_target, of_target + turned_source


def _chosen(words: WordStatistics, rows: NDArray[np.int64]) -> Mask:
    mask_L = np.zeros(len(words), np.bool_)
    mask_L[rows] = True
    return mask_L


@dataclass(frozen=True)
class Strangers:
    """Lines in another language than the rest of their side. of_other_side: it is that of the other side."""

    lines: Mask
    of_other_side: bool = False


def strangers(words: WordStatistics, other: WordStatistics, judged_L: Mask) -> Strangers:
    """The lines among `judged_L` that are in another language than most of them."""
    nobody = Strangers(np.zeros(len(words), np.bool_))
    all_W = _lines_with(words, judged_L)
    if judged_L.sum() < FEWEST_PAIRS or words.by_character or not all_W.any():
        return nobody
    length_L = _sums(words, np.where(_no_language(), 0.0, 1.0))
    strange_L = judged_L & _lacks_common_words(words, all_W, length_L, judged_L)
    for _ in range(ROUNDS):
        if strange_L.sum() < FEWEST_LINES:
            return nobody
        own_W = _lines_with(words, strange_L)
        found_L = judged_L & (length_L >= FEWEST_TOLD) & (_sums(words, _log_odds(own_W, all_W - own_W)) > LIKELY)
        if (found_L == strange_L).all():
            break
        strange_L = found_L
    own_W, count = _lines_with(words, strange_L), int(strange_L.sum())
    together = np.sort(own_W)[-5:].mean() >= max(USUAL * count, USUAL_LINES)
    if count < FEWEST_LINES or not together or not are_apart(own_W, all_W - own_W):
        return nobody
    return Strangers(strange_L, _rare(own_W, _lines_with(other, np.ones(len(other), np.bool_))) < 1 - MOST_RARE)


def _lacks_common_words(words: WordStatistics, all_W: Floats, length_L: Floats, judged_L: Mask) -> Mask:
    """Lines with far fewer of the side's commonest words than lines of their length have."""
    common_W = np.zeros(BUCKETS)
    common_W[np.argsort(-all_W)[:COMMON]] = 1
    has_L = _sums(words, common_W)
    share = has_L[judged_L].sum() / max(length_L[judged_L].sum(), 1)
    spread_L = np.sqrt(np.maximum(share * (1 - share) * length_L, 1e-9))
    return (length_L >= FEWEST_WORDS) & (has_L < share * length_L - LACKS * spread_L)
