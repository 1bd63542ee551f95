"""Parsing by a chart: well-formed trees under any weights, what training learns, windows, the same bytes, commands."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch

import transduce
from drawn_models import chart_parser
from forked import transduce as command
from served import serving
from toy_trainings import resumed_to_the_same_bytes, trained_beside
from transduce.core.errors import InputError
from transduce.data.collate import collate
from transduce.data.structures.trees import ParseTree, parse_tree
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.explore.exploration import explore
from transduce.inference.likelihood import dataset_likelihood
from transduce.inference.parse_trees import MOST_WORDS, ChartPredictor
from transduce.interpret.drawings import drawn
from transduce.metrics.evaluate import evaluate
from transduce.tasks.parsing import ChartParsing, ParsingConfig, ParsingData, TreebankFile, read_treebank

NOUNS, VERBS = ["cat", "dog", "bird"], ["sees", "hears", "likes"]
MODELS: list[dict[str, Any]] = [
    {},
    {"encoder": "transformer", "heads": 2, "feed_forward": 8, "hidden": 256, "pieces": "mean"},
    {"encoder": "convolution", "positions": "none", "hidden": 256, "span_width": 3},
    {"direction": "forward", "cell": "gru", "hidden": 7},
]


def phrase(random_: random.Random, depth: int = 0) -> str:
    noun = f"(NP-SBJ (DT the) (NN {random_.choice(NOUNS)}))"
    if depth < 2 and random_.random() < 0.4:
        return f"(NP {noun} (PP (IN near) {phrase(random_, depth + 1)}))"
    return noun


def written(count: int, seed: int) -> str:
    """Trees of a small grammar, with chains, flat phrases and empty elements."""
    random_, found = random.Random(seed), []
    for _ in range(count):
        adverb = "(ADVP (RB often)) " if random_.random() < 0.4 else ""
        verb = f"(VP {adverb}(VBZ {random_.choice(VERBS)}) {phrase(random_)})"
        spoken = "(S (VP (VB run)))" if random_.random() < 0.2 else f"(S {phrase(random_)} {verb} (-NONE- *) (. .))"
        found.append(f"( {spoken})\n")
    return "".join(found)


@pytest.fixture(scope="module")
def treebank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("treebank")
    for name, count, seed in (("train", 200, 1), ("valid", 30, 2), ("test", 40, 3)):
        (folder / f"{name}.mrg").write_text(written(count, seed))
    return folder


def recipe_at(treebank: Path, path: Path, updates: int = 120) -> Path:
    path.write_text(f"""
