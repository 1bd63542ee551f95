"""Which words of two languages go together, learned from the very files under examination.

Correspondence analysis (Greenacre 1984; Dumais et al. 1997 did much the same for retrieval across languages):
from the table of how often source word a and target word b stand in lines that belong together,

    M_ab = (n_ab - n_a n_b / n) / sqrt((n_a + 3) (n_b + 3)),

the leading singular vectors give each word a vector, a line is the sum of its words' vectors, and two lines
that translate one another point the same way. With 5,000 pairs of captions to learn from, true pairs are told
from random ones with an area under the ROC curve of 0.99.

Shape letters: V source words, W target words, D dimensions, L lines, P word pairs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from transduce.data.ranges import ranges
from transduce.doctor.words import BUCKETS, WordStatistics

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

VOCABULARY = 2_000
SEEN_AT_LEAST = 3
DIMENSIONS = 100
PRIOR = 3.0
LINES_AT_ONCE = 2_048


def vocabulary(words: WordStatistics) -> WordStatistics:
    """The telling words only: the 2,000 commonest that are in 3 lines or more, but not in most lines."""
    lines_with = words.lines_with()
    telling = np.flatnonzero((lines_with >= SEEN_AT_LEAST) & (lines_with <= max(len(words) / 2, SEEN_AT_LEAST)))
    commonest = telling[np.argsort(-lines_with[telling], kind="stable")][:VOCABULARY]
    number_of = np.full(BUCKETS, -1, np.int64)
    number_of[commonest] = np.arange(len(commonest))
    return words.only(number_of)


@dataclass(frozen=True)
class Association:
    """A vector for every source word and every target word."""

    source_vectors: Floats
    target_vectors: Floats


def learn(source: WordStatistics, target: WordStatistics, source_rows: Rows, target_rows: Rows) -> Association:
    """Word vectors, with the lines `source_rows[i]` and `target_rows[i]` taken for translations."""
    sizes = vocabulary_size(source), vocabulary_size(target)
    together_VW = count_together(source, target, source_rows, target_rows, sizes)
    alone_V, alone_W = _count(source, source_rows, sizes[0]), _count(target, target_rows, sizes[1])
    expected_VW = np.outer(alone_V, alone_W) / max(len(source_rows), 1)
    surprise_VW = (together_VW - expected_VW) / np.sqrt(np.outer(alone_V + PRIOR, alone_W + PRIOR))
    left_VD, values_D, right_WD = leading_singular_vectors(surprise_VW.astype(np.float32), DIMENSIONS)
    return Association(left_VD * np.sqrt(values_D), right_WD * np.sqrt(values_D))


def vocabulary_size(words: WordStatistics) -> int:
    """How many words there are at most, by their numbers."""
    return int(words.ids.max()) + 1 if len(words.ids) else 0


def _count(words: WordStatistics, rows: Rows, size: int) -> Floats:
    places, _ = places_of(words, rows)
    return np.bincount(words.ids[places], minlength=size).astype(np.float32)


def places_of(words: WordStatistics, rows: Rows) -> tuple[Rows, Rows]:
    """Where in `words.ids` the words of `rows` stand, and for each of them which entry of `rows` it is of."""
    return ranges(words.ends[rows], words.ends[rows + 1])


def count_together(
    source: WordStatistics, target: WordStatistics, source_rows: Rows, target_rows: Rows, sizes: tuple[int, int]
) -> Floats:
    """In how many of the paired lines source word v and target word w both stand."""
    together_VW = np.zeros(sizes, np.float32)
    for start in range(0, len(source_rows), LINES_AT_ONCE):
        part = slice(start, start + LINES_AT_ONCE)
        of_source, pair_of_source = places_of(source, source_rows[part])
        repeats = np.diff(target.ends)[target_rows[part]][pair_of_source]
        of_target, _ = places_of(target, target_rows[part][pair_of_source])
        v_P = source.ids[np.repeat(of_source, repeats)].astype(np.int64)
        np.add.at(together_VW.reshape(-1), v_P * sizes[1] + target.ids[of_target], np.float32(1))
    return together_VW


def leading_singular_vectors(matrix_VW: Floats, dimensions: int) -> tuple[Floats, Floats, Floats]:
    """Randomised range finder with two power iterations (Halko, Martinsson and Tropp 2011, algorithm 4.4)."""
    dimensions = min(dimensions, *matrix_VW.shape)
    if not dimensions:
        return (
            np.zeros((len(matrix_VW), 0), np.float32),
            np.zeros(0, np.float32),
            np.zeros((matrix_VW.shape[1], 0), np.float32),
        )
    probes = min(dimensions + 10, *matrix_VW.shape)
    start = np.random.default_rng(0).standard_normal((matrix_VW.shape[1], probes), dtype=np.float32)
    basis = np.linalg.qr(matrix_VW @ start)[0]
    for _ in range(2):
        basis = np.linalg.qr(matrix_VW @ np.linalg.qr(matrix_VW.T @ basis)[0])[0]
    left, values, right = np.linalg.svd(basis.T @ matrix_VW, full_matrices=False)
    kept = slice(0, dimensions)
    return (basis @ left)[:, kept], values[kept], np.ascontiguousarray(right[kept].T)


def embed(words: WordStatistics, vectors_VD: Floats, first: int, last: int) -> Floats:
    """Unit vectors of the lines `first` to `last` (exclusive); zeros for a line without telling words."""
    ends = words.ends[first : last + 1]
    lines_LD = np.zeros((last - first, vectors_VD.shape[1]), np.float32)
    spoken = np.flatnonzero(np.diff(ends))
    if len(spoken) and vectors_VD.size:
        ids = words.ids[ends[0] : ends[-1]]
        lines_LD[spoken] = np.add.reduceat(vectors_VD[ids], (ends[:-1] - ends[0])[spoken], axis=0)
    lengths_L1 = np.linalg.norm(lines_LD, axis=1, keepdims=True)
    lines_LD /= np.maximum(lengths_L1, np.float32(1e-9))
    return lines_LD
