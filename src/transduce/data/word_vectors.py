"""Word vectors counted from sentence pairs: near are words that stand among the same words, and what translates them.

    M(f, c)  =  max(0, log p(f, c) / (p(f) q(c))),   q(c) ~ count(c)^(3/4)
    vectors of the target:   U S^(1/2) of the truncated M ~ U S V^T
    vector of a source word e:   sum_f t(f | e) vector(f)

M is positive pointwise mutual information with smoothed contexts, and U S^(1/2) what is best kept of it (Levy, Goldberg
& Dagan 2015, "Improving distributional similarity with lessons learned from word embeddings", sections 2.1, 3.2, 3.3).
A context c is a word up to `REACH` places before f, or one after it, which are told apart; one at distance d counts 1/d
(Pennington et al. 2014, section 4.2). t is IBM model 1's (`lexicon`). Every vector has length 1.

Shapes: T tokens, N sentences, K neighbours, U different ones, S source ids, V target ids, C contexts, W width.
"""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from transduce.data.lexicon import Ints, LinkedPairs, Reals, translation_table

REACH = 4
SMOOTHING = 0.75
SPARE = 16  # columns more than are wanted, and passes: both make a sketched decomposition exact
PASSES = 4


class WordVectors(NamedTuple):
    """fp32, a row for each word of one side, of length 1; 0 for one that occurs nowhere. And how often each occurs."""

    rows_VW: Tensor
    count_V: Tensor


def word_vectors(
    pairs: LinkedPairs, sizes: tuple[int, int], width: int, advance: Callable[[int], None] = lambda pairs: None
) -> tuple[WordVectors, WordVectors]:
    """Those of the source and of the target of `pairs`, whose ids are below `sizes`.

    advance: told how many more pairs were looked at; (1 + lexicon.ITERATIONS) times each.
    """
    target_VW = normalize(_decomposed(mutual_information(pairs.target, pairs.target_length_N, sizes[1]), width))
    source_SW = normalize(torch.sparse.mm(_translations(pairs, sizes, advance), target_VW))
    count_S, count_V = (_counts(ids, size) for ids, size in zip((pairs.source, pairs.target), sizes, strict=True))
    return WordVectors(source_SW, count_S), WordVectors(target_VW, count_V)


def mixed(sides: Iterable[WordVectors]) -> Tensor:
    """(V, W): the mean of one id's vectors, each by how often it occurs there, made of length 1."""
    return normalize(sum((side.count_V[:, None] * side.rows_VW for side in sides), torch.zeros(())))


def mutual_information(token_T: Ints, length_N: Ints, size: int) -> Tensor:
    """M (V, 2 V), sparse, fp32: words by words before them, then by words after them."""
    code_U, count_U = _neighbours(token_T, length_N, size)
    word_U, context_U = np.divmod(code_U, 2 * size)
    word_V = np.bincount(word_U, count_U, minlength=size)
    context_C = np.bincount(context_U, count_U, minlength=2 * size) ** SMOOTHING
    value_U = np.log(count_U * context_C.sum() / (word_V[word_U] * context_C[context_U]))
    kept_U = value_U > 0
    return _sparse(word_U[kept_U], context_U[kept_U], value_U[kept_U], (size, 2 * size))


def _neighbours(token_T: Ints, length_N: Ints, size: int) -> tuple[Ints, Reals]:
    """f 2 V + c of all different words and contexts, in rising order, and how much each counts."""
    sentence_T = np.repeat(np.arange(len(length_N)), length_N)
    codes, counts = [], []
    for distance in range(1, REACH + 1):
        together_T = sentence_T[distance:] == sentence_T[:-distance]
        before_K, after_K = token_T[:-distance][together_T], token_T[distance:][together_T]
        code_K = np.concatenate([after_K * 2 * size + before_K, before_K * 2 * size + size + after_K])
        code_U, times_U = np.unique(code_K, return_counts=True)
        codes.append(code_U)
        counts.append(times_U / distance)
    all_U, place = np.unique(np.concatenate(codes), return_inverse=True)
    count_U: Reals = np.bincount(place, np.concatenate(counts), minlength=len(all_U)).astype(np.float64, copy=False)
    return all_U, count_U


def _translations(pairs: LinkedPairs, sizes: tuple[int, int], advance: Callable[[int], None]) -> Tensor:
    """t(f | e) as (S, V), sparse, fp32."""
    code_U, t_U = translation_table(pairs, sizes, advance=advance)
    e_U, f_U = np.divmod(code_U, sizes[1])
    word_U = e_U < sizes[0]  # not NULL
    return _sparse(e_U[word_U], f_U[word_U], t_U[word_U], sizes)


def _sparse(row_U: Ints, column_U: Ints, value_U: Reals, shape: tuple[int, int]) -> Tensor:
    places = torch.from_numpy(np.stack([row_U, column_U]))
    values = torch.from_numpy(value_U.astype(np.float32))
    return torch.sparse_coo_tensor(places, values, shape, check_invariants=True).coalesce()


def _decomposed(matrix_VC: Tensor, width: int) -> Tensor:
    """U S^(1/2) of its `width` largest singular values, (V, W); zeros behind where there are fewer."""
    kept = min(width, *matrix_VC.shape)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # of the sketch that it begins with
        u_VK, s_K, _ = torch.svd_lowrank(matrix_VC, min(kept + SPARE, *matrix_VC.shape), PASSES)
    vectors_VW = torch.zeros(len(matrix_VC), width)
    rows = torch.unique(matrix_VC.indices()[0])  # a row of zeros is left to rounding otherwise
    vectors_VW[rows, :kept] = u_VK[rows, :kept] * s_K[:kept].sqrt()
    return vectors_VW


def _counts(ids: Ints, size: int) -> Tensor:
    return torch.from_numpy(np.bincount(ids, minlength=size).astype(np.float32))
