"""Pairs of texts and their labels: read from files, learnt, predicted, evaluated, attended to and served."""

import csv
import json
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

import transduce
from forked import transduce as command
from served import serving
from toy_trainings import trained_beside
from transduce.core.errors import InputError
from transduce.data.columns.packed import pack, unpack
from transduce.data.columns.text_pair import TextPair
from transduce.data.labelled import LabelledFile, joined, pair_of, read_labelled
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.interpret.attention import attention_of
from transduce.tasks.classification import ClassificationData
from transduce.tasks.protocols import TaskData
from transduce.training.plots import write_figures

FILLERS = ["the", "a", "very", "old"]


def drawn(count: int, seed: int) -> list[tuple[str, str, str]]:
    """Both texts name an animal; the label says whether it is the same, which neither text tells alone."""
    random_, rows = random.Random(seed), []
    for _ in range(count):
        animals = random_.choices(["cat", "dog"], k=2)
        texts = [" ".join([*random_.choices(FILLERS, k=random_.randrange(1, 3)), animal]) for animal in animals]
        rows.append((texts[0], texts[1], "same" if animals[0] == animals[1] else "other"))
    return rows


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    for name, count, seed in (("train", 300, 1), ("valid", 40, 2), ("test", 40, 3)):
        rows = drawn(count, seed)
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows([["gold", "premise", "hypothesis"], *((row[2], row[0], row[1]) for row in rows)])
        (folder / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    return folder


@pytest.fixture(scope="module")
def trained(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained_pairs")
    (folder / "recipe.toml").write_text(f"""
[task]
kind = "classification"
[data]
root = "{corpus}"
train = [{{ file = "train.tsv", text = [0, 1], label = 2 }}]
validation = {{ file = "valid.csv", text = ["premise", "hypothesis"], label = "gold" }}
[data.test]
table = {{ file = "test.csv", text = ["premise", "hypothesis"], label = "gold" }}
lines = {{ file = "test.tsv", text = [0, 1], label = 2 }}
[tokenizer]
kind = "whitespace"
min_frequency = 1
[batch]
tokens = 300
[model]
kind = "classifier"
d_model = 16
hidden = 32
dropout = 0.0
[training]
threads = 1
updates = 150
learning_rate = 1e-2
warmup = 5
average = 0.0
precision = "fp32"
best = "accuracy"
validate_every = 25
""")
    for _ in range(2):  # a finished run is left alone
        trained_beside(folder / "recipe.toml", tmp_path_factory)
    return folder / "run"


def test_both_texts_decide(trained: Path) -> None:
    model = transduce.load(trained)
    rows = drawn(60, 7)
    found = model.predict([joined(row[:2]) for row in rows])
    assert sum(each.text == row[2] for each, row in zip(found, rows, strict=True)) >= 57
    scores = json.loads((trained / "report.json").read_text())["tests"]
    assert scores["table"]["scores"] == scores["lines"]["scores"]
    assert sum(sum(row.values()) for row in scores["table"]["confusion"]["counts"].values()) == 40


def test_each_test_set_has_a_figure_of_its_confusions(trained: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    model, tests = transduce.load(trained), json.loads((trained / "report.json").read_text())["tests"]
    problems: list[str] = []
    for folder, chosen in (("both", tests), ("one", {"table": tests["table"]})):
        shutil.copytree(trained, tmp_path / folder, ignore=shutil.ignore_patterns("checkpoints"))
        write_figures(tmp_path / folder, model.model, model.task, TaskData([], None, {}, {}), chosen, problems.append)
    assert not problems
    assert {path.name for path in (tmp_path / "both/figures").glob("confusion*")} == {
        "confusion-table.png",
        "confusion-lines.png",
    }
    assert (tmp_path / "one/figures/confusion.png").is_file()


def test_attention_sees_the_tokens_of_both(trained: Path) -> None:
    model = transduce.load(trained)
    found = attention_of(model.model, model.task, model.predict("the cat\ta very old dog"))
    assert found.labels("source", 8) == ["the", "cat", "</s>", "a", "very", "old", "dog", "</s>"]
    assert [(each.start, each.end) for each in found.source.tokens] == [
        *[(0, 3), (4, 7), (7, 7), (8, 9), (10, 14), (15, 18), (19, 22), (22, 22)]
    ]


def test_predict_takes_lines_and_tables_and_names_wrong_lines(trained: Path, corpus: Path, tmp_path: Path) -> None:
    rows = drawn(5, 11)
    said = [each.text for each in transduce.load(trained).predict([joined(row[:2]) for row in rows])]
    lines = "".join(f"{first}\t{second}\n" for first, second, _ in rows)
    assert command(tmp_path, "predict", trained, given=lines.encode()).out.splitlines() == said
    shown = command(tmp_path, "predict", trained, "--json", given=lines.encode()).out.splitlines()
    assert [json.loads(line)["label"] for line in shown] == said
    with (tmp_path / "a.csv").open("w", newline="") as file:  # without labels
        csv.writer(file).writerows([["premise", "hypothesis"], *(row[:2] for row in rows)])
    assert command(tmp_path, "predict", trained, "--source", tmp_path / "a.csv").out.splitlines() == said
    (tmp_path / "a.csv").write_text("premise,hypothesis\na cat,a cat\na dog,\n,a dog\n")
    wrong = command(tmp_path, "predict", trained, "--source", tmp_path / "a.csv")
    assert wrong.code == 2
    assert [line[: line.index(" expected")].rpartition("/")[2] for line in wrong.err.splitlines()] == [
        "a.csv, line 3:",
        "a.csv, line 4:",
    ]
    wrong = command(tmp_path, "predict", trained, given=b"a cat\ta dog\nonly a cat\na\tb\tc\na cat\t\n")
    assert wrong.code == 2
    assert wrong.err.splitlines() == [
        'transduce: standard input, line 2: expected two texts with a tab between; got 1: "only a cat"',
        'standard input, line 3: expected two texts with a tab between; got 3: "a\tb\tc"',
        'standard input, line 4: expected two texts with a tab between; got 1: "a cat\t"',
    ]


def test_evaluate_reads_columns_tables_and_lines(trained: Path, corpus: Path, tmp_path: Path) -> None:
    expected = json.loads((trained / "report.json").read_text())["tests"]["table"]["scores"]["accuracy"]["value"]
    rows = drawn(40, 3)
    (tmp_path / "texts").write_text("".join(f"{joined(row[:2])}\n" for row in rows))
    (tmp_path / "labels").write_text("".join(f"{row[2]}\n" for row in rows))
    for options in (
        ["--source", corpus / "test.csv"],
        ["--tsv", corpus / "test.tsv", "--source-column", "0", "--source-column", "1", "--target-column", "2"],
        ["--source", tmp_path / "texts", "--reference", tmp_path / "labels"],
    ):
        done = command(tmp_path, "evaluate", trained, *options)
        assert f"accuracy {expected:.2f}" in done.out, done.shown
        assert "true \\ predicted" in done.out


def test_they_are_served(trained: Path) -> None:
    with serving([trained]) as server:
        answer = server.post("/v1/predict", texts=["the cat\ta cat", "the cat\ta dog"]).json()
        assert [each["text"] for each in answer["predictions"]] == ["same", "other"]
        refused = server.post("/v1/predict", texts=["the cat"])
        assert refused.status_code in (400, 422)
        assert "expected two texts with a tab between" in refused.text


# ---- column and files ----------------------------------------------------------------------------------------


def test_a_row_is_both_texts_with_the_end_token_between() -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="whitespace", min_frequency=1), ["a b c d"])
    column = TextPair.of(tokenizer)
    [row] = column.encode(["a b\tc d"])
    [first], [second] = tokenizer.encode(["a b"]), tokenizer.encode(["c d"])
    assert row == [*first, tokenizer.end, *second]
    padded = column.collate([np.array(row, np.int32), np.array(row[:3], np.int32)])
    assert padded.values[0].tolist() == [*row, tokenizer.end]
    assert padded.lengths.tolist() == [6, 4]
    assert column.parts("a b\tc d") == [(0, 3), (4, 7)]
    assert unpack(*pack({"source": column}))["source"].encode(["a b\tc d"]) == [row]
    assert column.encode([]) == []
    assert column.encode(["", "\t"]) == [[tokenizer.end]] * 2  # nothing is the pair of two empty texts


@pytest.mark.parametrize("text", ["one", "one\t", "\ttwo", " \ttwo", "a\tb\tc"])
def test_what_is_no_pair_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected two texts with a tab between"):
        pair_of(text)


def read(folder: Path, **file: Any) -> list[tuple[int, str, str]]:
    return list(read_labelled(LabelledFile(**file), folder))


def test_columns_of_pairs(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("same\tx\ta cat\tthe cat\n")
    assert read(tmp_path, file="a.tsv", text=[2, 3], label=0) == [(1, "a cat\tthe cat", "same")]
    row = {"s1": "a\tcat", "s2": "b\ncat", "y": 1}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    assert read(tmp_path, file="a.jsonl", text=["s1", "s2"], label="y") == [(1, "a cat\tb\ncat", "1")]
    (tmp_path / "b.jsonl").write_text('{"s1": "a", "y": 1}\n' + json.dumps(row) + '\n{"s1": "a", "s2": null, "y": 1}\n')
    with pytest.raises(InputError, match=r'b\.jsonl, line 1: expected an object .*"s2".*; lines 1, 3 are wrong'):
        read(tmp_path, file="b.jsonl", text=["s1", "s2"], label="y")
    with pytest.raises(InputError, match="expected the names of both texts"):
        read(tmp_path, file="b.jsonl", text=[0, 1], label="y")


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"text": [0, 1, 2]}, "expected one column or two; got 3"),
        ({"text": []}, "expected one column or two; got 0"),
        ({"text": [0, 1], "trees": True}, "a tree is one text"),
        ({"text": -1}, "counted from 0"),
    ],
)
def test_wrong_columns_are_refused(keys: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        LabelledFile(file="a.tsv", **keys)


def test_texts_and_pairs_do_not_mix() -> None:
    with pytest.raises(ValidationError, match=r"a\.tsv has a pair in every line, and b\.tsv one text"):
        ClassificationData.model_validate(
            {"train": [{"file": "a.tsv", "text": [0, 1], "label": 2}], "test": {"t": {"file": "b.tsv"}}}
        )