[task]
kind = "parsing"
[data]
root = "{treebank}"
train = [{{ file = "train.mrg" }}]
validation = {{ file = "valid.mrg" }}
test = {{ held_out = {{ file = "test.mrg" }} }}
[tokenizer]
kind = "bpe"
vocabulary = 60
[batch]
tokens = 600
[model]
kind = "chart_parser"
d_model = 16
hidden = 32
dropout = 0.1
span_width = 24
character_filters = 8
[training]
threads = 1
updates = {updates}
learning_rate = 1e-2
warmup = 5
precision = "fp32"
best = "evalb_f1"
average = 0.9
validate_every = 60
decode_sentences = 30
checkpoint_every = 50
""")
    return path


@pytest.fixture(scope="module")
def trained(treebank: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    trained_beside(recipe_at(treebank, folder / "recipe.toml"), tmp_path_factory)
    return folder / "run"


def held_out(treebank: Path) -> list[tuple[str, str]]:
    return [(words, tree) for _, words, tree in read_treebank(TreebankFile(file="test.mrg"), treebank)]


def test_it_learns_a_grammar_with_its_tags(trained: Path, treebank: Path) -> None:
    """A parsing recipe in which [model] alone is another."""
    sentences, trees = zip(*held_out(treebank), strict=True)
    found: Any = transduce.load(trained).predict(sentences)
    [f1] = evaluate(["evalb_f1"], [each.text for each in found], trees)
    assert f1.value > 95
    assert sum(each.text == tree for each, tree in zip(found, trees, strict=True)) > 30  # with every tag and chain
    report = json.loads((trained / "report.json").read_text())
    assert report["tests"]["held_out"]["scores"]["evalb_f1"]["value"] == pytest.approx(f1.value)
    assert report["baseline"]["name"] == "right-branching"


# ---- well-formed under any weights ------------------------------------------------------------------------------


def odd_sentences(count: int, seed: int) -> list[str]:
    """Known and unknown words, brackets, strange white space; of one word and of many."""
    random_ = random.Random(seed)
    words = ["ba", "de", "fi", "(", ")", ":-)", "<unk>", "</s>", "XX", "(S", "naïve", "日本", "\u200b", "🙂", "a" * 90]
    spaces = [" ", "  ", "\u00a0", "\t", "\n", "\x1d"]
    lengths = [1, 1, 2, 3, *[random_.randrange(1, 24) for _ in range(count - 5)], 70]
    return ["".join(random_.choice(words) + random_.choice(spaces) for _ in range(length)) for length in lengths]


@pytest.mark.parametrize("settings", MODELS, ids=str)
def test_random_weights_give_trees_over_the_sentence(settings: dict[str, Any]) -> None:
    for seed in (1, 2):
        model, texts = chart_parser(seed=seed, **settings), odd_sentences(16, seed)
        found: Any = model.predict(texts, batch_size=16)
        for text, each in zip(texts, found, strict=True):
            tree = parse_tree(each.text)
            assert tree == each.tree == tree.simplified()
            assert tree.is_rooted
            assert tree.words == tuple(word.replace("(", "-LRB-").replace(")", "-RRB-") for word in text.split())
            assert sum(each.token_log_probabilities) == pytest.approx(each.log_probability)
            assert len(each.token_log_probabilities) == len(each.tokens) == 3 * len(tree.words) - 1
            assert [phrase[:3] for phrase in each.phrases] == list(tree.brackets)
            assert all(0 <= phrase.probability <= 1 + 1e-9 for phrase in each.phrases)
            alone: Any = model.predict(text)
            assert alone.text == each.text
            assert alone.log_probability == pytest.approx(each.log_probability, abs=1e-4)


def test_an_empty_sentence_has_no_tree() -> None:
    found: Any = chart_parser().predict(["", " \t\u00a0", "ba"])
    assert [each.text for each in found[:2]] == ["", ""]
    with pytest.raises(InputError, match="expected one tree"):
        _ = found[0].tree
    assert found[2].tree.words == ("ba",)


def test_a_sentence_of_too_many_words_is_refused() -> None:
    with pytest.raises(InputError, match=f"sentence 2: 600 words; this parser reads {MOST_WORDS} at most"):
        chart_parser().predict(["ba", "ba " * 600])


def test_a_longer_sentence_is_read_in_windows() -> None:
    """Where every word is read by itself, windows change nothing; a model of 24 positions reads 70 words."""
    plain = chart_parser(encoder="none", positions="none", hidden=256)
    text = " ".join(["ba", "de", "figo"] * 20)
    whole, cut = (ChartPredictor(plain.task.columns, longest).predict(plain.model, [text])[0] for longest in (999, 16))
    assert whole.text == cut.text
    assert whole.log_probability == pytest.approx(cut.log_probability, abs=1e-4)
    few = chart_parser(encoder="transformer", heads=2, feed_forward=8, hidden=256, positions="learned", max_length=24)
    found: Any = few.predict("ba de " * 35)
    assert len(found.tree.words) == 70


# ---- one figure, however it is asked ----------------------------------------------------------------------------


def task_at(treebank: Path, **data: Any) -> ChartParsing:
    table = {"root": str(treebank), "train": [{"file": "train.mrg"}], "validation": {"file": "valid.mrg"}, **data}
    files = ParsingData.model_validate(table)
    config = TokenizerConfig(kind="bpe", vocabulary=60)
    return ChartParsing(ParsingConfig(), files, ChartParsing.learn_columns(config, files))


def test_loss_likelihood_and_score_are_the_same_figure(trained: Path, treebank: Path, tmp_path: Path) -> None:
    pipeline = transduce.load(trained)
    task, model, pairs = pipeline.task, pipeline.model.eval(), held_out(treebank)
    store = task_at(treebank, test={"t": {"file": "test.mrg"}}).open(tmp_path, lambda told: None).tests["t"].store
    scored = pipeline.score(pairs)
    total = sum(each.log_probability for each in scored)
    likelihood = dataset_likelihood(model, task, store)
    assert (likelihood.tokens, likelihood.unit) == (len(pairs), "tree")
    assert likelihood.log_probability == pytest.approx(total, rel=1e-6)
    batch = collate([store], _all(store), task.columns)
    objective = task.objective(model)
    assert batch.units == len(pairs)
    with torch.no_grad():
        loss = float(objective.loss(model, batch, None).reported)
        halves = [float(objective.loss(model, batch.rows(part), None).reported) for part in (slice(15), slice(15, 40))]
    assert -loss == pytest.approx(total, rel=1e-5)
    assert sum(halves) == pytest.approx(loss, rel=1e-5)
    for (words, _), prediction in zip(pairs[:5], pipeline.predict([words for words, _ in pairs[:5]]), strict=True):
        [said] = pipeline.score([(words, prediction.text)])
        assert said.log_probability == pytest.approx(prediction.log_probability, abs=1e-6)
        assert said.pieces == prediction.tokens


def _all(store: Any) -> Any:
    from transduce.data.batches import BatchConfig, Batches

    [rows] = Batches([(store, 1.0)], BatchConfig(tokens=100_000), 1).epoch(0)
    return rows


def test_a_tree_over_other_words_has_no_score() -> None:
    model = chart_parser()
    with pytest.raises(InputError, match="pair 2: expected a tree over the sentence's 2 words"):
        model.score([("ba", "(NP (NN ba))"), ("ba de", "(NP (NN ba) (NN fi))")])


def test_a_label_and_a_tag_that_training_did_not_have_may_be_any() -> None:
    """Their probability is that of all trees that agree: not less than that of each of them."""
    model: Any = chart_parser()
    labels, tags = model.task.columns["target"].labels, model.task.columns["target"].word_tags
    [new] = model.score([("ba de", "(QP (NN ba) (NN de))")])
    chains = [label.split() for label in labels]
    known = model.score([("ba de", f"({' ('.join(each)} (NN ba) (NN de){')' * len(each)}") for each in chains])
    wanted = torch.tensor([each.log_probability for each in known]).logsumexp(0)
    assert new.log_probability == pytest.approx(float(wanted), abs=1e-5)
    [untagged] = model.score([("ba de", "(S (?? ba) (NN de))")])
    each = model.score([("ba de", f"(S ({tag} ba) (NN de))") for tag in tags])
    wanted = torch.tensor([one.log_probability for one in each]).logsumexp(0)
    assert untagged.log_probability == pytest.approx(float(wanted), abs=1e-5)


# ---- the same bytes, commands, pictures, server, another start --------------------------------------------------


def test_a_killed_training_ends_in_the_same_bytes(treebank: Path, tmp_path: Path) -> None:
    resumed_to_the_same_bytes(recipe_at(treebank, tmp_path / "recipe.toml"))


def test_predict_evaluate_draw_and_explore(trained: Path, treebank: Path, tmp_path: Path) -> None:
    model, rows = transduce.load(trained), held_out(treebank)
    words, _ = rows[0]
    prediction: Any = model.predict(words)
    assert isinstance(prediction.tree, ParseTree)
    assert prediction._repr_html_().count("<svg") == 1
    drawing = drawn(model.model, model.task, prediction)
    assert drawing is not None
    assert [node["text"] for node in drawing.to_dict()["nodes"] if node["is_word"]] == words.split()
    explored = explore(model, words)
    assert explored["nbest"][0]["text"] == prediction.text
    (tmp_path / "words").write_text("".join(f"{words}\n" for words, _ in rows))
    (tmp_path / "trees").write_text("".join(f"{tree}\n" for _, tree in rows))
    done = command(tmp_path, "predict", trained, "--source", tmp_path / "words", "--json")
    told = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 0, done.shown
    assert told[0]["text"] == prediction.text
    assert told[0]["phrases"][0] == {**prediction.phrases[0]._asdict(), "probability": pytest.approx(1, abs=0.1)}
    told = command(tmp_path, "evaluate", trained, "--source", tmp_path / "words", "--reference", tmp_path / "trees")
    assert told.code == 0, told.shown
    assert "labelled F1" in told.shown


def test_it_is_served(trained: Path, treebank: Path) -> None:
    words, _ = held_out(treebank)[0]
    wanted: Any = transduce.load(trained).predict(words)
    with serving([trained]) as server:
        answer = server.post("/v1/predict", texts=[words]).json()
        assert answer["predictions"][0]["text"] == wanted.text
        assert answer["predictions"][0]["phrases"][0] == pytest.approx(wanted.phrases[0]._asdict(), abs=1e-5)


def test_it_starts_from_a_model_of_masked_words(treebank: Path, tmp_path: Path) -> None:
    """The encoder and the embeddings are those of the model that it starts from."""
    (tmp_path / "texts").write_text("".join(f"{words}\n" for words, _ in held_out(treebank)) * 5)
    (tmp_path / "masked.toml").write_text(f"""
