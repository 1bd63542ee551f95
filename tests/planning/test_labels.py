"""Tables of texts with labels: which are recognised, what is decided for them, and a training from end to end."""

import csv
import json
import random
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import transduce
from forked import transduce as command
from transduce.core.errors import InputError
from transduce.data.labelled import LabelledFile
from transduce.data.pairs.inputs import Named
from transduce.planning import plan
from transduce.planning.plan import TrainingPlan, make_plan
from transduce.planning.recognition import kind_of, planner_of
from transduce.planning.speed import Speed
from transduce.planning.tasks.labels import label_facts
from transduce.training.display import Display

WORDS = ["the", "film", "is", "and", "acting", "plot", "with", "scene", "end", "music", "very", "rather", "so"]
TELLING = {"good": ["fine", "lovely"], "bad": ["awful", "dull"], "so-so": ["fair", "usual"]}
Row = Sequence[str]


def texts(count: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    return [" ".join([*draw.choices(WORDS, k=8), str(n)]) for n in range(count)]


def labels(count: int, *names: str) -> list[str]:
    return [names[n % len(names)] for n in range(count)]


def table(path: Path, header: Row, *columns: Sequence[str]) -> Path:
    """A file of the kind that its suffix says; without a header if that is empty."""
    rows = list(zip(*columns, strict=True))
    if path.suffix == ".jsonl":
        lines = [json.dumps(dict(zip(header, row, strict=True)), ensure_ascii=False) for row in rows]
    elif path.suffix == ".json":
        lines = [json.dumps([dict(zip(header, row, strict=True)) for row in rows])]
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([header, *rows])
        return path
    else:
        lines = ["\t".join(row) for row in ([header, *rows] if header else rows)]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


N = 60
TEXTS, OTHERS = texts(N), texts(N, 2)
NUMBERS = [str(n) for n in range(N)]
LONG = [f"{text} and much more of it, as a body has it than a title" for text in OTHERS]
LEMMAS = [f"lemma{n // 3}" for n in range(N)]
FORMS = [f"form{n}" for n in range(N)]
TAGS = labels(N, "N;SG", "N;PL", "N;GEN")
TWO, FIVE = labels(N, "neg", "pos"), labels(N, *"12345")

LABELLED: dict[str, tuple[str, Row, Sequence[Sequence[str]], Any, Any]] = {
    "reviews": ("a.csv", ["text", "label"], (TEXTS, TWO), "text", "label"),
    "label first": ("a.csv", ["Label", "Review"], (TWO, TEXTS), "Review", "Label"),
    "objects": ("a.jsonl", ["text", "label"], (TEXTS, TWO), "text", "label"),
    "an array": ("a.json", ["sentence", "category"], (TEXTS, FIVE), "sentence", "category"),
    "tabs": ("a.tsv", ["text", "label"], (TEXTS, TWO), "text", "label"),
    "a header of other words": ("a.tsv", ["review", "label"], (TEXTS, TWO), "review", "label"),
    "no header": ("a.tsv", [], (TEXTS, TWO), 0, 1),
    "no header, label first": ("a.tsv", [], (TWO, TEXTS), 1, 0),
    "an id": ("a.csv", ["id", "tweet", "sentiment"], (NUMBERS, TEXTS, TWO), "tweet", "sentiment"),
    "title and body": ("a.csv", ["title", "body", "class"], (TEXTS, LONG, FIVE), "body", "class"),
    "target of few": ("a.csv", ["id", "text", "target"], (NUMBERS, TEXTS, TWO), "text", "target"),
    "stars": ("a.csv", ["review", "stars"], (TEXTS, FIVE), "review", "stars"),
    "unknown names": ("a.csv", ["was", "wie"], (TEXTS, TWO), "was", "wie"),
    "many labels": ("a.csv", ["query", "label"], (TEXTS, [f"intent {n % 20}" for n in range(N)]), "query", "label"),
    "Chinese": ("a.csv", ["文本", "标签"], (TEXTS, TWO), "文本", "标签"),
    "pairs of texts": ("a.tsv", ["premise", "hypothesis", "label"], (TEXTS, OTHERS, TWO),
                       ("premise", "hypothesis"), "label"),
}  # fmt: skip
PAIRS: dict[str, tuple[str, Row, Sequence[Sequence[str]]]] = {
    "translations": ("a.tsv", [], (TEXTS, OTHERS)),
    "languages": ("a.csv", ["en", "sw"], (TEXTS, TWO)),
    "languages by name": ("a.csv", ["English", "German"], (TEXTS, TWO)),
    "source and target": ("a.csv", ["source", "target"], (TEXTS, TWO)),
    "words and phones": ("a.tsv", [], (FORMS, [" ".join(each) for each in FORMS])),
    "inflection": ("a.tsv", [], (LEMMAS, FORMS, TAGS)),
    "dates": ("a.tsv", [], ([f"day {n} of May" for n in range(N)], [f"2020-05-{n:02}" for n in range(N)])),
    "commands of a small set": ("a.tsv", [], (labels(N, "jump", "walk twice"), labels(N, "JUMP", "WALK WALK"))),
    "a few repeated targets": ("a.tsv", [], (TEXTS, [f"yes {n // 2}" for n in range(N)])),
    "sums": ("a.tsv", [], ([f"{n} + 1" for n in range(N)], [str(n % 2) for n in range(N)])),
}


@pytest.mark.parametrize("name", LABELLED)
def test_tables_of_labels_are_recognised(tmp_path: Path, name: str) -> None:
    file, header, columns, text, label = LABELLED[name]
    path = table(tmp_path / file, header, *columns)
    inputs = planner_of(Named(path)).inputs
    read = LabelledFile.model_validate(inputs.train)
    assert (read.text, read.label) == (text, label)
    assert "trains a classifier" in inputs.notes[0]
    assert inputs.notes[0].endswith("pairs of texts instead: --task translation.")
    found = label_facts(read)
    assert (found.examples, sum(found.labels.values())) == (N, N)


@pytest.mark.parametrize("name", PAIRS)
def test_pairs_stay_pairs(tmp_path: Path, name: str) -> None:
    file, header, columns = PAIRS[name]
    assert kind_of(Named(table(tmp_path / file, header, *columns))) == "translation"


def test_what_only_pairs_have_makes_them_pairs(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ["text", "label"], TEXTS, TWO)
    for more in ({"languages": ("en", "sw")}, {"target": path}, {"root": tmp_path}):
        assert kind_of(Named(path, **more)) == "translation"  # type: ignore[arg-type]
    assert kind_of(Named(path, task="translation")) == "translation"
    assert kind_of(Named(path, columns=("text",), target_column="label")) == "classification"


@pytest.mark.parametrize(
    ("header", "columns", "named", "said"),
    [
        (["text", "label"], (TEXTS, OTHERS), {}, 'most values of column "label" occur once'),
        (["word", "class", "ipa"], (TEXTS, TWO, OTHERS), {}, r'columns "\w+" and "\w+" both hold texts'),
        (["was", "wie"], (TEXTS, TWO), {"columns": ("was",), "target_column": "wie"}, "named as for pairs of texts"),
    ],
)
def test_what_may_be_either_is_refused_with_both_commands(
    tmp_path: Path, header: Row, columns: Sequence[Sequence[str]], named: dict[str, Any], said: str
) -> None:
    path = table(tmp_path / "a.csv", header, *columns)
    with pytest.raises(InputError, match=said) as error:
        kind_of(Named(path, **named))
    for kind in ("classification", "translation"):
        assert f"transduce train {path} --task {kind}" in str(error.value)
        assert kind_of(Named(path, task=kind, **named)) == kind
    assert planner_of(Named(path, task="classification", **named)).inputs.train["label"] == header[1]


def test_no_other_task_can_be_named(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"--task clasification: .* Did you mean \"classification\"\? Other tasks need"
    ):
        kind_of(Named(tmp_path / "a.csv", task="clasification"))


def test_columns_that_are_asked_for_are_taken(tmp_path: Path) -> None:
    path = table(tmp_path / "a.csv", ["title", "body", "label", "class"], TEXTS, LONG, TWO, FIVE)
    inputs = planner_of(Named(path, columns=("title",), target_column="class")).inputs
    assert (inputs.train["text"], inputs.train["label"]) == ("title", "class")
    inputs = planner_of(Named(path, columns=("title", "body"))).inputs
    assert (inputs.train["text"], inputs.train["label"]) == (["title", "body"], "label")


def test_a_folder_brings_its_held_out_parts(tmp_path: Path) -> None:
    for name in ("train", "dev", "test"):
        table(tmp_path / f"{name}.csv", ["text", "label"], TEXTS, TWO)
    inputs = planner_of(Named(tmp_path)).inputs
    assert inputs.train["file"] == str(tmp_path / "train.csv")
    assert inputs.validation == {**inputs.train, "file": str(tmp_path / "dev.csv")}
    assert inputs.tests == {"test": {**inputs.train, "file": str(tmp_path / "test.csv")}}
    named = planner_of(Named(tmp_path / "train.csv", validation=tmp_path / "dev.csv")).inputs
    assert named.validation == inputs.validation
    assert named.named == ("validation",)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([(text, "pos") for text in TEXTS], r"found 60 with 1 labels \(pos 60\)"),
        ([*zip(TEXTS[:19], TWO, strict=False)], r"found 19 with 2 labels \(neg 10, pos 9\)"),
        ([*zip(TEXTS[:30], TWO, strict=False), ("a b", ""), ("c d", " ")], r"a\.csv, lines 32, 33: the label is mis"),
    ],
)
def test_too_few_examples_and_missing_labels_are_refused(tmp_path: Path, rows: list[Row], said: str) -> None:
    path = table(tmp_path / "a.csv", ["text", "label"], *zip(*rows, strict=True))
    with pytest.raises(InputError, match=said):
        make_plan(Named(path), {}, None, Display(Console(quiet=True)))


