"""What a model to start from was validated with is measured again, for any task whose files are there."""

import json
from pathlib import Path

import pytest

import transduce
from trained import shown
from transduce.data.pairs.inputs import Named
from transduce.planning.plan import make_plan
from transduce.recipe.recipe import Recipe
from transduce.training.run import run_training
from transduce.training.start_data import validation_of

FRUIT, COLOURS = ["apple", "pear", "plum", "fig"], ["red", "green", "blue", "grey"]


def write(path: Path, words: tuple[list[str], list[str]], count: int) -> str:
    rows = [
        (f"{word} {number} it is", label)
        for number in range(count)
        for label, some in zip("ab", words, strict=True)
        for word in some
    ]
    path.write_text("text\tlabel\n" + "".join(f"{text}\t{label}\n" for text, label in rows))
    return str(path)


@pytest.mark.usefixtures("briefly_measured")
def test_a_classifier_is_measured_by_what_the_first_one_was_validated_with(tmp_path: Path) -> None:
    files = {
        part: {"file": write(tmp_path / f"{part}.tsv", (FRUIT, COLOURS), count), "text": "text", "label": "label"}
        for part, count in (("train", 6), ("valid", 3))
    }
    brief = {"updates": 6, "validate_every": 3, "warmup": 1, "threads": 1, "learning_rate": 1e-2}
    first = Recipe.from_table(
        {
            "name": "first",
            "task": {"kind": "classification", "baseline": False},
            "data": {"train": [files["train"]], "validation": files["valid"]},
            "tokenizer": {"kind": "whitespace"},
            "model": {"kind": "classifier", "encoder": "recurrent", "d_model": 8, "hidden": 8},
            "training": brief,
        }
    )
    run_training(first, tmp_path / "first", shown())
    named = Named(source=Path(write(tmp_path / "new.tsv", (FRUIT[:2], COLOURS[2:]), 20)), task="classification")
    given = {"training": {"start": str(tmp_path / "first"), **brief}, "task": {"baseline": False}}
    plan = make_plan(named, given, None, shown(), "new")
    assert plan.recipe.training.kept == "kept" and plan.recipe.replay is None
    report = run_training(plan.recipe, tmp_path / "run", shown())
    rows = [line.split("\t") for line in (tmp_path / "valid.tsv").read_text().splitlines()[1:]]
    for found, model in ((report["start"], "first"), (report["validation"], "run")):
        outputs = transduce.load(tmp_path / model).predict([text for text, _ in rows])
        right = sum(each.text == label for each, (_, label) in zip(outputs, rows, strict=True))
        assert found["kept_accuracy"] == pytest.approx(100 * right / len(rows))
    assert validation_of(str(tmp_path / "first"), "tagging") is None
    (tmp_path / "valid.tsv").write_text("text\tlabel\nplum\tb\n")
    assert validation_of(str(tmp_path / "first"), "classification") is None
    (tmp_path / "first" / "data.json").write_text(json.dumps([1]))
    assert validation_of(str(tmp_path / "first"), "classification") is None