task = {{ kind = "masked_language_modelling" }}
data = {{ train = [{{ text = "{tmp_path / "texts"}" }}] }}
tokenizer = {{ kind = "bpe", vocabulary = 60 }}
batch = {{ tokens = 600 }}
model = {{ kind = "masked_language_model", d_model = 16, heads = 2, feed_forward = 16, layers = 1 }}
training = {{ updates = 2, threads = 1, precision = "fp32" }}
""")
    done = command(tmp_path, "train", tmp_path / "masked.toml", "--run", tmp_path / "masked")
    assert done.code == 0, done.shown
    recipe = recipe_at(treebank, tmp_path / "recipe.toml")
    model = "model={ kind = 'chart_parser', encoder = 'transformer', d_model = 16, heads = 2, feed_forward = 16 }"
    short = ("training.updates=1", "training.learning_rate=1e-9", "training.average=0")
    start = f"training.start='{tmp_path / 'masked'}'"
    done = command(tmp_path, "train", recipe, model, *short, start, "--run", tmp_path / "run")
    assert done.code == 0, done.shown
    before, after = (transduce.load(tmp_path / name).model.state_dict() for name in ("masked", "run"))
    shared = [name for name in before if name.startswith(("encoder.", "source_embedding."))]
    assert len(shared) > 5
    for name in shared:
        torch.testing.assert_close(after[name], before[name], atol=1e-6, rtol=0)