Planned = Callable[..., tuple[TrainingPlan, str]]


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Planned:
    """A plan for so many texts with these labels, on a machine of a known speed, and what was told."""
    monkeypatch.setattr(plan, "measure", lambda *_: Speed(update=0.1, validation=1.0, tests=2.0, start=0.0))

    def make(made: list[str], names: list[str], minutes: float | None = None, **given: Any) -> tuple[TrainingPlan, str]:
        path, told = table(tmp_path / "a.csv", ["text", "label"], made, names), Console(file=StringIO(), width=500)
        return make_plan(Named(path), given, minutes, Display(told)), told.file.getvalue()  # type: ignore[attr-defined]

    return make


def test_a_classifier_is_decided(planned: Planned) -> None:
    made, told = planned(texts(600), labels(600, "neg", "pos"))
    assert "600 examples with 2 labels: neg 300, pos 300. 9.0 words" in told
    table, recipe = made.table, made.recipe
    assert table["task"] == {"kind": "classification", "metrics": ["accuracy", "macro_f1"]}
    assert table["data"]["hold_out"] == {"validation": 60, "test": 60}
    assert table["tokenizer"] == {"kind": "whitespace", "vocabulary": 20_000, "min_frequency": 1, "lowercase": True}
    assert table["model"]["hidden"] == table["model"]["d_model"] == 128
    assert table["training"]["best"] == "accuracy"
    assert table["training"]["updates"] == 300  # ten epochs of 12 batches are fewer
    assert recipe.model.encoder == "recurrent"  # type: ignore[attr-defined]
    assert all(each.reason for each in made.decisions)


