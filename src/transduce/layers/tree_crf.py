"""A conditional random field over the trees of a sentence (Zhang, Zhou and Li 2020, sections 2 and 3).

    s(x, y) = sum over nodes (i, j, l) of the binary tree y of s_{i,j,l}
    p(y | x) = exp s(x, y) / Z(x),   Z(x) = sum over trees y' of exp s(x, y')

A node is the words i .. j with label l; label 0 says that it is no phrase. The trees are those of
`transduce.data.structures.binary_trees`: of a node's two parts the first is a phrase or a word, and the root is a
phrase. So each tree over phrases is one binary tree, and counts once. With a_{i,j} = log sum_{l > 0} exp s_{i,j,l},
and b_{i,j} the same over all labels, the inside algorithm (Baker 1979) is, width by width,

    m_{i,j} = log sum_k exp(f_{i,k} + g_{k+1,j}),   f_{i,j} = m_{i,j} + a_{i,j},   g_{i,j} = m_{i,j} + b_{i,j}

where f_{i,i} = g_{i,i} = b_{i,i}, and log Z = f_{1,N}, or a_{1,1} of one word. The outside algorithm is its gradient.
The best tree has the maximum in the place of each sum (Cocke, Kasami and Younger; Stern et al. 2017, section 3).

All spans of a width are computed at once. Rows of a batch do not touch each other, and what lies behind the end of a
sentence is in no tree of it.

Shapes: B sentences, N words, C labels, M splits of a span, T spans of a width.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

NO_NODE = -1  # in the place of a label, where a tree has no node


class SpanSums(NamedTuple):
    """Of each span (B, N, N), from its first to its last word: a, its phrases alone; b, all its labels."""

    phrase_BNN: Tensor
    any_BNN: Tensor


class InsideSums(NamedTuple):
    """f by start and width, and g by end and width, both (B, N + 1, N + 1); m by start and width."""

    first: Tensor
    second: Tensor
    parts: Tensor


def log_partition(scores_BNNC: Tensor, length_B: Tensor) -> Tensor:
    """(B,): log Z of sentences with so many words, of the scores of their spans from first to last word."""
    return _log_z(_sums(scores_BNNC), length_B)


def tree_score(scores_BNNC: Tensor, label_BNN: Tensor) -> Tensor:
    """(B,): s(x, y). A label of C is one that nobody knows: the log of the sum over all phrases.

    Args:
        label_BNN: of each node, and `NO_NODE` where there is none.
    """
    return _tree_score(scores_BNNC, _sums(scores_BNNC), label_BNN)


def log_likelihood(scores_BNNC: Tensor, label_BNN: Tensor, length_B: Tensor) -> Tensor:
    """(B,): log p(y | x), with gradient; arguments as of `tree_score`."""
    sums = _sums(scores_BNNC)
    return _tree_score(scores_BNNC, sums, label_BNN) - _log_z(sums, length_B)


def best_trees(scores_BNNC: Tensor, length_B: Tensor) -> Tensor:
    """(B, N, N) int64: the labels of the nodes of each sentence's likeliest tree, and `NO_NODE`."""
    phrase, any_ = scores_BNNC[..., 1:].max(3), scores_BNNC.max(3)
    _, split = _filled(SpanSums(phrase.values, any_.values), _highest)
    splits, phrase_labels, labels = (each.tolist() for each in (split, phrase.indices + 1, any_.indices))
    found_BNN = torch.full(scores_BNNC.shape[:3], NO_NODE)
    for row, length in enumerate(length_B.tolist()):
        waiting = [(0, length, True)]
        while waiting:
            start, end, is_phrase = waiting.pop()
            labelled = phrase_labels if is_phrase else labels
            found_BNN[row, start, end - 1] = labelled[row][start][end - 1]
            if end - start > 1:
                middle = start + 1 + splits[row][start][end - start]
                waiting += [(start, middle, middle - start > 1), (middle, end, False)]
    return found_BNN


def node_log_probabilities(scores_BNNC: Tensor, label_BNN: Tensor, length_B: Tensor) -> Tensor:
    """(B, N, N): of each node of the tree, log p(its label and where its parts meet | its words, and what it is part
    of); 0 elsewhere. They sum to log p(y | x).
    """
    sums = _sums(scores_BNNC)
    chart, _ = _filled(sums, _summed)
    own_BNN = _own_scores(scores_BNNC, sums, label_BNN)
    first, second, found = chart.first.tolist(), chart.second.tolist(), own_BNN.tolist()
    phrase, any_ = sums.phrase_BNN.tolist(), sums.any_BNN.tolist()
    for row, (labels, length) in enumerate(zip(label_BNN.tolist(), length_B.tolist(), strict=True)):
        waiting = [(0, length, True)]
        while waiting:
            start, end, is_first = waiting.pop()
            width = end - start
            if width == 1:
                found[row][start][start] -= (phrase if length == 1 else any_)[row][start][start]
                continue
            middle = next(k for k in range(end - 1, start, -1) if _joins(labels, start, k, end))
            inner = first[row][start][middle - start] + second[row][end][end - middle]
            found[row][start][end - 1] += inner - (first[row][start] if is_first else second[row][end])[width]
            waiting += [(start, middle, True), (middle, end, False)]
    return torch.tensor(found, dtype=own_BNN.dtype)


def node_marginals(scores_BNNC: Tensor, label_BNN: Tensor, length_B: Tensor) -> Tensor:
    """(B, N, N): of each node of the tree, the probability that a tree has it with its label; 0 elsewhere."""
    with torch.inference_mode(False), torch.enable_grad():
        own_BNNC = scores_BNNC.detach().clone().requires_grad_()
        [share_BNNC] = torch.autograd.grad(log_partition(own_BNNC, length_B.clone()).sum(), [own_BNNC])
    return share_BNNC.gather(3, label_BNN.clamp(min=0)[..., None])[..., 0].masked_fill(label_BNN == NO_NODE, 0.0)


