"""Examples that are drawn from the training file: against a slow loop, and as three files would train."""

import hashlib
import json
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from forked import transduce
from toy_trainings import resumed_to_the_same_bytes
from transduce.core.errors import InputError
from transduce.data.hold_out import TEST, TRAIN, VALIDATION, HoldOut
from transduce.data.labelled import LabelledFile
from transduce.data.labelled_hold_out import split_labelled
from transduce.tasks.classification import ClassificationData

Example = tuple[str, str]
WORDS = ["the", "film", "is", "a", "fine", "dull", "one"]
RECIPE = """
[task]
kind = "classification"
[data]
{data}
[tokenizer]
kind = "whitespace"
min_frequency = 1
[batch]
tokens = 200
[model]
kind = "classifier"
encoder = "recurrent"
d_model = 8
hidden = 8
[training]
threads = 1
updates = 12
validate_every = 6
precision = "fp32"
best = "accuracy"
"""


def examples(count: int, seed: int) -> list[Example]:
    """Texts of which some come again in other case or with another label; labels of very different sizes."""
    draw = random.Random(seed)
    texts = [" ".join(draw.choices(WORDS, k=draw.randrange(2, 6))) for _ in range(count)]
    labels = draw.choices(["good", "bad", "so-so", "odd"], [60, 30, 9, 1], k=count)
    shown = [text.title() if draw.random() < 0.2 else text for text in texts]
    return [*zip(shown, labels, strict=True), ("  ", "good"), ("once", "single")]


def slowly(rows: list[Example], wanted: tuple[int, int]) -> list[int]:
    """The part of each row, by the words of the docstring, text by text."""
    same = [" ".join(text.casefold().split()) for text, _ in rows]
    key = {text: int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little") for text in same}
    label_of = {}
    for text in key:
        counts = Counter(label for other, (_, label) in zip(same, rows, strict=True) if other == text)
        label_of[text] = sorted(counts, key=lambda label: (-counts[label], label))[0]
    label_of.pop("", None)
    size = Counter(label_of[text] for text in same if text)
    given: list[dict[str, int]] = []
    for goal in wanted:
        most = {label: size[label] - 1 - sum(each[label] for each in given) for label in size}
        exact = {label: Fraction(goal * size[label], size.total()) for label in size}
        quota = {label: min(most[label], int(exact[label])) for label in size}
        for label in sorted(size, key=lambda label: (int(exact[label]) - exact[label], label)):
            if sum(quota.values()) < goal and quota[label] < most[label]:
                quota[label] += 1
        given.append(quota)
    part = {}
    for label in size:
        have = [0, 0]
        for text in sorted((each for each in label_of if label_of[each] == label), key=key.__getitem__):
            fits = [have[i] + same.count(text) <= given[i][label] and given[i][label] > 0 for i in (0, 1)]
            lacks = [Fraction(given[i][label] - have[i], given[i][label]) if fits[i] else Fraction(0) for i in (0, 1)]
            if max(lacks) > 0:
                which = 0 if lacks[0] >= lacks[1] else 1
                have[which] += same.count(text)
                part[text] = (VALIDATION, TEST)[which]
    return [part.get(text, TRAIN) for text in same]


def written(path: Path, rows: list[Example]) -> LabelledFile:
    path.write_text("".join(f"{text}\t{label}\n" for text, label in rows), encoding="utf-8")
    return LabelledFile(file=path.name)


@pytest.mark.parametrize("amounts", [HoldOut(validation=30, test=50), HoldOut(validation=0.2), HoldOut(test=7)])
@pytest.mark.parametrize("seed", [1, 2])
def test_the_parts_are_those_of_a_slow_loop(tmp_path: Path, amounts: HoldOut, seed: int) -> None:
    rows = examples(300, seed)
    file = written(tmp_path / "a.tsv", rows)
    split = split_labelled([file], tmp_path, amounts)
    assert split.parts[0].tolist() == slowly(rows, amounts.counts(len(rows)))


def test_the_same_text_stays_on_one_side_and_each_label_keeps_one(tmp_path: Path) -> None:
    rows = examples(400, 3)
    files = [written(tmp_path / "a.tsv", rows[:150]), written(tmp_path / "b.tsv", rows[150:])]
    split = split_labelled(files, tmp_path, HoldOut(validation=60, test=60))
    parts = [int(each) for part in split.parts for each in part]
    sides: dict[str, set[int]] = {}
    for (text, _), part in zip(rows, parts, strict=True):
        sides.setdefault(" ".join(text.casefold().split()), set()).add(part)
    assert {len(each) for each in sides.values()} == {1}
    trained = {label for (_, label), part in zip(rows, parts, strict=True) if part == TRAIN}
    assert trained == {label for _, label in rows}
    assert f"Held out of 402 examples: {split.count(VALIDATION)} for validation and" in split.report()


def test_the_order_of_the_lines_changes_nothing(tmp_path: Path) -> None:
    rows = examples(200, 4)
    turned = rows[::-1]
    one, other = (split_labelled([written(tmp_path / name, each)], tmp_path, HoldOut(validation=20, test=20))
                  for name, each in (("a.tsv", rows), ("b.tsv", turned)))  # fmt: skip
    assert one.parts[0].tolist() == other.parts[0].tolist()[::-1]


def test_too_few_examples_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "a.tsv", [("a", "x"), ("b", "y"), ("c", "x")])
    for amounts in (HoldOut(validation=2, test=1), HoldOut(validation=1, test=1)):
        with pytest.raises(InputError, match=r"a\.tsv: data\.hold_out: cannot hold out . of 3 examples"):
            split_labelled([file], tmp_path, amounts)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"validation": {"file": "b.tsv"}}, "validation and hold_out both give validation examples"),
        ({"test": {"held_out": {"file": "b.tsv"}}}, "hold_out.test is the test set held_out"),
        ({"train": {"file": "a.txt", "trees": True, "phrases": True}}, "phrases = true would train on parts"),
    ],
)
def test_what_is_given_twice_is_refused(more: dict[str, object], said: str) -> None:
    table = {"train": {"file": "a.tsv"}, "hold_out": {"validation": 0.1, "test": 0.1}, **more}
    with pytest.raises(ValueError, match=said):
        ClassificationData.model_validate(table)


