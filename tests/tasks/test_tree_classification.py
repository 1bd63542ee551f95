"""Labels of the nodes of trees: files, models and predictions against slow references; trained, resumed, served."""

import hashlib
import io
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from rich.console import Console
from torch import Tensor

import transduce
from forked import Fate
from forked import transduce as command
from served import serving
from transduce.attention import capture
from transduce.core.errors import InputError
from transduce.core.padded import map_tree
from transduce.data.collate import Batch
from transduce.data.columns import ColumnSpec, Specs
from transduce.data.columns.node_labels import NodeLabels
from transduce.data.columns.tree_nodes import Forest, TreeNodes
from transduce.data.labelled_trees import LabelledTree, parse_labelled_tree
from transduce.data.tokenizer import TokenizerConfig, train_tokenizer
from transduce.evaluation.evaluate import Files, Settings, evaluate_files
from transduce.explore.exploration import explore
from transduce.interpret.attention import attention_of
from transduce.interpret.drawings import drawn
from transduce.interpret.labelled_tree_drawing import LabelledTreeDrawing, colour_of
from transduce.metrics.tree_labels import node_accuracy_tally, root_label
from transduce.models.tree_lstm import TreeLstm, TreeLstmConfig
from transduce.models.tree_transformer import TreeTransformer, TreeTransformerConfig
from transduce.objectives.node_label import NodeCrossEntropy
from transduce.tasks.tree_classification import LabelledTreeFile, read

WORDS = {"good": 1, "fine": 1, "bad": -1, "dull": -1, "film": 0, "the": 0, "plot": 0}
NAMES = {-1: "bad", 0: "none", 1: "good"}


def grown(random_: random.Random, words: int) -> tuple[str, int]:
    """A tree in which "not" turns what stands beside it, and the sum of both parts decides else."""
    if words == 1:
        word = random_.choice(list(WORDS))
        return f"({NAMES[WORDS[word]]} {word})", WORDS[word]
    if words > 1 and random_.random() < 0.25:
        inner, value = grown(random_, words - 1)
        return f"({NAMES[-value]} (none not) {inner})", -value
    first = random_.randrange(1, words)
    (one, left), (other, right) = grown(random_, first), grown(random_, words - first)
    value = max(-1, min(1, left + right))
    return f"({NAMES[value]} {one} {other})", value


def trees(count: int, seed: int, longest: int = 6) -> list[str]:
    random_ = random.Random(seed)
    return [grown(random_, random_.randrange(1, longest + 1))[0] for _ in range(count)]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trees")
    for name, count, seed in (("train", 300, 1), ("valid", 40, 2), ("test", 60, 3)):
        (folder / f"{name}.txt").write_text("".join(f"{tree}\n" for tree in trees(count, seed)))
    return folder


MODELS = {
    "binary": 'kind = "tree_lstm"\ncell = "binary"\nd_model = 16\nhidden = 16\ndropout = 0.1',
    "child_sum": 'kind = "tree_lstm"\ncell = "child_sum"\nd_model = 16\nhidden = 16\ndropout = 0.1'
    "\nword_dropout = 0.05",
    "tree": 'kind = "tree_transformer"\nd_model = 24\nheads = 3\nlayers = 2\nfeed_forward = 32\ndropout = 0.1'
    '\nrelations = ["children", "siblings", "descendants"]',
    "flat": 'kind = "tree_transformer"\nattention = "flat"\npositions = "sinusoidal"\nd_model = 24\nheads = 3'
    "\nlayers = 2\nfeed_forward = 32\ndropout = 0.1",
}


def recipe_at(corpus: Path, path: Path, model: str, updates: int = 100, data: str = "") -> Path:
    path.write_text(f"""
[task]
kind = "tree_classification"
[data]
root = "{corpus}"
train = [{{ file = "train.txt" }}]
validation = {{ file = "valid.txt" }}
test = {{ held_out = {{ file = "test.txt" }} }}
{data}
[tokenizer]
kind = "whitespace"
min_frequency = 1
[batch]
tokens = 300
[model]
{MODELS[model]}
[training]
threads = 1
updates = {updates}
learning_rate = 1e-2
warmup = 5
precision = "fp32"
best = "accuracy"
validate_every = 20
decode_sentences = 40
checkpoint_every = 15
""")
    return path