def test_large_data_makes_larger_models_and_fewer_epochs(planned: Planned) -> None:
    small, large = (planned(texts(count), labels(count, "a", "b"))[0] for count in (4_000, 40_000))
    assert [each.table["model"]["hidden"] for each in (small, large)] == [200, 300]
    epochs = [each.table["training"]["updates"] * each.table["batch"]["tokens"] / (10 * count)
              for each, count in ((small, 4_000), (large, 40_000))]  # fmt: skip
    assert epochs == [pytest.approx(10, rel=0.1), pytest.approx(10 / 2**0.5, rel=0.1)]
    assert large.table["data"]["hold_out"]["test"] == 1000


def test_very_unequal_labels_are_weighted_and_told(planned: Planned) -> None:
    made, _ = planned(texts(600), ["no"] * 560 + ["yes"] * 40)
    assert made.table["task"]["class_weights"] == "balanced"
    assert made.table["training"]["best"] == "macro_f1"
    reasons = {each.key: each.reason for each in made.decisions}
    assert reasons["task.class_weights"].startswith("93% of the examples have one label")
    assert "class_weights" not in planned(texts(600), labels(600, "a", "a", "a", "b"))[0].table["task"]


def test_text_without_spaces_is_read_by_characters(planned: Planned) -> None:
    made, _ = planned(
        [f"这部电影{'很好看' if n % 2 else '不好看'}第{n}次" for n in range(600)], labels(600, "坏", "好")
    )
    assert made.table["tokenizer"]["kind"] == "character"


