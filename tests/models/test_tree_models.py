"""Models of trees: equality with a slow recursion from the paper, contracts, and what attention follows."""

import math
from collections.abc import Iterator
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

from grown_trees import WORDS, trees
from transduce.attention import capture
from transduce.core.errors import InputError
from transduce.core.padded import map_tree
from transduce.data.collate import Batch
from transduce.data.columns import ColumnSpec, Specs
from transduce.data.columns.node_labels import NodeLabels
from transduce.data.columns.tree_nodes import Forest, TreeNodes
from transduce.data.structures.labelled_trees import LabelledTree, parse_labelled_tree
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.models.tree_lstm import TreeLstm, TreeLstmConfig
from transduce.models.tree_transformer import TreeTransformer, TreeTransformerConfig
from transduce.objectives.node_label import NodeCrossEntropy

CELLS: list[Any] = ["child_sum", "binary"]
SPECS = Specs(ColumnSpec("tree_nodes", 12), ColumnSpec("node_labels", 3))


def columns() -> tuple[TreeNodes, NodeLabels]:
    tokenizer = train_tokenizer(TokenizerConfig(kind="whitespace", min_frequency=1), [*WORDS, "not"])
    assert tokenizer.size == SPECS.source.size  # type: ignore[union-attr]
    return TreeNodes.of(tokenizer), NodeLabels(("bad", "good", "none"))


def ids(source: TreeNodes, text: str) -> Any:
    import numpy as np

    return np.asarray(source.encode([text])[0], np.int32)


def model_of(kind: Any, config: Any) -> Any:
    torch.manual_seed(5)
    model = kind(config, SPECS)
    for each in model.parameters():
        torch.nn.init.normal_(each, std=0.5)
    return model.eval()


def nested(tree: LabelledTree) -> tuple[list[list[int]], int]:
    """The parts of each node, and the root."""
    waiting: list[int] = []
    parts: list[list[int]] = []
    for place, count in enumerate(tree.parts):
        parts.append(waiting[len(waiting) - count :])
        del waiting[len(waiting) - count :]
        waiting.append(place)
    return parts, waiting[0]


def slow_child_sum(model: TreeLstm, x: dict[int, Tensor], parts: list[list[int]], node: int, seen: Any) -> Any:
    """Equations 2 to 8 of Tai et al. 2015, one gate at a time."""
    below = [slow_child_sum(model, x, parts, part, seen) for part in parts[node]]
    width = model.output.in_features
    weight, bias, across = model.word.weight, model.word.bias, model.phrase.weight
    summed = sum((h for h, _ in below), torch.zeros(width, dtype=torch.float64))
    gates = []
    for gate in range(3):
        rows = slice(gate * width, (gate + 1) * width)
        given = weight[rows] @ x[node] if node in x else 0.0
        gates.append(given + across[rows] @ summed + bias[rows])
    c = gates[0].sigmoid() * gates[2].tanh()
    for h_k, c_k in below:
        c = c + (model.forget.weight @ h_k + model.forget.bias).sigmoid() * c_k
    seen[node] = gates[1].sigmoid() * c.tanh()
    return seen[node], c


def slow_binary(model: TreeLstm, x: dict[int, Tensor], parts: list[list[int]], node: int, seen: Any) -> Any:
    """Equations 9 to 14 for N = 2."""
    below = [slow_binary(model, x, parts, part, seen) for part in parts[node]]
    width = model.output.in_features
    weight, bias, across = model.word.weight, model.word.bias, model.phrase.weight
    gates = []
    for gate in range(3):
        rows = slice(gate * width, (gate + 1) * width)
        total = bias[rows] + (weight[rows] @ x[node] if node in x else 0.0)
        for slot, (h_k, _) in enumerate(below):
            total = total + across[rows, slot * width : (slot + 1) * width] @ h_k
        gates.append(total)
    c = gates[0].sigmoid() * gates[2].tanh()
    for slot, (_, c_k) in enumerate(below):
        rows = slice(slot * width, (slot + 1) * width)
        forget = model.forget.bias[rows]
        for other, (h_l, _) in enumerate(below):
            forget = forget + model.forget.weight[rows, other * width : (other + 1) * width] @ h_l
        c = c + forget.sigmoid() * c_k
    seen[node] = gates[1].sigmoid() * c.tanh()
    return seen[node], c


ODD = ["(the)", "((the))", "((the) (((good)) (film)))"]