def test_it_trains_and_is_scored_as_with_three_files(tmp_path: Path) -> None:
    rows = examples(300, 5)
    file = written(tmp_path / "all.tsv", rows)
    [parts] = split_labelled([file], tmp_path, HoldOut(validation=30, test=30)).parts
    for name, part in (("train", TRAIN), ("valid", VALIDATION), ("test", TEST)):
        written(tmp_path / f"{name}.tsv", [row for row, each in zip(rows, parts, strict=True) if each == part])
    root = f'root = "{tmp_path}"\n'
    drawn = 'train = { file = "all.tsv" }\nhold_out = { validation = 30, test = 30 }'
    three = 'train = { file = "train.tsv" }\nvalidation = { file = "valid.tsv" }\ntest.held_out = { file = "test.tsv" }'
    reports = []
    for name, data in (("drawn", drawn), ("three", three)):
        recipe = tmp_path / f"{name}.toml"
        recipe.write_text(RECIPE.format(data=root + data), encoding="utf-8")
        done = transduce(tmp_path, "train", recipe, "--run", tmp_path / name)
        assert done.code == 0, done.shown
        reports.append(json.loads((tmp_path / name / "report.json").read_text()))
    scores = [(each["tests"]["held_out"]["scores"], each["baseline"]["tests"]) for each in reports]
    assert scores[0] == scores[1]
    held_out = tmp_path / "drawn" / "held_out"
    assert (held_out / "test.source").read_text().count("\n") == int((parts == TEST).sum())
    options = ("--source", held_out / "test.source", "--reference", held_out / "test.target")
    done = transduce(tmp_path, "evaluate", tmp_path / "drawn", *options)
    assert done.code == 0, done.shown
    assert f"{scores[0][0]['accuracy']['value']:.1f}" in done.shown


def test_a_killed_training_ends_in_the_same_bytes(tmp_path: Path) -> None:
    written(tmp_path / "all.tsv", examples(200, 6))
    recipe = tmp_path / "recipe.toml"
    data = f'root = "{tmp_path}"\ntrain = {{ file = "all.tsv" }}\nhold_out = {{ validation = 20, test = 20 }}'
    recipe.write_text(RECIPE.format(data=data), encoding="utf-8")
    resumed_to_the_same_bytes(recipe)