def test_few_examples_of_a_label_are_told(planned: Planned) -> None:
    _, told = planned(texts(100), ["a"] * 50 + ["b"] * 47 + ["c"] * 3)
    assert "100 examples are few: you need at least 500" in told
    assert "1 label has fewer than 5 examples (c), and will hardly be learnt." in told


def test_too_short_a_time_makes_the_model_smaller(planned: Planned) -> None:
    made, told = planned(texts(4_000), labels(4_000, "a", "b"), minutes=0.3)
    assert made.table["model"]["hidden"] == 128
    assert "A smaller one is tried." in told


def labelled_texts(count: int) -> tuple[list[str], list[str]]:
    draw, names = random.Random(4), labels(count, *TELLING)
    made = []
    for name in names:
        words = draw.choices(WORDS, k=7)
        words[draw.randrange(7)] = draw.choice(TELLING[name])
        made.append(" ".join(words))
    return made, names


@pytest.mark.usefixtures("briefly_measured")
def test_python_trains_on_labelled_texts_that_it_holds(tmp_path: Path) -> None:
    made, names = labelled_texts(100)
    examples = [{"text": text, "label": name} for text, name in zip(made, names, strict=True)]
    small = {"training.updates": 3, "model.d_model": 8, "model.hidden": 8, "task.baseline": False}
    trained = train(tmp_path / "run", examples[:80], examples[80:], small)
    assert trained.report["tests"]["test"]["scores"].keys() == {"accuracy", "macro_f1"}
    assert trained.model.predict("the plot is awful").label in TELLING


def train(run: Path, data: Any, test: Any, overrides: dict[str, Any]) -> Any:
    return transduce.train(run=run, data=data, test=test, task="classification", overrides=overrides, quiet=True)


def test_a_table_is_trained_from_end_to_end_and_fine_tuned(tmp_path: Path) -> None:
    """The score stands beside that of a bag of n-grams; the same command goes on; another training starts from it."""
    path, run = table(tmp_path / "reviews.csv", ["text", "label"], *labelled_texts(300)), tmp_path / "run"
    first = ("train", path, "training.updates=6", "model.d_model=8", "model.hidden=8", "--run", run)
    done = command(tmp_path, *first)
    assert done.code == 0, done.shown
    shown = " ".join(done.shown.split())
    assert "trains a classifier" in shown
    assert "Held out of 300 examples: 30 for validation and 30 for the test" in shown
    assert "bag of n-grams (baseline) accuracy" in shown
    assert "were promised" in shown
    report = json.loads((run / "report.json").read_text())
    assert report["tests"]["held_out"]["scores"]["accuracy"]["value"] >= 0
    assert (run / "held_out" / "test.source").read_text().count("\n") == 30
    again = command(tmp_path, *first)
    assert again.code == 0, again.shown
    recipe = tmp_path / "more.toml"
    done = command(tmp_path, "new", recipe, "--source", path, "--start", run)
    assert done.code == 0, done.shown
    written = recipe.read_text()
    assert f'start = "{run}"' in written
    assert "hidden = 8" in written
    assert "learning_rate = 0.0001" in written
    assert "[tokenizer]" not in written
    done = command(tmp_path, "train", recipe, "training.updates=3", "--run", tmp_path / "more")
    assert done.code == 0, done.shown
