"""Sentence classification: files, model and predictions against slow references; trained, resumed, served."""

import csv
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import transduce
from forked import transduce as command
from served import serving
from toy_trainings import resumed_to_the_same_bytes, trained_beside
from transduce.core.errors import InputError
from transduce.data.columns import ColumnSpec, Specs
from transduce.data.labelled import LabelledFile, read_labelled
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.evaluation.evaluate import Settings, evaluate_files
from transduce.evaluation.texts import Files
from transduce.interpret.attention import attention_of
from transduce.metrics.labels import accuracy_tally, macro_f1_tally
from transduce.models.classifier import Classifier, ClassifierConfig
from transduce.recipe.training import TrainingConfig
from transduce.tasks.classification import Classification, ClassificationConfig, ClassificationData

GOOD, BAD, OTHER = ["fine", "lovely", "superb"], ["awful", "dull", "poor"], ["the", "film", "is", "and", "acting"]
SIZES = {"recurrent": "hidden = 16", "transformer": "heads = 2\nfeed_forward = 24"}


def drawn(count: int, seed: int) -> list[tuple[str, str]]:
    """Texts with one telling word, which decides."""
    random_ = random.Random(seed)
    found = []
    for _ in range(count):
        label = random_.choice(["negative", "positive"])
        words = random_.choices(OTHER, k=random_.randrange(2, 9))
        words[random_.randrange(len(words))] = random_.choice(GOOD if label == "positive" else BAD)
        found.append((" ".join(words), label))
    return found


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("labelled")
    for name, count, seed in (("train", 200, 1), ("valid", 40, 2), ("test", 60, 3)):
        rows = drawn(count, seed)
        (folder / f"{name}.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in rows))
    return folder


def recipe_at(corpus: Path, path: Path, encoder: str) -> Path:
    path.write_text(f"""
[task]
kind = "classification"
[data]
root = "{corpus}"
train = [{{ file = "train.tsv" }}]
validation = {{ file = "valid.tsv" }}
test = {{ held_out = {{ file = "test.tsv" }} }}
[tokenizer]
kind = "whitespace"
min_frequency = 1
[batch]
tokens = 200
[model]
kind = "classifier"
encoder = "{encoder}"
d_model = 16
{SIZES[encoder]}
dropout = 0.1
[training]
threads = 1
updates = 100
learning_rate = 1e-2
warmup = 5
precision = "fp32"
best = "accuracy"
validate_every = 20
decode_sentences = 40
checkpoint_every = 15
""")
    return path


@pytest.fixture(scope="module", params=["recurrent", "transformer"])
def trained(request: pytest.FixtureRequest, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    recipe = recipe_at(corpus, folder / "recipe.toml", request.param)
    done = trained_beside(recipe, tmp_path_factory)
    assert "accuracy" in done.shown
    assert "true \\ predicted" in done.out
    assert "bag of n-grams (baseline)" in done.out
    return folder / "run"


def test_it_learns_which_word_decides_and_attends_to_it(trained: Path, corpus: Path) -> None:
    model = transduce.load(trained)
    rows = [line.split("\t") for line in (corpus / "test.tsv").read_text().splitlines()]
    found = model.predict([text for text, _ in rows])
    assert sum(each.text == label for each, (_, label) in zip(found, rows, strict=True)) >= 57
    report = json.loads((trained / "report.json").read_text())
    accuracy = report["tests"]["held_out"]["scores"]["accuracy"]
    assert accuracy["value"] == pytest.approx(
        100 * sum(each.text == label for each, (_, label) in zip(found, rows, strict=True)) / len(rows)
    )
    assert accuracy["interval"][0] <= accuracy["value"] <= accuracy["interval"][1]
    attention = attention_of(model.model, model.task, model.predict("the film is superb and the acting is fine"))
    weights_TS = attention.alignment()
    assert weights_TS is not None
    [row_S] = weights_TS
    assert row_S.sum() == pytest.approx(1, abs=1e-5)
    assert attention.labels("target", 1) == ["positive"]
    assert attention.labels("source", len(row_S)) == [
        *["the", "film", "is", "superb", "and", "the", "acting", "is", "fine"],
        "</s>",
    ]


def test_a_bag_of_ngrams_is_scored_beside_it(trained: Path, corpus: Path) -> None:
    """One word decides, so a linear model of words is as good."""
    report = json.loads((trained / "report.json").read_text())
    assert report["baseline"]["tests"]["held_out"]["scores"]["accuracy"]["value"] >= 95
    assert "baseline" not in report["tests"]["held_out"]
    assert report["baseline"]["settings"]["examples"] == 200


def test_the_same_alone_and_in_any_batch(trained: Path) -> None:
    model, texts = transduce.load(trained), [text for text, _ in drawn(50, 9)]
    together: Any = model.predict(texts, batch_size=50)
    for text, each in zip(texts, together, strict=True):
        alone: Any = model.predict(text)
        assert alone.label == each.label
        assert sum(alone.probabilities.values()) == pytest.approx(1)
        assert alone.probabilities == pytest.approx(each.probabilities, abs=1e-5)
        assert alone.log_probability == pytest.approx(model.score([(text, alone.label)])[0].log_probability, abs=1e-5)


def test_a_killed_training_ends_in_the_same_bytes(corpus: Path, tmp_path: Path) -> None:
    recipe = recipe_at(corpus, tmp_path / "recipe.toml", "recurrent")
    resumed_to_the_same_bytes(recipe)


def test_two_systems_are_compared(trained: Path, corpus: Path, tmp_path: Path) -> None:
    rows = [line.split("\t") for line in (corpus / "test.tsv").read_text().splitlines()]
    for name, column in (("text", 0), ("label", 1)):
        (tmp_path / name).write_text("".join(f"{row[column]}\n" for row in rows))
    (tmp_path / "always").write_text("positive\n" * len(rows))
    files = Files(tmp_path / "text", [tmp_path / "label"], {"always": tmp_path / "always"})
    report = evaluate_files({"model": transduce.load(trained)}, files, Settings(), lambda done: None)
    assert set(report["systems"]["model"]["scores"]) == {"accuracy", "macro_f1"}
    assert any("model is better than always: accuracy" in each["verdict"] for each in report["comparisons"])


def test_it_is_served(trained: Path) -> None:
    with serving([trained]) as server:
        answer = server.post("/v1/predict", texts=["the film is superb"], attention=True).json()
        [prediction] = answer["predictions"]
        assert prediction["text"] == "positive"
        assert sum(prediction["probabilities"].values()) == pytest.approx(1)
        assert prediction["attention"]["source_tokens"] == ["the", "film", "is", "superb", "</s>"]


def test_what_makes_no_sense_is_refused(trained: Path) -> None:
    model = transduce.load(trained)
    with pytest.raises(InputError, match="beam: classification does not search"):
        model.predict(["fine"], beam=3)
    with pytest.raises(InputError, match='expected one of the labels negative, positive; got "neutral"'):
        model.score([("fine", "neutral")])


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("model.kind=rnn", "expected a model that does"),
        ("training.r_drop=1.0", "for models that write text"),
        ("model.heads=8", "heads: not read with this encoder"),
        ("task.kind=translation", "training.best"),
    ],
)
def test_what_does_not_go_together_is_refused(corpus: Path, tmp_path: Path, override: str, said: str) -> None:
    recipe = recipe_at(corpus, tmp_path / "recipe.toml", "recurrent")
    more = ["model={kind='rnn'}"] if override == "model.kind=rnn" else [override]
    found = command(tmp_path, "train", recipe, *more, "--run", tmp_path / "run")
    assert found.code == 2, found.shown
    assert said in " ".join(found.shown.split())