@pytest.mark.parametrize("cell", CELLS)
def test_level_by_level_is_the_recursion_of_the_paper(cell: Any) -> None:
    source, _ = columns()
    model = model_of(TreeLstm, TreeLstmConfig(cell=cell, d_model=5, hidden=4)).double()
    texts = [*ODD, *trees(20, 3, longest=9)] + (["((the) (good) ((not) (film) (the) (plot)))"] * (cell == "child_sum"))
    rows = [ids(source, text) for text in texts]
    states_BNH = model.states(source.collate(rows))
    slow = slow_child_sum if cell == "child_sum" else slow_binary
    losses = []
    for row, states_NH, text in zip(rows, states_BNH, texts, strict=True):
        parts, root = nested(parse_labelled_tree(text))
        x = {place: model.source_embedding(torch.tensor(int(row[place]))) for place, of in enumerate(parts) if not of}
        seen: dict[int, Tensor] = {}
        slow(model, x, parts, root, seen)
        wanted_NH = torch.stack([seen[node] for node in range(len(row))])
        torch.testing.assert_close(states_NH[: len(row)], wanted_NH)
        losses.append((states_NH[: len(row)].square().sum(), wanted_NH.square().sum()))
    given = [each for name, each in model.named_parameters() if not name.startswith("output")]
    fast_grads, slow_grads = (
        torch.autograd.grad(sum(side), given, retain_graph=True)  # type: ignore[arg-type]
        for side in zip(*losses, strict=True)
    )
    for one, other in zip(fast_grads, slow_grads, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("kind", [TreeLstm, TreeTransformer])
def test_training_hides_whole_words_and_prediction_none(kind: Any) -> None:
    source, _ = columns()
    sizes: dict[str, Any] = {"d_model": 12, "dropout": 0.0}
    models = [model_of(kind, kind.Config(**sizes, word_dropout=rate)) for rate in (0.0, 0.3, 0.9999999)]
    words = source.collate([ids(source, "(good)")] * 400)
    plain, some, all_hidden = (model.train().classify(words)[:, 0] for model in models)
    told = models[1].eval().classify(words)[:, 0]
    torch.testing.assert_close(told, plain)
    torch.nn.init.zeros_(models[0].source_embedding.weight)
    nothing = models[0].classify(words)[:, 0]
    torch.testing.assert_close(all_hidden, nothing)
    is_hidden, is_whole = ((some - side).abs().amax(-1) < 1e-5 for side in (nothing, plain))
    assert bool((is_hidden ^ is_whole).all())
    assert 0.2 < float(is_hidden.float().mean()) < 0.4


def built() -> Iterator[Any]:
    for cell in CELLS:
        yield pytest.param(TreeLstm, TreeLstmConfig(cell=cell, d_model=6, hidden=4, dropout=0.0), id=cell)
    sizes: dict[str, Any] = {"d_model": 12, "layers": 2, "feed_forward": 8, "dropout": 0.0}
    every: Any = ("parent", "children", "siblings", "ancestors", "descendants")
    for name, more in (
        ("tree", {"heads": 3}),
        ("all", {"heads": 5, "d_model": 20, "relations": every}),
        ("flat", {"heads": 3, "attention": "flat", "positions": "sinusoidal"}),
        ("flat, pooled by attention", {"heads": 3, "attention": "flat", "pooling": "attention"}),
    ):
        yield pytest.param(TreeTransformer, TreeTransformerConfig(**{**sizes, **more}), id=name)


@pytest.mark.parametrize(("kind", "config"), list(built()))
def test_every_model_keeps_the_contracts(kind: Any, config: Any) -> None:
    """The same alone and in a batch, cut into rows, and saved; gradients reach every parameter; words matter."""
    source, target = columns()
    model = model_of(kind, config)
    texts = [*ODD, *trees(8, 4, longest=9)]
    rows = [ids(source, text) for text in texts]
    forest = source.collate(rows)
    logits_BNC = model.classify(forest)
    for place, row in enumerate(rows):
        alone = model.classify(source.collate([row]))
        torch.testing.assert_close(logits_BNC[place : place + 1, : len(row)], alone, atol=1e-5, rtol=1e-5)
    labelled = [tree for tree in texts if tree not in ODD]
    targets = target.collate([torch.tensor(each).numpy() for each in target.encode(labelled)])
    batch = Batch(source.collate([ids(source, text) for text in labelled]), targets, 0)
    whole = NodeCrossEntropy().loss(model, batch)
    parts = [NodeCrossEntropy().loss(model, batch.rows(place)) for place in (slice(0, 3), slice(3, 8))]
    torch.testing.assert_close(whole.minimised, parts[0].minimised + parts[1].minimised)
    assert batch.rows(slice(0, 8)).units == sum(len(parse_labelled_tree(text)) for text in labelled)
    each_BN = NodeCrossEntropy().log_probabilities(model, batch)
    assert -float(each_BN.sum()) == pytest.approx(float(whole.reported), rel=1e-5)
    whole.minimised.backward()
    assert all(each.grad is not None and each.grad.abs().sum() > 0 for each in model.parameters())


@pytest.mark.parametrize("relations", [("parent",), ("children",), ("siblings",), ("ancestors",), ("descendants",)])
def test_heads_follow_their_relation_and_nothing_else(relations: Any) -> None:
    source, _ = columns()
    config = TreeTransformerConfig(relations=relations, heads=2, d_model=8, layers=1, feed_forward=8)
    model = model_of(TreeTransformer, config)
    text = trees(1, 11, longest=9)[0]
    parts, _ = nested(parse_labelled_tree(text))
    parent = {part: node for node, each in enumerate(parts) for part in each}

    def above(node: int) -> set[int]:
        return {parent[node], *above(parent[node])} if node in parent else set()

    wanted: dict[str, Any] = {
        "parent": lambda n: {parent[n]} if n in parent else set(),
        "children": lambda n: set(parts[n]),
        "siblings": lambda n: set(parts[parent[n]]) if n in parent else set(),
        "ancestors": above,
        "descendants": lambda n: {each for each in range(len(parts)) if n in above(each)},
    }
    with capture(model) as record:
        model.classify(source.collate([ids(source, text), ids(source, "(the)")]))
    [name] = record.of("edge", "encoder")
    for node in range(len(parts)):
        for head in range(2):
            seen = record[name][0][0, head, node].nonzero()[:, 0].tolist()
            assert set(seen) == {node} | wanted[relations[0]](node)


@pytest.mark.parametrize("pooling", ["mean", "attention"])
def test_a_flat_node_is_a_mean_of_its_words(pooling: Literal["mean", "attention"]) -> None:
    source, _ = columns()
    config = TreeTransformerConfig(
        attention="flat", pooling=pooling, heads=2, d_model=8, layers=1, feed_forward=8, dropout=0
    )
    model = model_of(TreeTransformer, config)
    text = "(((the) (good)) (((not)) (film)))"
    tree = parse_labelled_tree(text)
    states_ND = model._flat(source.collate([ids(source, text), ids(source, "(the)")]))[0]
    words = [place for place, word in enumerate(tree.words) if word is not None]
    for node, first in enumerate(tree.first_nodes()):
        inside = [place for place in words if first <= place <= node]
        scores = [0.0] * len(inside)
        if model.word_score is not None:
            scores = [(states_ND[place] @ model.word_score.weight[0]).item() for place in inside]
        total = sum(math.exp(score) for score in scores)
        wanted = sum(math.exp(each) / total * states_ND[place] for each, place in zip(scores, inside, strict=True))
        torch.testing.assert_close(states_ND[node], wanted)


def test_unlabelled_nodes_count_nowhere() -> None:
    source, target = columns()
    model = model_of(TreeLstm, TreeLstmConfig(cell="binary", d_model=6, hidden=4))
    texts = ["(good (the) (good fine))", "((bad bad) (film))"]
    targets = target.collate([torch.tensor(each).numpy() for each in target.encode(texts)])
    forest: Forest = source.collate([ids(source, text) for text in texts])
    logits_BNC = model.classify(forest).double().log_softmax(-1)
    batch = Batch(forest, targets, 3)
    wanted = logits_BNC[0, 2, 1], logits_BNC[0, 1, 1], logits_BNC[1, 0, 0]
    total = -float(sum(wanted).detach())
    assert float(NodeCrossEntropy().loss(model, batch).reported) == pytest.approx(total, rel=1e-5)
    each_BN = NodeCrossEntropy().log_probabilities(model, batch)
    torch.testing.assert_close(each_BN[0, :2], torch.stack([wanted[1], wanted[0]]).double(), atol=1e-6, rtol=1e-6)
    assert float(each_BN[0, 2]) == 0
    assert map_tree(lambda each: each, batch.targets).known().sum() == 3


def test_a_phrase_of_three_parts_is_for_child_sum_alone() -> None:
    source, _ = columns()
    forest = source.collate([ids(source, "((the) (good) (film))")])
    child_sum, binary = (model_of(TreeLstm, TreeLstmConfig(cell=cell, d_model=4, hidden=3)) for cell in CELLS)
    assert child_sum.classify(forest).shape == (1, 4, 3)
    with pytest.raises(InputError, match=r'expected at most 2 parts of a phrase; got 3\. Use cell = "child_sum"'):
        binary.classify(forest)
