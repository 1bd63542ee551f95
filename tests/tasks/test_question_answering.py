"""Questions on stories: read, trained, resumed, evaluated by task, predicted."""

import hashlib
import json
import random
import shutil
import signal
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import transduce
from forked import Fate
from forked import transduce as command
from toy_trainings import trained_beside
from transduce.core.errors import InputError
from transduce.data.batches import SizedBatches
from transduce.data.structures.stories import story_of
from transduce.evaluation.evaluate import Settings, evaluate_files
from transduce.evaluation.texts import Files
from transduce.metrics.groups import by_group, group_mean
from transduce.metrics.labels import error_tally
from transduce.recipe.recipe import load_recipe
from transduce.runtime.event_log import read_log
from transduce.tasks.question_answering import QuestionAnswering, QuestionAnsweringData
from transduce.training.plots import write_figures

PEOPLE, PLACES = ("Mary", "John", "Sandra"), ("garden", "kitchen", "hallway")


def stories(path: Path, seed: int, count: int, answers: tuple[str, ...] = PLACES) -> None:
    """Who is where, two moves a question; the answer is where somebody went last."""
    random_, lines = random.Random(seed), []
    for _ in range(count):
        where: dict[str, tuple[str, int]] = {}
        number = 0
        for _ in range(2):
            for _ in range(2):
                number += 1
                who, place = random_.choice(PEOPLE), random_.choice(answers)
                where[who] = (place, number)
                lines.append(f"{number} {who} went to the {place}.")
            number += 1
            who = random_.choice(sorted(where))
            lines.append(f"{number} Where is {who}?\t{where[who][0]}\t{where[who][1]}")
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("babi")
    for task, seed in (("qa1_easy", 1), ("qa2_easier", 2), ("qa10_easiest", 3)):
        stories(folder / f"{task}_train.txt", seed, 100)
        stories(folder / f"{task}_test.txt", 10 + seed, 20)
    return folder


@pytest.fixture(scope="module")
def recipe(corpus: Path) -> Path:
    path = corpus / "stories.toml"
    path.write_text(f"""
[task]
kind = "question_answering"
[data]
root = {json.dumps(str(corpus))}
train = [{{ file = "qa*_train.txt" }}]
hold_out = 0.1
test = {{ toy = {{ file = "qa*_test.txt" }} }}
[tokenizer]
kind = "whitespace"
min_frequency = 1
lowercase = true
[model]
kind = "memory_network"
d_model = 12
hops = 2
slots = 6
linear_start = 30
[training]
threads = 1
updates = 220
optimizer = "sgd"
learning_rate = 0.3
schedule = "linear"
warmup = 20
clip = 1.25
average = 0
precision = "fp32"
label_smoothing = 0
best = "error"
validate_every = 40
checkpoint_every = 20
log_every = 20
""")
    return path


