"""Labels of the nodes of trees: files, models and predictions against slow references; trained, resumed, served."""

import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import transduce
from forked import transduce as command
from grown_trees import NAMES, trees
from served import serving
from toy_trainings import resumed_to_the_same_bytes, trained_beside
from transduce.core.errors import InputError
from transduce.data.structures.labelled_trees import LabelledTree, parse_labelled_tree
from transduce.evaluation.evaluate import Settings, evaluate_files
from transduce.evaluation.texts import Files
from transduce.explore.exploration import explore
from transduce.interpret.attention import attention_of
from transduce.interpret.drawings import drawn
from transduce.interpret.labelled_tree_drawing import LabelledTreeDrawing, colour_of
from transduce.metrics.tree_labels import node_accuracy_tally, root_label
from transduce.tasks.tree_classification import LabelledTreeFile, read


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
    done = trained_beside(recipe, tmp_path_factory)
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
    resumed_to_the_same_bytes(recipe)


def test_a_file_of_trees_is_evaluated(trained: Path, corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "always").write_text("good\n" * 60)
    files = Files(corpus / "test.txt", [], {"always": tmp_path / "always"})
    report = evaluate_files({"model": transduce.load(trained)}, files, Settings(), lambda done: None)
    scores = report["systems"]["model"]["scores"]
    assert set(scores) == {"accuracy", "macro_f1", "node_accuracy"}
    first = json.loads((trained / "report.json").read_text())["tests"]["held_out"]["scores"]
    assert scores["node_accuracy"]["value"] == pytest.approx(first["node_accuracy"]["value"])
    assert any("model is better than always: accuracy" in each["verdict"] for each in report["comparisons"])


def test_scores_count_nodes(trained: Path, tmp_path: Path) -> None:
    (tmp_path / "source").write_text("((the) (good))\n(film)\n")
    (tmp_path / "target").write_text("(good (the) (good good))\n(none film)\n")
    options = ("--source", tmp_path / "source", "--target", tmp_path / "target")
    found = command(tmp_path, "score", trained, *options)
    assert found.code == 0, found.shown
    assert re.search(r"^perplexity [\d.]+ a node \([\d.]+ nats, 3 nodes, each line alone\)$", found.err, re.MULTILINE)
    total = json.loads(command(tmp_path, "score", trained, *options, "--json").out.splitlines()[-1])["total"]
    assert (total["unit"], total["tokens"]) == ("node", 3)


@pytest.mark.slow
def test_models_of_trees_are_compared(corpus: Path, tmp_path: Path) -> None:
    recipe_at(corpus, tmp_path / "recipe.toml", "child_sum")
    (tmp_path / "compare.toml").write_text("""
base = "recipe.toml"
[compare]
budget = "3ktok"
metrics = ["accuracy", "node_accuracy"]
lengths = [4, 8]
[variants.child-sum]
[variants.flat]
model = { kind = "tree_transformer", attention = "flat", d_model = 12, heads = 3, layers = 1, feed_forward = 8 }
""")
    found = command(tmp_path, "compare", tmp_path / "compare.toml", "--run", tmp_path / "run")
    assert found.code == 0, found.shown
    results = json.loads((tmp_path / "run" / "compare.json").read_text())
    signatures = {figure["metric"]: figure["signature"] for figure in results["quality"]}
    assert signatures.keys() >= {"accuracy", "node_accuracy"}
    assert signatures["perplexity"].startswith("base:e|unit:node|")
    assert results["variants"]["flat"]["encoder"] == "flat"
    assert "over one tree of n words" in (tmp_path / "run" / "compare.md").read_text()


def test_without_held_out_trees_metrics_have_something_to_read(corpus: Path, tmp_path: Path) -> None:
    recipe = recipe_at(corpus, tmp_path / "recipe.toml", "child_sum", 2)
    none = ("data.validation=none", "data.test={}", "training.best=loss")
    found = command(tmp_path, "train", recipe, *none, "--run", tmp_path / "run")
    assert found.code == 0, found.shown


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


def test_phrases_of_too_many_parts_are_named_before_training(corpus: Path, tmp_path: Path) -> None:
    wide = "(good (none the) (none film) (good fine))\n"
    for name, line in (("train", 301), ("valid", 41), ("test", None)):
        text = (corpus / f"{name}.txt").read_text()
        (tmp_path / f"{name}.txt").write_text(text + wide if line else text)
    recipe = recipe_at(tmp_path, tmp_path / "recipe.toml", "binary", 4)
    found = command(tmp_path, "train", recipe, "--run", tmp_path / "run")
    assert found.code == 2, found.shown
    said = " ".join(found.shown.split())
    assert "train.txt, line 301: expected at most 2 parts of a phrase, as this model reads; got 3." in said
    assert "valid.txt, line 41: expected at most 2 parts" in said
    assert "test.txt" not in said
    found = command(tmp_path, "train", recipe, "model.cell=child_sum", "--run", tmp_path / "sum")
    assert found.code == 0, found.shown
    (tmp_path / "train.txt").write_text((corpus / "train.txt").read_text())
    (tmp_path / "valid.txt").write_text((corpus / "valid.txt").read_text())
    found = command(tmp_path, "train", recipe, "--run", tmp_path / "binary")
    assert found.code == 0, found.shown
    with pytest.raises(InputError, match=r"text 2: expected at most 2 parts of a phrase, as this model reads; got 3"):
        transduce.load(tmp_path / "binary").predict(["((the) (film))", wide])


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
    labels = [each["label"] for each in transduce.load(trained).predict("((the) ((not) (good)))").to_dict()["nodes"]]
    assert [token["text"] for token in found["target"]["tokens"]] == labels
    assert found["target"]["text"] == labels[-1]