@pytest.fixture(scope="module", params=["binary", "tree"])
def trained(request: pytest.FixtureRequest, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    recipe = recipe_at(corpus, folder / "recipe.toml", request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRANSDUCE_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        done = command(folder, "train", recipe, "--run", folder / "run")
    assert done.code == 0, done.shown
    assert "node accuracy" in done.shown
    assert "true \\ predicted" in done.out
    return folder / "run"


def test_it_learns_from_the_labels_of_nodes(trained: Path, corpus: Path) -> None:
    rows = [parse_labelled_tree(line) for line in (corpus / "test.txt").read_text().splitlines()]
    found: Any = transduce.load(trained).predict([str(row.without_labels()) for row in rows])
    right = sum(each.label == row.label for each, row in zip(found, rows, strict=True))
    assert right >= 40
    scores = json.loads((trained / "report.json").read_text())["tests"]["held_out"]["scores"]
    assert scores["accuracy"]["value"] == pytest.approx(100 * right / len(rows))
    nodes = [
        one == other
        for each, row in zip(found, rows, strict=True)
        for one, other in zip(each.tree.labels, row.labels, strict=True)
    ]
    assert scores["node_accuracy"]["value"] == pytest.approx(100 * sum(nodes) / len(nodes))


def test_labels_of_the_input_are_not_read(trained: Path) -> None:
    model = transduce.load(trained)
    plain: Any = model.predict("((the) ((not) (good)))")
    labelled: Any = model.predict("(S (DT the) (ADJP (RB not) (JJ good)))")
    assert plain.text == labelled.text
    assert parse_labelled_tree(plain.text).words == ("the", "not", "good", None, None)
    told = plain.to_dict()
    assert [each["text"] for each in told["nodes"]] == ["the", "not", "good", "not good", "the not good"]
    assert told["label"] == told["nodes"][-1]["label"] == next(iter(told["probabilities"]))
    assert sum(told["probabilities"].values()) == pytest.approx(1)


def test_the_same_alone_and_in_any_batch(trained: Path) -> None:
    model, texts = transduce.load(trained), trees(40, 9, longest=12)
    together: Any = model.predict(texts, batch_size=40)
    for text, each in zip(texts, together, strict=True):
        alone: Any = model.predict(text)
        assert alone.text == each.text
        assert alone.token_log_probabilities == pytest.approx(each.token_log_probabilities, abs=1e-5)
        scored = model.score([(text, alone.text)])[0]
        assert scored.token_log_probabilities == pytest.approx(alone.token_log_probabilities, abs=1e-5)
        assert scored.unit == "node"


@pytest.mark.parametrize("kind", ["child_sum", "flat"])
def test_a_killed_training_ends_in_the_same_bytes(corpus: Path, tmp_path: Path, kind: str) -> None:
    recipe = recipe_at(corpus, tmp_path / "recipe.toml", kind, updates=40)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert command(tmp_path, "train", recipe, "--run", whole).code == 0
    assert command(tmp_path, "train", recipe, "--run", killed, fate=Fate(dies_in_write=3)).code != 0
    assert command(tmp_path, "train", recipe, "--run", killed).code == 0
    one, other = (hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest() for run in (whole, killed))
    assert one == other


def test_a_file_of_trees_is_evaluated(trained: Path, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "always").write_text("good\n" * 60)
    files = Files(corpus / "test.txt", [], {"always": tmp_path / "always"})
    report = evaluate_files({"model": transduce.load(trained)}, files, Settings(), lambda done: None)
    scores = report["systems"]["model"]["scores"]
    assert set(scores) == {"accuracy", "macro_f1", "node_accuracy"}
    first = json.loads((trained / "report.json").read_text())["tests"]["held_out"]["scores"]
    assert scores["node_accuracy"]["value"] == pytest.approx(first["node_accuracy"]["value"])
    assert any("model is better than always: accuracy" in each["verdict"] for each in report["comparisons"])


def test_it_is_served(trained: Path) -> None:
    with serving([trained]) as server:
        [prediction] = server.post("/v1/predict", texts=["((the) (film))"]).json()["predictions"]
        assert prediction["label"] in NAMES.values()
        assert len(prediction["nodes"]) == 3


def test_lines_are_predicted_with_and_without_labels(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("((the) (film))\n(good (none the) (good good))\n", encoding="utf-8")
    done = command(tmp_path, "predict", trained, "--source", tmp_path / "in")
    assert done.code == 0, done.shown
    assert [parse_labelled_tree(line).words for line in done.out.splitlines()] == [
        ("the", "film", None),
        ("the", "good", None),
    ]
    (tmp_path / "wrong").write_text("((the) (film))\nno tree\n")
    done = command(tmp_path, "predict", trained, "--source", tmp_path / "wrong")
    assert done.code == 2
    assert "expected a tree such as (3 (2 The) (4 best)); got no tree" in " ".join(done.shown.split())


def test_labels_are_renamed_and_left_out(corpus: Path, tmp_path: Path) -> None:
    """A root without a label is not tested on; in training its nodes count."""
    recipe = recipe_at(
        corpus, tmp_path / "recipe.toml", "child_sum", 2, 'labels = { good = "positive", bad = "negative" }'
    )
    done = command(tmp_path, "train", recipe, "--run", tmp_path / "run")
    assert done.code == 0, done.shown
    rows = [parse_labelled_tree(line) for line in (corpus / "test.txt").read_text().splitlines()]
    kept = sum(row.label != "none" for row in rows)
    report = json.loads((tmp_path / "run" / "report.json").read_text())
    table = report["tests"]["held_out"]["confusion"]
    assert sum(count for row in table["counts"].values() for count in row.values()) == kept
    assert table["labels"] == ["negative", "positive"]
    assert "no label" in done.shown


def test_what_makes_no_sense_is_refused(trained: Path, corpus: Path, tmp_path: Path) -> None:
    model = transduce.load(trained)
    with pytest.raises(InputError, match=r"text 2: expected a tree such as .*; got \(\)"):
        model.predict(["(the)", "()"])
    with pytest.raises(InputError, match="pair 1: expected the same tree on both sides"):
        model.score([("((the) (film))", "(good (none the) (none plot))")])
    with pytest.raises(InputError, match=r'expected labels among bad, good, none; got "goood"\. Did you mean "good"'):
        model.score([("(the)", "(goood the)")])
    recipe = recipe_at(corpus, tmp_path / "recipe.toml", "binary")
    for override, said in (
        ("tokenizer.kind=bpe", 'a node of a tree is a whole word; expected "whitespace"'),
        ("model={kind='classifier'}", "expected a task with a text and a label"),
        ("training.r_drop=1.0", "for models that write text"),
    ):
        found = command(tmp_path, "train", recipe, override, "--run", tmp_path / said[:9])
        assert found.code == 2, found.shown
        assert said in " ".join(found.shown.split())


def test_a_phrase_of_three_parts_is_for_child_sum_alone() -> None:
    source, _ = columns()
    forest = source.collate([ids(source, "((the) (good) (film))")])
    child_sum, binary = (model_of(TreeLstm, TreeLstmConfig(cell=cell, d_model=4, hidden=3)) for cell in CELLS)
    assert child_sum.classify(forest).shape == (1, 4, 3)
    with pytest.raises(InputError, match=r'expected at most 2 parts of a phrase; got 3\. Use cell = "child_sum"'):
        binary.classify(forest)


# ---- files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words", "parts", "labels"),
    [
        ("(3 (2 The) (4 best))", ["The", "best", None], [0, 0, 2], ["2", "4", "3"]),
        ("((The) (best))", ["The", "best", None], [0, 0, 2], [None, None, None]),
        ("(4 good film)", ["good", "film", None], [0, 0, 2], [None, None, "4"]),
        ("(1 (2 (0 worst)))", ["worst", None, None], [0, 1, 1], ["0", "2", "1"]),
        ("(2 9\\/11)", ["9/11"], [0], ["2"]),
        ("(2 2\xa01\\/2)", ["2\xa01/2"], [0], ["2"]),
        ("(A a (B b) c)", ["a", "b", "c", None], [0, 0, 0, 3], [None, "B", None, "A"]),
        ("(word)", ["word"], [0], [None]),
    ],
)
def test_a_tree_is_read(text: str, words: list[Any], parts: list[int], labels: list[Any]) -> None:
    tree = parse_labelled_tree(text)
    assert tree == LabelledTree(tuple(words), tuple(parts), tuple(labels))
    assert parse_labelled_tree(str(tree)) == tree


@pytest.mark.parametrize("text", ["", "word", "()", "(a", "a)", "(a b))", "(a b)(c d)", "(2 ())", "(3 (2 x) (4 y)) z"])
def test_what_is_no_tree_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected a tree such as"):
        parse_labelled_tree(text)


def test_nodes_know_their_words() -> None:
    for text in trees(20, 5, longest=9):
        tree = parse_labelled_tree(text)
        wanted = [" ".join(re.findall(r"([a-z]+)\)", part)) for part in subtrees(text)]
        assert sorted(tree.texts()) == sorted(wanted)


def subtrees(text: str) -> Iterator[str]:
    for start, letter in enumerate(text):
        depth = 0
        for end in range(start, len(text) if letter == "(" else start):
            depth += (text[end] == "(") - (text[end] == ")")
            if not depth:
                yield text[start : end + 1]
                break


def test_a_wrong_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "trees.txt").write_text("(3 (2 a) (2 b))\n(3 (2 a) (2 b)\n")
    with pytest.raises(InputError, match=r"trees\.txt, line 2: expected a tree"):
        list(read(LabelledTreeFile(file="trees.txt"), tmp_path))
    (tmp_path / "trees.txt").write_text("(3 (2 a) (2 b))\n((2 a) (2 b))\n")
    with pytest.raises(InputError, match=r"trees\.txt, line 2: expected a label at the root"):
        list(read(LabelledTreeFile(file="trees.txt"), tmp_path))


def test_unknown_labels_of_held_out_data_are_named_by_file_and_line(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text((corpus / "train.txt").read_text())
    (tmp_path / "valid.txt").write_text("(good good)\n(none (so so) (none film))\n")
    (tmp_path / "test.txt").write_text("(good good)\n")
    recipe = recipe_at(tmp_path, tmp_path / "recipe.toml", "binary")
    found = command(tmp_path, "train", recipe, "--run", tmp_path / "run")
    assert found.code == 2, found.shown
    assert 'valid.txt, line 2: expected labels among bad, good, none; got "so".' in " ".join(found.shown.split())


# ---- models ----------------------------------------------------------------------------------------------------

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


def built() -> Iterator[Any]:
    for cell in CELLS:
        yield pytest.param(TreeLstm, TreeLstmConfig(cell=cell, d_model=6, hidden=4, dropout=0.0), id=cell)
    sizes: dict[str, Any] = {"d_model": 12, "layers": 2, "feed_forward": 8, "dropout": 0.0}
    every: Any = ("parent", "children", "siblings", "ancestors", "descendants")
    for name, more in (
        ("tree", {"heads": 3}),
        ("all", {"heads": 5, "d_model": 20, "relations": every}),
        ("flat", {"heads": 3, "attention": "flat", "positions": "sinusoidal"}),
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


def test_a_flat_node_is_the_mean_of_its_words() -> None:
    source, _ = columns()
    config = TreeTransformerConfig(attention="flat", heads=2, d_model=8, layers=1, feed_forward=8)
    model = model_of(TreeTransformer, config)
    text = "(((the) (good)) (((not)) (film)))"
    tree = parse_labelled_tree(text)
    states_ND = model._flat(source.collate([ids(source, text), ids(source, "(the)")]))[0]
    words = [place for place, word in enumerate(tree.words) if word is not None]
    for node, first in enumerate(tree.first_nodes()):
        inside = [place for place in words if first <= place <= node]
        torch.testing.assert_close(states_ND[node], states_ND[inside].mean(0))


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


def test_attention_stands_between_nodes(trained: Path) -> None:
    """Queries and keys of a model that follows edges are nodes, called by their words."""
    model: Any = transduce.load(trained)
    found = attention_of(model.model, model.task, model.predict("((the) ((not) (good)))"))
    assert found.source is not None
    names = ["the", "not", "good", "not good", "the not good"]
    assert [token.text for token in found.source.tokens] == names
    assert [found.source.text[each.start : each.end] for each in found.source.tokens] == names
    for layer in found.of("encoder"):
        assert (layer.part.rows, layer.part.columns, layer.weights.shape[1:]) == ("source", "source", (5, 5))
    assert len(found.of("encoder")) == len(found.layers)


# ---- metrics ---------------------------------------------------------------------------------------------------


def test_node_accuracy_is_its_definition() -> None:
    true = ["(3 (2 a) (4 b))", "(1 (2 a) (b))", "(0 a)"]
    said = ["(3 (1 a) (4 b))", "(1 (2 a) (4 b))", "(0 b)"]  # 2 of 3, 2 of 2, other words: 0 of 1
    assert node_accuracy_tally(said, true).value == pytest.approx(100 * 4 / 6)
    assert node_accuracy_tally(["no tree"] * 3, true).value == 0
    assert [root_label(text) for text in ("(3 (2 a) (4 b))", "4", "((a) (b))", "(")] == ["3", "4", "", ""]


# ---- pictures --------------------------------------------------------------------------------------------------


def test_the_drawing_has_every_node_with_its_label(trained: Path) -> None:
    model: Any = transduce.load(trained)
    made = model.predict("((the) ((not) (good)))")
    drawing = drawn(model.model, model.task, made)
    assert isinstance(drawing, LabelledTreeDrawing)
    nodes = drawing.to_dict()["nodes"]
    order = [4, 0, 3, 1, 2]  # each phrase before what is in it
    labels, told = [made.tree.labels[place] for place in order], made.to_dict()["nodes"]
    assert [node["text"] for node in nodes] == [labels[0], "the", labels[2], "not", "good"]
    assert [node["above"] for node in nodes] == [-1, 0, 0, 2, 2]
    for node, label, place in zip(nodes, labels, order, strict=True):
        assert node["tag"] == f"{label} ({told[place]['probability']:.0%})"
        assert node["colour"] == colour_of(str(label), ("bad", "good", "none"))
        assert node["colour"] in made._repr_html_()
    console = Console(file=io.StringIO(), width=100)
    console.print(drawing)
    lines = [line.strip(" │├└─") for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]
    assert lines == [node["tag"] + (f" {node['text']}" if node["is_word"] else "") for node in nodes]


def test_colours_are_a_scale_in_the_order_of_the_labels() -> None:
    five = [colour_of(label, "01234") for label in "01234"]
    assert len(set(five)) == 5
    assert (five[0], five[2], five[4]) == ("#ee8a5c", "#e8e8e8", "#6fb1e0")
    assert colour_of("x", "01234") == ""


def test_the_page_shows_the_tree(trained: Path) -> None:
    found = explore(transduce.load(trained), "((the) ((not) (good)))")
    assert found["drawing"]["kind"] == "labelled_tree_drawing"
    assert len(found["drawing"]["nodes"]) == 5
    assert [token["text"] for token in found["source"]["tokens"]] == ["the", "not", "good", "not good", "the not good"]
