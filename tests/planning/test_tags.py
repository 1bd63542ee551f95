"""Words with labels: the files that are meant, what is decided, held-out parts, and a training from end to end."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from forked import transduce as command
from transduce.core.errors import InputError
from transduce.data.hold_out import TEST, TRAIN, VALIDATION, HoldOut
from transduce.data.pairs.inputs import Named
from transduce.data.tagged import TaggedFile, read_tagged
from transduce.data.tagged_hold_out import split_tagged
from transduce.planning import plan
from transduce.planning.plan import TrainingPlan, make_plan
from transduce.planning.recognition import planner_of
from transduce.planning.speed import Speed
from transduce.training.display import Display

NAMES = ["Ann", "Bob", "Eve", "Joe"]
PLACES = ["Bonn", "Rome", "Oslo"]


def sentence(number: int) -> list[tuple[str, str]]:
    name, place = NAMES[number % 4], PLACES[number % 3]
    return [(name, "B-PER"), (f"X{number}", "I-PER"), ("visits", "O"), (place, "B-LOC"), (".", "O")]


def conll(path: Path, count: int, a_document: int = 0) -> Path:
    """So many texts; -DOCSTART- before each so many."""
    texts = ["".join(f"{word}\t{label}\n" for word, label in sentence(n)) + "\n" for n in range(count)]
    starts = {n for n in range(count) if a_document and n % a_document == 0}
    marked = ["-DOCSTART-\tO\n\n" * (n in starts) + text for n, text in enumerate(texts)]
    path.write_text("".join(marked), encoding="utf-8")
    return path


@pytest.fixture
def planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A plan for a file, on a machine of a known speed, and what was told."""
    monkeypatch.setattr(plan, "measure", lambda *_: Speed(update=0.1, validation=1.0, tests=2.0, start=0.0))

    def make(path: Path, task: str | None = None, **given: Any) -> tuple[TrainingPlan, str]:
        told = StringIO()
        display = Display(Console(file=told, width=500))
        return make_plan(Named(path, task=task), given, None, display), told.getvalue()

    return make


def test_a_tagger_is_decided(tmp_path: Path, planned: Any) -> None:
    made, told = planned(conll(tmp_path / "names.conll", 600))
    assert "trains a tagger, as its name ends in .conll. To train on pairs of texts instead: --task translation" in told
    assert "600 texts of 3,000 words with 2 kinds of spans: LOC 600, PER 600. Labels follow BIO." in told
    table, recipe = made.table, made.recipe
    assert table["task"] == {"kind": "tagging", "metrics": ["entity_f1", "accuracy"]}
    assert table["data"]["hold_out"] == {"validation": 60, "test": 60}
    assert table["training"]["best"] == "entity_f1"
    assert (table["model"]["d_model"], table["model"]["hidden"], recipe.model.crf) == (64, 128, True)
    assert (made.name, table["training"]["updates"]) == ("names", 300)
    assert all(each.reason for each in made.decisions)