# ---- files ---------------------------------------------------------------------------------------------------


def read(folder: Path, labels: dict[str, str] | None = None, **file: Any) -> list[tuple[int, str, str]]:
    return list(read_labelled(LabelledFile(**file), folder, labels))


def test_trees_are_read_with_their_phrases(tmp_path: Path) -> None:
    (tmp_path / "trees").write_text("(3 (2 (2 The) (2 Rock)) (4 great))\n(1 (2 The) (0 worst))\n")
    assert read(tmp_path, file="trees", trees=True) == [(1, "The Rock great", "3"), (2, "The worst", "1")]
    assert read(tmp_path, file="trees", trees=True, phrases=True) == [
        (1, "The Rock great", "3"),
        (1, "The", "2"),
        (1, "Rock", "2"),
        (1, "The Rock", "2"),
        (1, "great", "4"),
        (2, "The worst", "1"),
        (2, "worst", "0"),
    ]
    binary = {"0": "bad", "1": "bad", "3": "good", "4": "good"}
    kept = read(tmp_path, binary, file="trees", trees=True, phrases=True)
    assert [text for _, text, _ in kept] == ["The Rock great", "great", "The worst", "worst"]


def test_csv_and_jsonl_are_read_by_name(tmp_path: Path) -> None:
    with (tmp_path / "a.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["stars", "review"], ["5", 'so, "good"'], ["1", "bad"]])
    rows = [{"review": "so good", "stars": 5}, {"review": "bad", "stars": 1}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert read(tmp_path, file="a.csv", text="review", label="stars") == [(2, 'so, "good"', "5"), (3, "bad", "1")]
    assert read(tmp_path, file="a.jsonl", text="review", label="stars") == [(1, "so good", "5"), (2, "bad", "1")]


def test_labels_with_one_example_in_training_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("good\tpos\nfine\tpos\nbad\tneg\npoor\tneg\nso\tso\tpos\n")
    data = ClassificationData.model_validate({"root": str(tmp_path), "train": [{"file": "a.tsv"}]})
    config, told = TokenizerConfig(kind="whitespace", min_frequency=1), list[str]()
    columns = Classification.learn_columns(config, data)
    Classification(Classification.Config(), data, columns).open(tmp_path / "cache", told.append)
    assert "a.tsv: 1 label has one example in training" in told[-1] and '("so")' in told[-1]


@pytest.mark.parametrize(
    ("name", "text", "keys", "said"),
    [
        (
            "a.tsv",
            "fine\t1\nalone\n",
            {},
            r"a\.tsv: expected 2 tab-separated columns .* 1 line has fewer \(line 2",
        ),
        ("a.tsv", "fine\t1\n", {"text": "review"}, "expected a header with review"),
        ("a.csv", "text,stars\n", {"text": "review", "label": "stars"}, "expected columns review; its header has text"),
        ("a.jsonl", '{"text": "a"}\n', {}, r'a\.jsonl, line 1: expected an object {"text": \.\., "label": \.\.}'),
        ("a.txt", "no tree\n", {"trees": True}, r"a\.txt, line 1: expected a tree"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, name: str, text: str, keys: dict[str, Any], said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=said):
        read(tmp_path, file=name, **keys)


def task_of(folder: Path, task: dict[str, Any], **data: Any) -> Classification:
    parsed = ClassificationData.model_validate({"root": str(folder), "train": [{"file": "train.tsv"}], **data})
    columns = Classification.learn_columns(TokenizerConfig(kind="whitespace", min_frequency=1), parsed)
    return Classification(ClassificationConfig.model_validate(task), parsed, columns)


def test_labels_are_weighted_in_training_alone(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("a\tx\nb\tx\nc\tx\nd\ty\n")
    (tmp_path / "more.tsv").write_text("e\ty\n")
    training = TrainingConfig()
    model = Classifier(ClassifierConfig(d_model=4, hidden=4), Specs(ColumnSpec("tokens", 9), ColumnSpec("label", 2)))
    table = task_of(tmp_path, {"class_weights": {"y": 3}})
    assert table.objective(model, training).weights == (1.0, 3.0)
    assert table.objective(model).weights == ()
    files = [{"file": "train.tsv"}, {"file": "more.tsv", "weight": 2}]
    balanced = task_of(tmp_path, {"class_weights": "balanced"}, train=files)
    assert balanced.objective(model, training).weights == pytest.approx((6 / (2 * 3), 6 / (2 * 3)))
    alone = task_of(tmp_path, {"class_weights": "balanced"})
    assert alone.objective(model, training).weights == pytest.approx((4 / (2 * 3), 4 / (2 * 1)))
    with pytest.raises(InputError, match=r'there is no label "yy"\. Did you mean "y"'):
        task_of(tmp_path, {"class_weights": {"yy": 3}}).objective(model, training)


def test_unknown_labels_of_held_out_data_are_named_by_file_and_line(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text((corpus / "train.tsv").read_text())
    (tmp_path / "valid.tsv").write_text("fine\tpositive\nso so\tneutral\n")
    (tmp_path / "test.tsv").write_text("so so\tmixed\nfine\tpositive\n")
    task = task_of(tmp_path, {}, validation={"file": "valid.tsv"}, test={"t": {"file": "test.tsv"}})
    with pytest.raises(InputError) as refused:
        task.open(tmp_path / "cache", lambda line: None)
    known = "expected one of the labels negative, positive; got"
    assert [problem[: problem.index(" Did") if " Did" in problem else None] for problem in refused.value.problems] == [
        f'{tmp_path}/valid.tsv, line 2: {known} "neutral".',
        f'{tmp_path}/test.tsv, line 1: {known} "mixed".',
    ]


# ---- metrics ---------------------------------------------------------------------------------------------------


def confusions() -> Iterator[tuple[list[str], list[str]]]:
    for seed in range(20):
        random_ = random.Random(seed)
        yield tuple([random_.choice("abcd"[: 2 + seed % 3]) for _ in range(30)] for _ in range(2))  # type: ignore[misc]


def test_accuracy_and_macro_f1_are_their_definitions() -> None:
    for said, true in confusions():
        right = sum(one == other for one, other in zip(said, true, strict=True))
        assert accuracy_tally(said, true).value == pytest.approx(100 * right / 30)
        each = []
        for label in sorted({*said, *true}):
            hits = sum(one == other == label for one, other in zip(said, true, strict=True))
            precision, recall = hits / max(1, said.count(label)), hits / max(1, true.count(label))
            each.append(2 * precision * recall / (precision + recall) if hits else 0.0)
        assert macro_f1_tally(said, true).value == pytest.approx(100 * sum(each) / len(each))


def test_macro_f1_of_a_worked_example() -> None:
    """scikit-learn's documentation of f1_score: 0.2666.. of [0, 1, 2, 0, 1, 2] and [0, 2, 1, 0, 0, 1]."""
    assert macro_f1_tally([*"021001"], [*"012012"]).value == pytest.approx(100 * 0.26666666, abs=1e-4)


def test_texts_beyond_learned_positions_are_cut_and_told(corpus: Path, tmp_path: Path) -> None:
    """In training, validation, tests, predictions and likelihoods alike; the first tokens are read, and the end."""
    recipe = recipe_at(corpus, tmp_path / "short.toml", "transformer")
    keys = ["model.positions=learned", "model.max_length=4", "training.updates=20", "task.baseline=false"]
    done = command(tmp_path, "train", recipe, "--run", tmp_path / "short", "--force", *keys)
    assert done.code == 0, done.err
    for name, file in (("training", "train"), ("validation", "valid"), ("held_out", "test")):
        lengths = [len(line.split("\t")[0].split()) for line in (corpus / f"{file}.tsv").read_text().splitlines()]
        longer = sum(length > 3 for length in lengths)
        assert f"{name}: {longer} of {len(lengths)} texts were cut to 3 tokens" in done.shown
    made = transduce.load(tmp_path / "short")
    with pytest.warns(UserWarning, match="1 of 2 texts was cut to 3 tokens"):
        cut, short = made.predict(["the film is and acting", "the film is"])
    assert cut.probabilities == short.probabilities and cut.cut == (5, 3, ((0, 0), (0, 3), (5, 6)))
    score = made.score("the film is and acting", cut.label).log_probability
    assert score == pytest.approx(cut.log_probability, abs=1e-5)
    tokens = [each.text for each in cut.attention().source.tokens]
    assert tokens == ["the", "film", "is", "</s>"]
