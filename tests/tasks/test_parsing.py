"""Sentences to trees as a task: well-formed under any weights, trained, resumed, evaluated, served and explored."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
import torch

import transduce
from forked import transduce as command
from served import serving
from toy_trainings import resumed_to_the_same_bytes, trained_beside
from transduce.core.errors import InputError
from transduce.core.model_file import ModelFile
from transduce.data.columns.packed import pack
from transduce.data.structures.trees import ParseTree, parse_tree
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.evaluation.evaluate import Settings, evaluate_files
from transduce.evaluation.texts import Files
from transduce.explore.exploration import asked, explore
from transduce.interpret.attention import attention_of
from transduce.metrics.evaluate import evaluate
from transduce.pipeline.outline import make_model, make_task
from transduce.pipeline.pipeline import Pipeline
from transduce.recipe.recipe import parse_recipe
from transduce.tasks.parsing import Parsing, ParsingConfig, ParsingData, TreebankFile, read_treebank

NOUNS, VERBS, ADVERBS = ["cat", "dog", "bird"], ["sees", "hears", "likes"], ["often", "never"]


def phrase(random_: random.Random, depth: int = 0) -> str:
    noun = f"(NP-SBJ (DT the) (NN {random_.choice(NOUNS)}))"
    if depth < 2 and random_.random() < 0.3:
        return f"(NP {noun} (PP (IN near) {phrase(random_, depth + 1)}))"
    return noun


def drawn(count: int, seed: int) -> list[str]:
    """Trees of a small grammar that is not ambiguous."""
    random_ = random.Random(seed)
    found = []
    for _ in range(count):
        adverb = f"(ADVP (RB {random_.choice(ADVERBS)}))\n  " if random_.random() < 0.4 else ""
        verb = f"(VP {adverb}(VBZ {random_.choice(VERBS)}) {phrase(random_)})"
        found.append(f"( (S {phrase(random_)}\n  {verb} (-NONE- *) (. .)))")
    return found


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("treebank")
    for name, count, seed in (("train", 300, 1), ("valid", 30, 2), ("test", 40, 3)):
        (folder / f"{name}.mrg").write_text("\n".join(drawn(count, seed)) + "\n")
    return folder


def recipe_at(treebank: Path, path: Path) -> Path:
    path.write_text(f"""
