"""Trees of a sentence: sum, best one and probabilities against a walk over every tree; gradients by differences."""

import math
import random
from collections.abc import Iterator
from functools import cache
from itertools import product

import pytest
import torch
from torch import Tensor

from transduce.data.structures.binary_trees import binarised
from transduce.data.structures.trees import Bracket, ParseTree
from transduce.layers.tree_crf import (
    NO_NODE,
    best_trees,
    log_likelihood,
    log_partition,
    node_log_probabilities,
    tree_score,
)

Phrases = tuple[Bracket, ...]
SIZES = [(1, 4), (2, 4), (3, 3), (4, 3), (5, 2), (6, 2)]  # words, and labels with that of no phrase


@cache
def phrases_over(start: int, end: int, labels: int) -> list[Phrases]:
    """All trees under one phrase over the words [start, end), in which no two phrases have the same words."""
    names = [str(each) for each in range(1, labels)]
    if end - start == 1:
        return [(Bracket(name, start, end),) for name in names]
    inner = [each for middle in range(start + 1, end) for each in parts(start, middle, end, labels)]
    return [(Bracket(name, start, end), *each) for name in names for each in inner]


def parts(start: int, middle: int, end: int, labels: int) -> Iterator[Phrases]:
    """The parts of a phrase, of which the first is [start, middle)."""
    for one, others in product(part(start, middle, labels), rows_of_parts(middle, end, labels)):
        yield one + others


@cache
def part(start: int, end: int, labels: int) -> list[Phrases]:
    """A phrase, or a word by itself."""
    return phrases_over(start, end, labels) + ([()] if end - start == 1 else [])


@cache
def rows_of_parts(start: int, end: int, labels: int) -> list[Phrases]:
    """One part or several."""
    return part(start, end, labels) + [
        each for middle in range(start + 1, end) for each in parts(start, middle, end, labels)
    ]


@cache
def every_tree(words: int, labels: int) -> list[tuple[tuple[int, int, int], ...]]:
    """The nodes (first word, last word, label) of each tree's binary one."""
    found = []
    for brackets in phrases_over(0, words, labels):
        tree = ParseTree(("w",) * words, ("t",) * words, tuple(brackets))
        found.append(tuple((start, end - 1, int(label or 0)) for label, start, end in binarised(tree)))
    return found


def scored(scores: list[list[list[float]]], tree: tuple[tuple[int, int, int], ...]) -> float:
    return sum(scores[first][last][label] for first, last, label in tree)


def chart_of(trees: list[tuple[tuple[int, int, int], ...]], words: int) -> Tensor:
    labels_BNN = torch.full((len(trees), words, words), NO_NODE)
    for row, tree in enumerate(trees):
        for first, last, label in tree:
            labels_BNN[row, first, last] = label
    return labels_BNN


def drawn(rows: int, words: int, labels: int, seed: int = 1) -> Tensor:
    return torch.randn(rows, words, words, labels, generator=torch.Generator().manual_seed(seed)).double() * 2


@pytest.mark.parametrize(("words", "labels"), SIZES)
def test_sum_and_best_tree_are_those_of_a_walk_over_all_trees(words: int, labels: int) -> None:
    trees = every_tree(words, labels)
    assert len({*trees}) == len(trees)  # each tree is one binary tree
    for seed in range(3):
        scores_1NNC = drawn(1, words, labels, seed)
        table = scores_1NNC[0].tolist()
        each = [scored(table, tree) for tree in trees]
        top = max(each)
        total = top + math.log(math.fsum(math.exp(one - top) for one in each))
        length_1 = torch.tensor([words])
        assert float(log_partition(scores_1NNC, length_1)) == pytest.approx(total, abs=1e-9)
        best_1NN = best_trees(scores_1NNC, length_1)
        assert torch.equal(best_1NN, chart_of([trees[each.index(top)]], words))
        some = random.Random(seed).sample(trees, min(5, len(trees)))
        labels_BNN = chart_of(some, words)
        many = scores_1NNC.expand(len(some), -1, -1, -1), labels_BNN, length_1.expand(len(some))
        wanted = torch.tensor([scored(table, tree) - total for tree in some], dtype=torch.float64)
        torch.testing.assert_close(log_likelihood(*many), wanted)
        nodes_BNN = node_log_probabilities(*many)
        torch.testing.assert_close(nodes_BNN.sum((1, 2)), wanted)
        assert bool((nodes_BNN <= 1e-9).all())
        assert bool((nodes_BNN[labels_BNN == NO_NODE] == 0).all())