def _joins(labels: list[list[int]], start: int, middle: int, end: int) -> bool:
    return labels[start][middle - 1] != NO_NODE and labels[middle][end - 1] != NO_NODE


def _sums(scores_BNNC: Tensor) -> SpanSums:
    phrase_BNN = scores_BNNC[..., 1:].logsumexp(3)
    return SpanSums(phrase_BNN, torch.logaddexp(phrase_BNN, scores_BNNC[..., 0]))


def _own_scores(scores_BNNC: Tensor, sums: SpanSums, label_BNN: Tensor) -> Tensor:
    """(B, N, N): the scores of a tree's nodes, 0 elsewhere."""
    labels = scores_BNNC.shape[3]
    own_BNN = scores_BNNC.gather(3, label_BNN.clamp(0, labels - 1)[..., None])[..., 0]
    known_BNN = torch.where(label_BNN == labels, sums.phrase_BNN, own_BNN)
    return known_BNN.masked_fill(label_BNN == NO_NODE, 0.0)


def _tree_score(scores_BNNC: Tensor, sums: SpanSums, label_BNN: Tensor) -> Tensor:
    return _own_scores(scores_BNNC, sums, label_BNN).sum((1, 2))


def _log_z(sums: SpanSums, length_B: Tensor) -> Tensor:
    found_B: Tensor = _LogPartition.apply(sums.phrase_BNN, sums.any_BNN, length_B)  # type: ignore[no-untyped-call]
    return found_B


def _summed(sums_BTM: Tensor) -> tuple[Tensor, None]:
    return sums_BTM.logsumexp(2), None


def _highest(sums_BTM: Tensor) -> tuple[Tensor, Tensor]:
    best = sums_BTM.max(2)
    return best.values, best.indices


def _filled(sums: SpanSums, reduce: Callable[[Tensor], tuple[Tensor, Tensor | None]]) -> tuple[InsideSums, Tensor]:
    """The chart, and by start and width (B, N, N + 1) the first part's number of words - 1, of what is a maximum."""
    rows, words = sums.any_BNN.shape[:2]
    first, second, parts = (sums.any_BNN.new_zeros(rows, words + 1, words + 1) for _ in range(3))
    split = torch.zeros(rows, words, words + 1, dtype=torch.int64, device=first.device)
    first[:, :-1, 1] = second[:, 1:, 1] = sums.any_BNN.diagonal(0, 1, 2)
    for width in range(2, words + 1):
        starts = words - width + 1
        found_BT, place_BT = reduce(_splits(first, second, width))
        parts[:, :starts, width] = found_BT
        first[:, :starts, width] = found_BT + sums.phrase_BNN.diagonal(width - 1, 1, 2)
        second[:, width:, width] = found_BT + sums.any_BNN.diagonal(width - 1, 1, 2)
        if place_BT is not None:
            split[:, :starts, width] = place_BT
    return InsideSums(first, second, parts), split


def _splits(first: Tensor, second: Tensor, width: int) -> Tensor:
    """(B, T, M): f of the first part plus g of the second, for each split of each span of this width."""
    starts = first.shape[1] - width
    return first[:, :starts, 1:width] + second[:, width:, 1:width].flip(2)


class _LogPartition(torch.autograd.Function):
    """log Z by the inside algorithm, and its gradient by the outside algorithm, both in place."""

    @staticmethod
    def forward(ctx: Any, phrase_BNN: Tensor, any_BNN: Tensor, length_B: Tensor) -> Tensor:
        """(B,)."""
        chart, _ = _filled(SpanSums(phrase_BNN, any_BNN), _summed)
        ctx.save_for_backward(*chart, length_B)
        row_B = torch.arange(len(length_B), device=length_B.device)
        return torch.where(length_B == 1, phrase_BNN[:, 0, 0], chart.first[row_B, 0, length_B])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        """The probability of each span as a phrase or first part, and as a second part."""
        first, second, parts, length_B = ctx.saved_tensors
        gradient_B, words = gradients[0], first.shape[1] - 1
        of_first, of_second = torch.zeros_like(first), torch.zeros_like(second)
        row_B = torch.arange(len(length_B), device=length_B.device)
        of_first[row_B, 0, length_B] = gradient_B
        of_phrase, of_any = (first.new_zeros(len(first), words, words) for _ in range(2))
        for width in range(words, 1, -1):
            starts = words - width + 1
            of_phrase_BT, of_any_BT = of_first[:, :starts, width], of_second[:, width:, width]
            of_phrase.diagonal(width - 1, 1, 2).copy_(of_phrase_BT)
            of_any.diagonal(width - 1, 1, 2).copy_(of_any_BT)
            share_BTM = (_splits(first, second, width) - parts[:, :starts, width, None]).exp()
            share_BTM *= (of_phrase_BT + of_any_BT)[..., None]
            of_first[:, :starts, 1:width] += share_BTM
            of_second[:, width:, 1:width] += share_BTM.flip(2)
        of_word_BN = of_first[:, :-1, 1] + of_second[:, 1:, 1]
        alone_B = length_B == 1
        of_phrase[:, 0, 0] = torch.where(alone_B, of_word_BN[:, 0], 0.0)
        of_any.diagonal(0, 1, 2).copy_(of_word_BN)
        of_any[:, 0, 0] = torch.where(alone_B, 0.0, of_word_BN[:, 0])
        return of_phrase, of_any, None
