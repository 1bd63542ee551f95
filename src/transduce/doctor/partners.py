"""Which pairs hold lines that do not belong together, judged by which words translate which in the other pairs.

IBM model 1 (Brown et al. 1993; `transduce.data.lexicon`) is learnt on one half of the pairs and judges the other, in
both directions. The score of a pair is the mean gain of its words over chance; how strangers score is seen from lines
that stand apart. How many pairs are wrong follows without a threshold: of a share p that are strangers, at least p
G(t) score below t, where G is how strangers score, so p <= F(t) / G(t) for every t (Blanchard, Lee and Scott 2010,
"Semi-supervised novelty detection"), and where no right pair scores that low it is equal.

Shape letters: V and W words of the two sides, N pairs, T target words, K links of a target word to a source word.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from transduce.doctor.alignment import AlignedPairs
from transduce.doctor.association import places_of, vocabulary, vocabulary_size
from transduce.doctor.words import WordStatistics

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]

FEWEST_PAIRS = 1_000  # from which translations are learnt well enough
FEWEST_WORDS = 2  # telling words of either side, from which a pair is judged
TAUGHT = 5_000  # pairs of a half that teach
STRANGERS = 5_000  # pairs, at most, that are made of lines which stand apart
APART = 41  # pairs
ITERATIONS = 4
NULL = 0.5  # weight of the empty word
SHRINK = 1.0  # pairs' worth of doubt about a word that was seen seldom
CHANCE = 0.1  # weight of "any word" beside the translation table
LEAST, MOST = -2.0, 4.0  # nats that one word counts
QUANTILES = (0.5, 0.75, 0.9)  # of the strangers' scores, at which their share is estimated
SHARE = 0.02  # from which it is told; clean corpora of news in languages with few pairs have up to 0.01
SURE = 0.9  # share of pairs below a score that are wrong, from which they are left out of a cleaned copy
PAIRS_AT_ONCE = 4_096


@dataclass(frozen=True)
class Partners:
    """worst: pairs that look wrong, the likeliest first, as many as there are thought to be. sure: (N,) the surest."""

    worst: Rows
    sure: Mask


def wrong_partners(source: WordStatistics, target: WordStatistics, pairs: AlignedPairs, judged_N: Mask) -> Partners:
    """Pairs among `judged_N` whose sides are no translations of one another."""
    nobody = Partners(np.zeros(0, np.int64), np.zeros(len(pairs), np.bool_))
    if judged_N.sum() < FEWEST_PAIRS or source.by_character or target.by_character:
        return nobody
    sides = vocabulary(source), vocabulary(target)
    enough = [words.per_line() >= FEWEST_WORDS for words in sides]
    judged = np.flatnonzero(judged_N & enough[0][pairs.source_rows] & enough[1][pairs.target_rows])
    if len(judged) < FEWEST_PAIRS:
        return nobody
    rows = pairs.source_rows[judged], pairs.target_rows[judged]
    score_N, strange = _scores(sides, rows)
    share = _share_of_strangers(score_N, strange)
    if share < SHARE:
        return nobody
    order = np.argsort(score_N, kind="stable")
    sure = np.zeros(len(pairs), np.bool_)
    sure[judged[order[: _how_many_sure(score_N[order], strange, share)]]] = True
    return Partners(judged[order[: round(share * len(order))]], sure)


def _share_of_strangers(score_N: Floats, strange: Floats) -> float:
    limits = np.quantile(strange, QUANTILES)
    return float(min((score_N <= limit).mean() / part for limit, part in zip(limits, QUANTILES, strict=True)))


def _how_many_sure(ordered_N: Floats, strange: Floats, share: float) -> int:
    """How many of the worst pairs can be taken for wrong, if `SURE` of them shall be."""
    strangers_N = share * len(ordered_N) * np.searchsorted(np.sort(strange), ordered_N, side="right") / len(strange)
    sure = np.flatnonzero(strangers_N >= SURE * np.arange(1, len(ordered_N) + 1))
    return int(sure[-1]) + 1 if len(sure) else 0


def _scores(sides: tuple[WordStatistics, WordStatistics], rows: tuple[Rows, Rows]) -> tuple[Floats, Floats]:
    """How well the words of each pair go together, and how well those of strangers do."""
    pairs = len(rows[0])
    half_N = np.arange(pairs) // max(pairs // 20, 16) % 2
    few = np.unique(np.linspace(0, pairs - 1, min(STRANGERS, pairs)).astype(np.int64))
    score_N, strange = np.zeros(pairs), np.zeros(len(few))
    for one, other in ((0, 1), (1, 0)):
        words = sides[one], sides[other]
        for judged in (0, 1):
            taught = np.flatnonzero(half_N != judged)
            taught = taught[:: -(-len(taught) // TAUGHT)]
            table = _learn(*words, rows[one][taught], rows[other][taught])
            mine, chosen = np.flatnonzero(half_N == judged), np.flatnonzero(half_N[few] == judged)
            score_N[mine] += _judge(table, *words, rows[one][mine], rows[other][mine])
            apart = rows[other][(few[chosen] + APART) % pairs]
            strange[chosen] += _judge(table, *words, rows[one][few[chosen]], apart)
    return score_N, strange


@dataclass(frozen=True)
class _Table:
    """t(w | v) as one row of V W numbers, and how frequent each of the W target words is."""

    t_VW: NDArray[np.float32]
    frequency_W: NDArray[np.float32]


@dataclass(frozen=True)
class _Links:
    """code: v W + w of each link. word: which target word each link is of. pair: which pair a target word is of."""

    code_K: Rows
    word_K: Rows
    target_T: Rows
    pair_T: Rows


def _links(source: WordStatistics, target: WordStatistics, source_rows: Rows, target_rows: Rows) -> _Links:
    places, pair_T = places_of(target, target_rows)
    target_T = target.ids[places].astype(np.int64)
    source_places, word_K = places_of(source, source_rows[pair_T])
    code_K = source.ids[source_places].astype(np.int64) * vocabulary_size(target) + target_T[word_K]
    return _Links(code_K, word_K, target_T, pair_T)


def _learn(source: WordStatistics, target: WordStatistics, source_rows: Rows, target_rows: Rows) -> _Table:
    links = _links(source, target, source_rows, target_rows)
    sizes = vocabulary_size(source), vocabulary_size(target)
    frequency_W = np.bincount(links.target_T, minlength=sizes[1]) / max(len(links.target_T), 1)
    t_VW = np.full(sizes[0] * sizes[1], 1 / sizes[1], np.float32)
    for _ in range(ITERATIONS):
        p_K = t_VW[links.code_K]
        total_T = np.bincount(links.word_K, p_K, minlength=len(links.target_T)) + NULL * frequency_W[links.target_T]
        count_VW = np.bincount(links.code_K, p_K / total_T[links.word_K], minlength=len(t_VW))
        by_source = count_VW.reshape(sizes)
        t_VW = (by_source / (by_source.sum(axis=1, keepdims=True) + SHRINK)).astype(np.float32).reshape(-1)
    return _Table(t_VW, frequency_W.astype(np.float32))


def _judge(
    table: _Table, source: WordStatistics, target: WordStatistics, source_rows: Rows, target_rows: Rows
) -> Floats:
    """The gain of each pair's target words over chance, by the root of their number: nats."""
    scores = [np.zeros(0)]
    for first, last in pairwise([*range(0, len(source_rows), PAIRS_AT_ONCE), len(source_rows)]):
        links = _links(source, target, source_rows[first:last], target_rows[first:last])
        total_T = np.bincount(links.word_K, table.t_VW[links.code_K], minlength=len(links.target_T))
        source_words = np.bincount(links.word_K, minlength=len(links.target_T))
        chance_T = table.frequency_W[links.target_T] + 1e-7
        ratio_T = (total_T / np.maximum(source_words, 1) + CHANCE * chance_T) / ((1 + CHANCE) * chance_T)
        gain_T = np.clip(np.log(ratio_T), LEAST, MOST)
        words = np.bincount(links.pair_T, minlength=last - first)
        scores.append(np.bincount(links.pair_T, gain_T, minlength=last - first) / np.sqrt(np.maximum(words, 1)))
    return np.concatenate(scores)