@pytest.fixture(scope="module")
def run(recipe: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    trained_beside(recipe, tmp_path_factory)
    return recipe.parent / "run"


# ---- data --------------------------------------------------------------------------------------------------


def test_the_last_stories_of_each_file_are_held_out(corpus: Path) -> None:
    data = QuestionAnsweringData.model_validate(
        {"root": str(corpus), "train": {"file": "qa*_train.txt"}, "hold_out": 0.1}
    )
    trained, held_out = data.parts(corpus)
    assert {each.story for each in held_out} == set(range(90, 100))
    assert {each.story for each in trained} == set(range(90))
    for part, count in ((trained, 180), (held_out, 20)):
        assert [sum(each.task == task for each in part) for task in ("qa1_easy", "qa2_easier", "qa10_easiest")] == [
            count
        ] * 3
    with pytest.raises(InputError, match="too few stories"):
        data.model_copy(update={"hold_out": 0.001}).parts(corpus)


def test_columns_are_the_words_and_answers_of_training(recipe: Path) -> None:
    loaded = load_recipe(recipe)
    columns = QuestionAnswering.learn_columns(loaded.tokenizer, loaded.data)
    label = columns["target"]
    assert label.tokens(range(3)) == ["garden", "hallway", "kitchen"]
    assert [columns["source"].tokens(ids) for ids in label.words] == [["garden"], ["hallway"], ["kitchen"]]


def test_an_answer_that_training_does_not_have_counts_as_wrong(recipe: Path, corpus: Path, tmp_path: Path) -> None:
    stories(corpus / "odd.txt", 5, 4, ("attic",))
    told: list[str] = []
    loaded = load_recipe(recipe, ["data.test={odd={file='odd.txt'}}"])
    task = QuestionAnswering(loaded.task, loaded.data, QuestionAnswering.learn_columns(loaded.tokenizer, loaded.data))
    with pytest.raises(InputError, match="nothing to learn from"):
        task.open(tmp_path, told.append)
    both = load_recipe(recipe, ["data.test={odd={file='*[d1]_*test.txt'}}"])
    (corpus / "odd_1_test.txt").write_text((corpus / "odd.txt").read_text())
    task = QuestionAnswering(both.task, both.data, task.columns)
    data = task.open(tmp_path, told.append)
    assert len(data.tests["odd"].texts) == len(data.tests["odd"].groups) == 48
    assert "8 with an answer that no training question has" in told[-2]


def test_batches_are_equally_large_and_every_question_comes_once_an_epoch(recipe: Path, tmp_path: Path) -> None:
    loaded = load_recipe(recipe)
    task = QuestionAnswering(loaded.task, loaded.data, QuestionAnswering.learn_columns(loaded.tokenizer, loaded.data))
    plan = task.open(tmp_path, lambda line: None).batches(loaded.batch, 1)
    assert isinstance(plan, SizedBatches)
    orders = []
    for number in (0, 1):
        rows = [each.rows for each in plan.epoch(number)]
        assert [len(each) for each in rows] == [32] * 16 + [28]
        assert plan.count(number) == 17
        orders.append(np.concatenate(rows))
        assert sorted(orders[-1].tolist()) == list(range(540))
        assert all((a == b).all() for a, b in zip(rows[5:], (each.rows for each in plan.epoch(number, 5)), strict=True))
    assert (orders[0] != orders[1]).any()


# ---- scores by task ----------------------------------------------------------------------------------------


def test_the_mean_over_groups_counts_each_group_the_same() -> None:
    hypotheses, references = list("aabbbbbb"), list("abbbbbbb")
    groups = ["x", "x", "y", "y", "y", "y", "y", "y"]
    tally = error_tally(hypotheses, references)
    assert tally.value == pytest.approx(12.5)
    assert {name: each.value for name, each in by_group(tally, groups).items()} == {"x": 50, "y": 0}
    mean = group_mean(tally, groups)
    assert (mean.value, mean.lower_is_better) == (25, True)
    assert mean.signature == "nrefs:1|unit:label|case:mixed|groups:2|mean:groups"
    low, high = mean.score().interval or (0, 0)
    assert 0 <= low < 25 < high <= 50


# ---- trained -----------------------------------------------------------------------------------------------


def sha256(run: Path) -> str:
    return hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest()


def test_training_learns_and_tells_each_task(run: Path) -> None:
    report = json.loads((run / "report.json").read_text())
    test = report["tests"]["toy"]
    assert list(test["groups"]) == ["qa1_easy", "qa2_easier", "qa10_easiest"]
    errors = [each["scores"]["error"]["value"] for each in test["groups"].values()]
    assert [each["examples"] for each in test["groups"].values()] == [40] * 3
    assert test["scores"]["error_mean"]["value"] == pytest.approx(sum(errors) / 3)
    assert test["scores"]["error_mean"]["name"] == "error, mean of 3"
    assert report["baseline"]["name"] == "bag of n-grams"
    assert 0 < report["baseline"]["tests"]["toy"]["scores"]["error_mean"]["value"] < 67  # a guess of three places
    losses = [event["loss"] for event in read_log(run / "log.jsonl") if event["event"] == "train"]
    assert losses[-1] < 0.8 * np.log(3)


def test_the_model_file_has_stories_to_explore(run: Path) -> None:
    model: Any = transduce.load(run)
    shown = model.provenance["examples"]
    assert shown
    for text in shown:
        assert story_of(text).facts


def test_its_figures_show_the_hops(recipe: Path, run: Path, tmp_path: Path) -> None:
    model: Any = transduce.load(run)
    loaded, told = load_recipe(recipe), []
    task = QuestionAnswering(loaded.task, loaded.data, model.task.columns)
    shutil.copy(run / "log.jsonl", tmp_path)
    write_figures(tmp_path, model.model, task, task.open(tmp_path, lambda line: None), {}, told.append)
    assert not told
    assert {each.name for each in (tmp_path / "figures").iterdir()} >= {"hops.png", "training.png"}


@pytest.mark.parametrize("at", [13, pytest.param(35, marks=pytest.mark.slow)])  # in the linear start, and behind it
def test_a_stopped_training_ends_in_the_same_bytes(recipe: Path, run: Path, tmp_path: Path, at: int) -> None:
    stopped = command(tmp_path, "train", recipe, "--run", tmp_path / "run", fate=Fate(signal=signal.SIGTERM, at=at))
    assert stopped.code == 130, stopped.shown
    found = command(tmp_path, "train", recipe, "--run", tmp_path / "run")
    assert found.code == 0, found.shown
    assert sha256(tmp_path / "run") == sha256(run)


def test_the_linear_start_changes_what_is_learnt(recipe: Path, run: Path, tmp_path: Path) -> None:
    found = command(tmp_path, "train", recipe, "model.linear_start=0", "--run", tmp_path / "run")
    assert found.code == 0, found.shown
    assert sha256(tmp_path / "run") != sha256(run)


def test_a_story_predicts_the_same_however_it_is_written(run: Path) -> None:
    model: Any = transduce.load(run)
    plain = "Mary went to the garden. John went to the kitchen. Where is Mary?"
    table = {"story": ["Mary went to the garden.", "John went to the kitchen."], "question": "Where is Mary?"}
    first, second, third = model.predict([plain, json.dumps(table), plain.replace(". ", ".\n")])
    assert first.label == second.label == third.label
    assert first.probabilities == pytest.approx(second.probabilities)
    assert set(first.probabilities) == set(PLACES)
    with pytest.raises(InputError, match="expected a story and a question"):
        model.predict(["Where is Mary?"])


def test_evaluate_reads_files_and_patterns(run: Path, corpus: Path) -> None:
    model: Any = transduce.load(run)
    reported = json.loads((run / "report.json").read_text())["tests"]["toy"]
    found = evaluate_files({"m": model}, Files(corpus / "qa*_test.txt", []), Settings(), lambda count: None)
    assert found["groups"] == reported["groups"]
    assert found["scores"] == reported["scores"]
    assert sorted(Path(path).name for path in found["data"]) == sorted(
        path.name for path in corpus.glob("qa*_test.txt")
    )
    alone = evaluate_files({"m": model}, Files(corpus / "qa1_easy_test.txt", []), Settings(), lambda count: None)
    assert alone["scores"]["error"] == reported["groups"]["qa1_easy"]["scores"]["error"]


def test_evaluate_and_predict_read_files_in_an_archive(run: Path, corpus: Path, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "toy.tar.gz", "w:gz") as archive:
        for path in corpus.glob("qa*_test.txt"):
            archive.add(path, f"en/{path.name}")
    model: Any = transduce.load(run)
    packed = tmp_path / "toy.tar.gz:en" / "qa*_test.txt"
    reported = json.loads((run / "report.json").read_text())["tests"]["toy"]
    found = evaluate_files({"m": model}, Files(packed, []), Settings(), lambda count: None)
    assert (found["groups"], found["scores"]) == (reported["groups"], reported["scores"])
    shown = command(tmp_path, "predict", run, "--source", packed)
    plain = command(tmp_path, "predict", run, "--source", corpus / "qa*_test.txt")
    assert shown.code == 0, shown.shown
    assert shown.shown == plain.shown


def test_answers_that_training_never_gave_count_as_wrong(run: Path, corpus: Path, tmp_path: Path) -> None:
    known = (corpus / "qa1_easy_test.txt").read_text()
    (tmp_path / "known.txt").write_text(known)
    (tmp_path / "more.txt").write_text(known + "1 Mary went to the garden.\n2 Where is Mary?\tattic\t1\n")
    (tmp_path / "none.txt").write_text("1 Mary went to the garden.\n2 Where is Mary?\tattic\t1\n")
    model: Any = transduce.load(run)
    found = {
        name: evaluate_files({"m": model}, Files(tmp_path / f"{name}.txt", []), Settings(), lambda count: None)
        for name in ("known", "more", "none")
    }
    errors = {name: each["scores"]["error"]["value"] * each["sentences"] for name, each in found.items()}
    assert errors["more"] == pytest.approx(errors["known"] + 100)
    assert found["more"]["likelihood"]["tokens"] == found["known"]["sentences"]
    assert found["more"]["unknown_answers"] == found["none"]["unknown_answers"] == 1
    assert found["none"]["scores"]["error"]["value"] == 100
    assert "likelihood" not in found["none"]
    shown = command(tmp_path, "evaluate", run, "--source", tmp_path / "more.txt")
    assert shown.code == 0, shown.shown
    assert "answers that no training question has, which count as wrong: 1" in " ".join(shown.shown.split())


def test_the_command_shows_a_table_of_tasks(run: Path, corpus: Path, tmp_path: Path) -> None:
    found = command(tmp_path, "evaluate", run, "--source", corpus / "qa*_test.txt")
    assert found.code == 0, found.shown
    for task in ("qa1_easy", "qa2_easier", "qa10_easiest", "error, mean of 3"):
        assert task in found.shown


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["model.kind=classifier", "model.hops=none"], "expected a task with a text and a label"),
        (["tokenizer.vocabulary=6"], "two answers are the same"),
        (["data.train=[{file='nothing*.txt'}]"], "no file has such a name"),
        (["data.hold_out=0.5", "data.validation={file='qa1_easy_test.txt'}"], "leave out either"),
    ],
)
def test_what_does_not_fit_is_refused(recipe: Path, tmp_path: Path, settings: list[str], said: str) -> None:
    if settings[0].startswith("model.kind"):
        text = recipe.read_text()
        head, tail = text.split("[model]")
        recipe = tmp_path / "other.toml"
        recipe.write_text(head + '[model]\nkind = "classifier"\n[training]' + tail.split("[training]")[1])
        settings = []
    found = command(tmp_path, "train", recipe, *settings, "--run", tmp_path / "run")
    assert found.code == 2, found.shown
    assert said in " ".join(found.shown.split())
