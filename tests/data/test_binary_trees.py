"""Trees as binary ones and back: every tree of the Penn Treebank's sample, and the column that holds them."""

from pathlib import Path

import numpy as np
import pytest
import torch

from transduce.core.errors import InputError
from transduce.data.columns.binary_trees import BinaryTrees
from transduce.data.columns.packed import pack, unpack
from transduce.data.structures.binary_trees import binarised, unbinarised
from transduce.data.structures.trees import Bracket, ParseTree, parse_tree, read_trees

TREE = "(S (NP (DT the) (JJ old) (NN cat)) (VP (VP (VBD slept))) (. .))"


def spans_of(nodes: list[Bracket]) -> list[tuple[str, int, int]]:
    return [tuple(each) for each in nodes]


def test_what_a_binary_tree_is() -> None:
    """Written by hand: all parts but the first in a phrase without a label; chains are one label."""
    assert spans_of(binarised(parse_tree(TREE))) == [
        ("", 0, 1),
        ("", 1, 2),
        ("", 2, 3),
        ("", 1, 3),
        ("NP", 0, 3),
        ("VP VP", 3, 4),
        ("", 4, 5),
        ("", 3, 5),
        ("S", 0, 5),
    ]
    with pytest.raises(InputError, match="one phrase over all its words"):
        binarised(ParseTree(("a", "b"), ("X", "X"), (Bracket("NP", 0, 1),)))


def check(tree: ParseTree) -> None:
    nodes = binarised(tree)
    assert len(nodes) == 2 * len(tree.words) - 1
    spans = {(start, end) for _, start, end in nodes}
    assert len(spans) == len(nodes)
    for _, start, end in nodes:  # of two parts, of which the first is a phrase or a word
        middles = [middle for middle in range(start + 1, end) if {(start, middle), (middle, end)} <= spans]
        assert len(middles) == (end - start > 1)
    assert unbinarised(tree.words, tree.tags, nodes) == tree
    assert unbinarised(tree.words, tree.tags, reversed(nodes)) == tree


def test_trees_of_the_treebank_come_back(data_root: Path) -> None:
    folder, count = data_root / "ptb_treebank_sample", 0
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    trees = [
        tree.simplified() for name in ("train", "dev", "test") for _, tree in read_trees(folder / f"{name}.mrg.gz")
    ]
    column = BinaryTrees.of(trees)
    for tree in trees:
        check(tree)
        nodes, tags = column.nodes(column.row_of(tree))
        assert unbinarised(tree.words, tags, nodes) == tree
        count += 1
    assert count == 3914


def test_a_deep_tree_needs_no_deep_stack() -> None:
    words, depth = 5000, 4999
    brackets = tuple(Bracket("X", place, words) for place in range(depth))
    check_ends = binarised(ParseTree(("w",) * words, ("t",) * words, brackets))
    assert len(check_ends) == 2 * words - 1


def column() -> BinaryTrees:
    return BinaryTrees.of([parse_tree(TREE)])


def test_a_row_is_a_tree_and_back() -> None:
    has = column()
    assert has.labels == ("NP", "S", "VP VP")
    assert has.word_tags == (".", "DT", "JJ", "NN", "VBD")
    [row] = has.encode([TREE])
    assert max(row) < has.spec.ids
    tokens = has.tokens(row)
    assert tokens[:6] == ["DT", "1()", "JJ", "1()", "NN", "1()"]
    assert tokens[-1] == "2(S)"
    assert has.ids(tokens) == row
    texts, tables = pack({"target": has})
    assert unpack(texts, tables)["target"] == has
    for wrong in (tokens[:-1], tokens[1:], [*tokens, "2(S)"], ["2(S)"], []):
        with pytest.raises(InputError, match="expected the nodes of"):
            has.ids(wrong)


def test_what_training_did_not_have_is_not_known() -> None:
    has = column()
    rows = [np.asarray(each, np.int32) for each in has.encode([TREE, "(S (QP (CD 3) (NN cat)) (. .))"])]
    targets = has.collate(rows)
    assert targets.labels.shape == (2, 5, 5)
    assert targets.tags.lengths.tolist() == [5, 3]
    assert targets.tags.values[1, :3].tolist() == [-1, 3, 0]
    unknown = has.spec.size
    assert targets.labels[1, :3, :3].tolist() == [[0, unknown, 2], [-1, 0, -1], [-1, -1, 0]]
    assert bool((targets.labels[1, 3:] == -1).all())
    wanted = torch.full((5, 5), -1)
    for label, start, end in binarised(parse_tree(TREE)):
        wanted[start, end - 1] = ["", "NP", "S", "VP VP"].index(label)
    assert torch.equal(targets.labels[0], wanted)
    assert has.nodes(rows[1].tolist())[0][2] == Bracket("?", 0, 2)
