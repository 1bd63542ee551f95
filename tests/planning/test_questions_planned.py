"""Questions on texts: how they are read, what is decided, which texts are held out, and a training from end to end."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from forked import transduce as command
from transduce.core.errors import InputError
from transduce.data.pairs.inputs import Named
from transduce.data.structures.squad import read_squad
from transduce.planning import plan
from transduce.planning.plan import TrainingPlan, make_plan
from transduce.planning.recognition import planner_of
from transduce.planning.speed import Speed
from transduce.planning.tasks.spans import question_facts
from transduce.tasks.extractive_qa import HeldOutTexts
from transduce.training.display import Display

PLACES = ["Bonn", "Rome", "Oslo"]


def objects(path: Path, texts: int, on_a_text: int = 2, unanswered: bool = False, chinese: bool = False) -> Path:
    """An object a line; every second question without an answer where that is asked for."""
    rows = []
    for n in range(texts):
        place = PLACES[n % 3]
        context = (
            f"第{n}次会议在{place}举行，开了很久。"
            if chinese
            else f"The {n}th congress met in {place}, and it lasted for days."
        )
        for k in range(on_a_text):
            answers = [] if unanswered and k % 2 else [{"text": place, "answer_start": context.index(place)}]
            question = f"第{n}次会议{k}在哪里？" if chinese else f"Where did congress {n} meet {k}?"
            rows.append({"question": question, "context": context, "answers": answers})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A plan for a file, on a machine of a known speed, and what was told."""
    monkeypatch.setattr(plan, "measure", lambda *_: Speed(update=0.1, validation=1.0, tests=2.0, start=0.0))

    def make(path: Path, **given: Any) -> tuple[TrainingPlan, str]:
        told = StringIO()
        return make_plan(Named(path), given, None, Display(Console(file=told, width=500))), told.getvalue()

    return make


def test_all_ways_to_write_an_answer_are_read_alike(tmp_path: Path) -> None:
    context = "They met in Rome, and in Oslo."
    ways: list[dict[str, Any]] = [
        {"answers": [{"text": "Rome", "answer_start": 12}, {"text": "Oslo", "answer_start": 25}]},
        {"answers": {"text": ["Rome", "Oslo"], "answer_start": [12, 25]}},
    ]
    path = tmp_path / "a.jsonl"
    rows = [{"question": "Where?", "context": context, **each} for each in ways]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, rows[0] | {"answers": "Rome"}]) + "\n")
    found = read_squad(path)
    assert [each.answers for each in found] == [(("Rome", 12), ("Oslo", 25))] * 2 + [(("Rome", 0),)]
    assert [each.id for each in found] == ["1", "2", "3"]


def test_what_is_no_question_is_named_by_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"question": "Where?", "context": "There."}\n{"question": 3, "context": "a"}\n{"question"\n[1]\n')
    with pytest.raises(InputError) as error:
        read_squad(path)
    assert [each.partition(": expected")[0] for each in error.value.problems] == [
        f"{path}: line {n}" for n in (2, 3, 4)
    ]


def test_a_reader_is_decided(tmp_path: Path, planned: Any) -> None:
    made, told = planned(objects(tmp_path / "x.jsonl", 100))
    assert "finds answers in texts, as its objects have a question, a context and answers. To train on pairs" in told
    assert "200 questions on 100 texts" in told
    table = made.table
    assert table["task"]["kind"] == "extractive_qa"
    assert table["task"]["metrics"] == ["squad_em", "squad_f1"]
    assert table["data"]["hold_out"] == {"validation": 0.1, "test": 0.1}
    assert (table["model"]["kind"], table["model"]["hidden"]) == ("bidaf", 64)
    assert made.recipe.data.hold_out == HeldOutTexts(validation=0.1, test=0.1)  # type: ignore[attr-defined]
    assert all(each.reason for each in made.decisions)


def test_texts_without_answers_without_spaces_and_many_questions_are_decided(tmp_path: Path, planned: Any) -> None:
    made, told = planned(objects(tmp_path / "a.jsonl", 60, unanswered=True))
    assert "60 questions have no answer." in told
    assert (made.table["task"]["metrics"][0], made.table["task"]["no_answer"]) == ("squad2_em", True)
    chinese = planned(objects(tmp_path / "b.jsonl", 60, chinese=True))[0].table
    assert (chinese["tokenizer"]["kind"], chinese["task"]["metrics"][0]) == ("character", "cmrc_em")
    assert chinese["model"]["character_filters"] == 0
    large = planned(objects(tmp_path / "c.jsonl", 400, on_a_text=20))[0].table
    assert (large["model"]["kind"], large["model"]["d_model"]) == ("qanet", 96)


def test_few_texts_are_held_out_by_larger_shares_or_refused(tmp_path: Path, planned: Any) -> None:
    assert question_facts(objects(tmp_path / "a.jsonl", 16, on_a_text=5)).share > 0.1
    with pytest.raises(InputError, match=r"2 different texts are too few to hold some out.*--validation FILE"):
        planned(objects(tmp_path / "b.jsonl", 2, on_a_text=30))
    with pytest.raises(InputError, match=r"expected at least 50 questions.*found 4 questions, and 4 such answers"):
        question_facts(objects(tmp_path / "c.jsonl", 2))


def test_a_folder_brings_its_held_out_parts(tmp_path: Path) -> None:
    for name in ("train", "dev"):
        objects(tmp_path / f"{name}.jsonl", 30)
    inputs = planner_of(Named(tmp_path)).inputs
    assert (inputs.train, inputs.validation) == tuple({"file": f"{tmp_path}/{name}.jsonl"} for name in ("train", "dev"))


def test_a_file_is_trained_from_end_to_end(tmp_path: Path) -> None:
    path, run = objects(tmp_path / "x.jsonl", 60), tmp_path / "run"
    small = ("training.updates=2", "model.d_model=8", "model.hidden=8", "model.character_filters=4")
    done = command(tmp_path, "train", path, *small, "--run", run)
    assert done.code == 0, done.shown
    shown = " ".join(done.shown.split())
    assert "sliding window" in shown
    report = json.loads((run / "report.json").read_text())
    assert report["tests"]["held_out"]["scores"].keys() == {"squad_em", "squad_f1"}