def root_of(tree: tuple[tuple[int, int, int], ...]) -> tuple[int, int]:
    """The label of the root, and where its first part ends: the longest node that begins there and ends before it."""
    *_, (_, end, label) = tree
    return label, max(last for first, last, _ in tree if first == 0 and last < end)


def test_a_node_has_the_share_of_trees_that_go_on_as_it_does() -> None:
    """The label of the root and where its parts meet: all trees in which they are so, among all trees."""
    words, labels = 4, 3
    scores_1NNC, trees = drawn(1, words, labels), every_tree(words, labels)
    each = torch.tensor([scored(scores_1NNC[0].tolist(), tree) for tree in trees], dtype=torch.float64)
    for wanted in trees[:: len(trees) // 6]:
        alike = torch.tensor([root_of(tree) == root_of(wanted) for tree in trees])
        share = float(each[alike].logsumexp(0) - each.logsumexp(0))
        found = node_log_probabilities(scores_1NNC, chart_of([wanted], words), torch.tensor([words]))
        assert float(found[0, 0, words - 1]) == pytest.approx(share, abs=1e-9)


def test_a_label_that_nobody_knows_may_be_any_phrase() -> None:
    scores_1NNC = drawn(1, 3, 4)
    [tree] = [each for each in every_tree(3, 4) if each == ((0, 0, 0), (1, 1, 0), (0, 1, 2), (2, 2, 0), (0, 2, 1))]
    label_1NN = chart_of([tree], 3)
    label_1NN[0, 0, 1] = 4
    known = [tuple((*node[:2], label) if node[:2] == (0, 1) else node for node in tree) for label in (1, 2, 3)]
    table = scores_1NNC[0].tolist()
    wanted = torch.tensor([scored(table, each) for each in known], dtype=torch.float64).logsumexp(0, keepdim=True)
    torch.testing.assert_close(tree_score(scores_1NNC, label_1NN), wanted)


def test_gradients_are_those_of_differences() -> None:
    length_B, words = torch.tensor([4, 1, 3]), 4
    scores_BNNC = drawn(3, words, 3).requires_grad_()
    assert torch.autograd.gradcheck(lambda scores: log_partition(scores, length_B), scores_BNNC)
    labels_BNN = torch.full((3, words, words), NO_NODE)
    for row, length in enumerate(length_B.tolist()):
        labels_BNN[row, :length, :length] = chart_of([every_tree(length, 3)[-1]], length)[0]
    labels_BNN[0, 0, 3] = 3
    assert torch.autograd.gradcheck(lambda scores: log_likelihood(scores, labels_BNN, length_B), scores_BNNC)


def test_the_gradient_of_the_sum_is_how_probable_each_node_is() -> None:
    scores_1NNC, trees = drawn(1, 4, 3).requires_grad_(), every_tree(4, 3)
    log_partition(scores_1NNC, torch.tensor([4])).sum().backward()
    each = torch.tensor([scored(scores_1NNC[0].tolist(), tree) for tree in trees], dtype=torch.float64).softmax(0)
    wanted = torch.zeros_like(scores_1NNC[0])
    for tree, share in zip(trees, each, strict=True):
        for first, last, label in tree:
            wanted[first, last, label] += share
    assert scores_1NNC.grad is not None
    torch.testing.assert_close(scores_1NNC.grad[0], wanted)


def test_a_sentence_in_a_batch_is_what_it_is_alone() -> None:
    """Whatever lies behind its end."""
    lengths = [1, 7, 3, 12, 2]
    scores_BNNC = drawn(5, 12, 6).float() * 3
    together = log_partition(scores_BNNC, torch.tensor(lengths)), best_trees(scores_BNNC, torch.tensor(lengths))
    for row, length in enumerate(lengths):
        alone = scores_BNNC[row : row + 1, :length, :length], torch.tensor([length])
        torch.testing.assert_close(together[0][row : row + 1], log_partition(*alone), rtol=0, atol=1e-5)
        assert torch.equal(together[1][row, :length, :length], best_trees(*alone)[0])
        behind = together[1][row].clone()
        behind[:length, :length] = NO_NODE
        assert bool((behind == NO_NODE).all())