[task]
kind = "parsing"
[data]
root = "{treebank}"
train = [{{ file = "train.mrg" }}]
validation = {{ file = "valid.mrg" }}
test = {{ held_out = {{ file = "test.mrg" }} }}
[tokenizer]
kind = "whitespace"
min_frequency = 1
[batch]
tokens = 600
[model]
kind = "rnn"
cell = "gru"
d_model = 32
hidden = 48
dropout = 0.0
score = "additive"
[search]
method = "greedy"
[training]
threads = 1
updates = 250
learning_rate = 1e-2
warmup = 5
precision = "fp32"
best = "evalb_f1"
validate_every = 125
decode_sentences = 30
checkpoint_every = 100
""")
    return path


@pytest.fixture(scope="module")
def trained(treebank: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    recipe = recipe_at(treebank, folder / "recipe.toml")
    trained_beside(recipe, tmp_path_factory)
    return folder / "run"


def held_out(treebank: Path) -> list[tuple[str, str]]:
    return [(words, tree) for _, words, tree in read_treebank(TreebankFile(file="test.mrg"), treebank)]


def test_it_learns_a_grammar(trained: Path, treebank: Path) -> None:
    sentences, trees = zip(*held_out(treebank), strict=True)
    found = transduce.load(trained).predict(sentences)
    untagged = [re.sub(r"\(\S+ (?=[^()])", "(XX ", each.text) for each in found]
    [f1] = evaluate(["evalb_f1"], untagged, trees)  # words without tags have those of the reference
    assert f1.value > 90
    pairs = [zip(one.tree.tags, parse_tree(tree).tags, strict=True) for one, tree in zip(found, trees, strict=True)]
    right = [said == true for pair in pairs for said, true in pair]
    assert sum(right) > 0.9 * len(right)
    report = json.loads((trained / "report.json").read_text())
    assert report["tests"]["held_out"]["scores"]["evalb_f1"]["value"] == pytest.approx(f1.value)
    assert "sha256" in json.dumps(report)
    assert report["baseline"]["name"] == "right-branching"
    assert report["baseline"]["settings"] == {"root": "S", "phrase": "NP"}
    assert 0 < report["baseline"]["tests"]["held_out"]["scores"]["evalb_f1"]["value"] < f1.value


# ---- well-formed under any weights ------------------------------------------------------------------------------


def untrained(treebank: Path, kind: str, tokenizer: str, seed: int) -> Pipeline:
    size: dict[str, Any] = {"kind": kind, "d_model": 16}
    size |= {"hidden": 16} if kind == "rnn" else {"heads": 2, "feed_forward": 24}
    table = {
        "name": "random",
        "task": {"kind": "parsing"},
        "data": {"root": str(treebank), "train": [{"file": "train.mrg"}]},
        "tokenizer": {"kind": tokenizer, "vocabulary": 90, "min_frequency": 1},
        "model": size,
    }
    recipe = parse_recipe(table, "test")
    columns = Parsing.learn_columns(recipe.tokenizer, recipe.data)
    task = make_task(recipe, columns)
    torch.manual_seed(seed)
    model = make_model(recipe, task)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    weights = {name: weight.detach() for name, weight in model.named_parameters()}
    texts, tables = pack(columns)
    return Pipeline(ModelFile(weights, recipe.to_table(), texts, {"seed": 1}, {"loss": 2.0}, columns=tables))


def sentences(count: int, seed: int) -> list[str]:
    """Known and unknown words, brackets, long ones, strange white space, and whole stops within."""
    random_ = random.Random(seed)
    words = [
        *NOUNS,
        *VERBS,
        "the",
        "near",
        ".",
        ",",
        "Mr.",
        "(",
        ")",
        ":-)",
        "<unk>",
        "</s>",
        "XX",
        "(S",
        "naïve",
        "日本",
    ]
    spaces = [" ", "  ", "\u00a0", "\t"]
    lengths = [1, 2, 3, *[random_.randrange(1, 20) for _ in range(count - 4)], 50]
    return ["".join(random_.choice(words) + random_.choice(spaces) for _ in range(length)) for length in lengths]


@pytest.mark.parametrize(
    ("kind", "tokenizer"),
    [("rnn", "whitespace"), ("rnn", "character"), ("transformer", "bpe"), ("transformer", "whitespace")],
)
def test_random_weights_give_trees_over_the_sentence(treebank: Path, kind: str, tokenizer: str) -> None:
    model = untrained(treebank, kind, tokenizer, seed=5)
    texts = sentences(12, seed=7)
    for search in ({"method": "greedy"}, {"beam": 3, "nbest": 2}, {"method": "sample", "seed": 3}):
        found = model.predict(texts, batch_size=16, **search)
        for text, prediction in zip(texts, found, strict=True):
            for each in prediction.alternatives or (prediction,):
                tree = parse_tree(each.text)
                assert tree == each.tree
                assert tree.is_rooted
                assert tree.words == tuple(word.replace("(", "-LRB-").replace(")", "-RRB-") for word in text.split())
                assert each.ended
    alone = [model.predict(text, beam=3).text for text in texts[::3]]
    assert alone == [each.text for each in model.predict(texts, beam=3, batch_size=40)[::3]]


def test_long_sentences_and_those_with_whole_stops_are_read_as_one(treebank: Path) -> None:
    model = untrained(treebank, "rnn", "whitespace", seed=1)
    model.single_sentences = True
    text = "the cat sees . The dog hears . " * 35
    for more in ({}, {"split": "sentences"}, {"long": "split"}):
        prediction = model.predict(text, method="greedy", **more)
        assert len(prediction.tree.words) == 280
    with pytest.raises(InputError, match="280 tokens"):
        model.predict(text, long="refuse")


def test_an_empty_sentence_has_no_tree(treebank: Path) -> None:
    found = untrained(treebank, "rnn", "whitespace", seed=1).predict([" ", "the cat"])
    assert found[0].text == ""
    with pytest.raises(InputError, match="expected one tree"):
        _ = found[0].tree
    assert found[1].tree.words == ("the", "cat")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"must": "NP"}, "leave out must"),
        ({"prefix": "(S"}, "leave out must"),
        ({"min_length": 3}, "search.min_length"),
        ({"no_repeat_ngram": 3}, "search.no_repeat_ngram"),
    ],
)
def test_what_would_break_brackets_is_refused(treebank: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        untrained(treebank, "rnn", "whitespace", seed=1).predict("the cat", **options)


def test_a_model_that_writes_at_once_is_refused(treebank: Path, tmp_path: Path) -> None:
    recipe = recipe_at(treebank, tmp_path / "recipe.toml")
    done = command(tmp_path, "train", recipe, "--run", tmp_path / "run", "model={ kind = 'ctc' }", "search.method=ctc")
    assert done.code == 2, done.shown
    assert "writes all tokens at once" in done.shown


# ---- the same bytes, files, commands, server --------------------------------------------------------------------


def test_a_killed_training_ends_in_the_same_bytes(treebank: Path, tmp_path: Path) -> None:
    recipe = recipe_at(treebank, tmp_path / "recipe.toml")
    resumed_to_the_same_bytes(recipe)


def test_systems_are_compared_on_files(trained: Path, treebank: Path, tmp_path: Path) -> None:
    rows = held_out(treebank)
    (tmp_path / "words").write_text("".join(f"{words}\n" for words, _ in rows))
    (tmp_path / "trees").write_text("".join(f"{tree}\n" for _, tree in rows))
    (tmp_path / "flat").write_text(
        "".join(f"(S {' '.join(f'(XX {w})' for w in words.split())})\n" for words, _ in rows)
    )
    files = Files(tmp_path / "words", [tmp_path / "trees"], {"flat": tmp_path / "flat"})
    report = evaluate_files({"model": transduce.load(trained)}, files, Settings(), lambda done: None)
    model, other = (report["systems"][name]["scores"] for name in ("model", "flat"))
    assert set(model) >= {"evalb_f1", "evalb_precision", "evalb_recall", "evalb_complete"}
    assert other["evalb_precision"]["value"] == 100
    assert other["evalb_f1"]["value"] < model["evalb_f1"]["value"]
    assert "is better than" in next(each["verdict"] for each in report["comparisons"] if each["metric"] == "evalb_f1")
    told = command(tmp_path, "evaluate", trained, "--source", tmp_path / "words", "--reference", tmp_path / "trees")
    assert told.code == 0, told.shown
    assert "labelled F1" in told.shown
    wrong = command(tmp_path, "evaluate", trained, "--source", tmp_path / "words", "--reference", tmp_path / "words")
    assert wrong.code == 2, wrong.shown
    assert "expected a tree such as" in wrong.shown


def test_predict_score_attend_and_explore(trained: Path, treebank: Path, tmp_path: Path) -> None:
    model = transduce.load(trained)
    words, tree = held_out(treebank)[0]
    prediction = model.predict(words)
    assert isinstance(prediction.tree, ParseTree)
    assert prediction._repr_html_().count("<svg") == 1
    assert json.loads(json.dumps(prediction.to_dict()))["text"] == prediction.text
    scored = model.score([(words, prediction.text)])[0]
    assert scored.log_probability == pytest.approx(prediction.log_probability, abs=1e-4)
    assert scored.pieces[:-1] == prediction.tokens == tuple(prediction.tree.sequence())
    assert attention_of(model.model, model.task, prediction).alignment() is not None
    for search in ({}, {"beam": 3}):
        explored = explore(model, words, **search)
        assert explored["nbest"][0]["text"] == model.predict(words, **search).text
    assert len(asked(model, words, tree).target) == len(parse_tree(tree).sequence())
    done = command(tmp_path, "predict", trained, "--source", _written(tmp_path / "in", words))
    assert (done.code, done.out.strip()) == (0, prediction.text), done.shown


def _written(path: Path, line: str) -> Path:
    path.write_text(line + "\n")
    return path


def test_it_is_served(trained: Path, treebank: Path) -> None:
    words, _ = held_out(treebank)[0]
    wanted = transduce.load(trained).predict(words).text
    with serving([trained]) as server:
        answer = server.post("/v1/predict", texts=[words], attention=True).json()
        assert answer["predictions"][0]["text"] == wanted
        assert json.dumps(wanted) in server.post("/v1/stream", text=words).text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("(S (NN a))\n(S (NN b)\n", r"train.mrg, line 2: this tree has no end"),
        ("(S (NN a))\n\n(S (-NONE- *))\n", r"train.mrg, line 3: a tree without words"),
        ("(S (NN a))\n(S a b)\n", r"train.mrg, line 2: expected trees such as"),
    ],
)
def test_wrong_files_are_told_with_their_line(content: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "train.mrg").write_text(content)
    data = ParsingData(root=str(tmp_path), train=(TreebankFile(file="train.mrg"),))
    with pytest.raises(InputError, match=said):
        Parsing.learn_columns(TokenizerConfig(kind="whitespace", min_frequency=1), data)


def test_data_files_and_what_becomes_of_them(treebank: Path, tmp_path: Path) -> None:
    table = {"root": str(treebank), "train": [{"file": "train.mrg"}], "validation": {"file": "valid.mrg"}}
    data = ParsingData.model_validate({**table, "test": {"t": {"file": "test.mrg"}}, "filters": {"max_tokens": 30}})
    config = TokenizerConfig(kind="whitespace", min_frequency=1)
    task, told = Parsing(ParsingConfig(), data, Parsing.learn_columns(config, data)), []
    opened = task.open(tmp_path, told.append)
    [(store, _)] = opened.corpora
    assert "too long" in told[0]
    assert len(store) == 300 - store.metadata["dropped"]["counts"]["too long"]
    assert opened.validation is not None
    assert len(opened.validation.texts) == len(opened.validation.store) == 30
    assert set(opened.provenance) == {"train", "validation", "t"}
    assert str(treebank) not in json.dumps(opened.provenance)
    words, tree = opened.tests["t"].texts[0]
    writes = task.columns["target"]
    assert writes.tokens(writes.encode([tree])[0]) == parse_tree(tree).sequence()
    assert [token for token in parse_tree(tree).sequence() if token[0] not in "()"] == list(parse_tree(tree).tags)
    assert words.split() == list(parse_tree(tree).words)