def test_labels_of_single_words_are_counted_right(tmp_path: Path, planned: Any) -> None:
    path = tmp_path / "pos.conllu"
    word = "{}\t{}\t_\t{}\t_\t_\t0\tdep\t_\t_\n"
    rows = [word.format(1, f"w{n}", "NOUN") + word.format(2, "runs", "VERB") for n in range(60)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    made, told = planned(path)
    assert "60 texts of 120 words with 2 labels: NOUN 60, VERB 60." in told
    assert "60 texts are few" in told
    assert (made.table["task"]["metrics"], made.table["training"]["best"]) == (["accuracy", "macro_f1"], "accuracy")
    assert "crf" not in made.table["model"]


def test_raw_text_with_spans_is_cut_at_its_punctuation(tmp_path: Path, planned: Any) -> None:
    path = tmp_path / "x.jsonl"
    rows = [{"text": f"Ann{n}, too.", "spans": [[0, 3 + len(str(n)), "PER"]]} for n in range(60)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    made, told = planned(path)
    assert 'as its objects have "text" and "spans"' in told
    assert made.table["data"]["unit"] == "split"
    assert "PER 60" in told


def test_columns_and_a_folder_are_taken(tmp_path: Path) -> None:
    for name in ("train", "dev", "test"):
        conll(tmp_path / f"{name}.txt", 30)
    inputs = planner_of(Named(tmp_path)).inputs
    assert inputs.train == {"file": str(tmp_path / "train.txt")}
    assert inputs.validation == {"file": str(tmp_path / "dev.txt")}
    assert inputs.tests == {"test": {"file": str(tmp_path / "test.txt")}}
    named = Named(tmp_path / "train.txt", columns=(0,), target_column=1, task="tagging")
    assert planner_of(named).inputs.train == {"file": str(tmp_path / "train.txt"), "word": 0, "label": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\tX\n\n" * 19 + "b\tY\n", None),
        ("a\tX\n\nb\tY\n\n" * 9, r"a\.conll: expected at least 20 texts, with an empty line between; found 18"),
        ("a\tX\n\n" * 20, r'expected words with two different labels or more; got "X"'),
        ("a\tX\n\nb\n" * 20, r"a\.conll, line 3: expected a word and its label"),
    ],
)
def test_files_that_teach_nothing_are_refused(tmp_path: Path, planned: Any, text: str, said: str | None) -> None:
    path = tmp_path / "a.conll"
    path.write_text(text, encoding="utf-8")
    if said is None:
        assert planned(path)
    else:
        with pytest.raises(InputError, match=said):
            planned(path)


def parts_by_text(path: Path, amounts: HoldOut) -> tuple[dict[str, int], str]:
    texts = read_tagged(TaggedFile(file=str(path)), Path())
    split = split_tagged("a", [texts], amounts)
    [parts] = split.parts
    return {words: int(part) for (_, words, _), part in zip(texts.examples, parts, strict=True)}, split.report()


def test_texts_are_held_out_by_their_words_alone(tmp_path: Path) -> None:
    """The order of texts, and how often one stands there, change nothing; the same text is on one side."""
    amounts = HoldOut(validation=20, test=30)
    found, report = parts_by_text(conll(tmp_path / "a.conll", 200), amounts)
    assert [list(found.values()).count(part) for part in (TRAIN, VALIDATION, TEST)] == [150, 20, 30]
    assert report == "Held out of 200 texts: 20 for validation and 30 for the test, the same text on one side."
    texts = (tmp_path / "a.conll").read_text().split("\n\n")[:-1]
    (tmp_path / "b.conll").write_text("\n\n".join([*reversed(texts)]) + "\n\n")
    assert parts_by_text(tmp_path / "b.conll", amounts)[0] == found


def test_whole_documents_are_held_out_where_they_are_marked(tmp_path: Path) -> None:
    found, report = parts_by_text(conll(tmp_path / "a.conll", 200, a_document=5), HoldOut(validation=20, test=30))
    assert report == "Held out of 200 texts: 20 for validation and 30 for the test, whole documents."
    by_document = [set([*found.values()][n : n + 5]) for n in range(0, 200, 5)]
    assert all(len(parts) == 1 for parts in by_document)
    _, report = parts_by_text(conll(tmp_path / "b.conll", 200, a_document=100), HoldOut(validation=20, test=30))
    assert report.endswith("the same text on one side.")  # two documents are too few to draw from


def test_a_file_is_trained_from_end_to_end_and_fine_tuned(tmp_path: Path) -> None:
    path, run = conll(tmp_path / "names.conll", 100), tmp_path / "run"
    small = ("training.updates=4", "model.d_model=8", "model.hidden=8", "model.character_filters=4")
    done = command(tmp_path, "train", path, *small, "--run", run)
    assert done.code == 0, done.shown
    shown = " ".join(done.shown.split())
    assert "Held out of 100 texts: 10 for validation and 10 for the test" in shown
    assert "most frequent label (baseline) entity F1" in shown
    report = json.loads((run / "report.json").read_text())
    assert report["tests"]["held_out"]["scores"].keys() == {"entity_f1", "accuracy"}
    held_out = (run / "held_out" / "test.source").read_text().splitlines()
    assert len(held_out) == 10
    recipe = tmp_path / "more.toml"
    done = command(tmp_path, "new", recipe, "--source", path, "--start", run)
    assert done.code == 0, done.shown
    written = recipe.read_text()
    assert "hidden = 8" in written
    assert "learning_rate = 0.0001" in written
    done = command(tmp_path, "train", recipe, "training.updates=2", "--run", tmp_path / "more")
    assert done.code == 0, done.shown
