"""recipes/squad.toml on slices in SQuAD's formats: trained, predicted, judged; its held-out texts and its baseline."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forked import transduce as command
from transduce.core.errors import InputError
from transduce.data.structures.squad import read_squad
from transduce.metrics.span import squad2_tally, squad_tally
from transduce.recipe.recipe import load_recipe
from transduce.tasks.extractive_qa import ExtractiveQa

ROOT = Path(__file__).parents[2]
RECIPE = ROOT / "recipes" / "squad.toml"
XQUAD = ROOT.parent / "shared" / "data" / "qa_xquad" / "xquad.en.json.gz"
SMALL = ["model.d_model=8", "model.hidden=8", "model.character_filters=4", "tokenizer.vocabulary=300"]
SMALL += [
    "training.updates=2",
    "training.threads=1",
    "training.precision=fp32",
    "batch.tokens=2000",
    "data.hold_out=0.0",
]
CITIES = ["Rome", "Paris", "Oslo", "Lima", "Cairo", "Quito", "Minsk", "Seoul", "Tunis", "Dakar"]


def article(cities: list[str], version: str) -> dict[str, Any]:
    """What SQuAD's files look like; in 2.0, every other question has no answer, but a plausible one."""
    paragraphs = []
    for place, city in enumerate(cities):
        context = f"The {place}th congress met in {city}. It lasted for {place + 2} days, and ended in peace."
        start = context.index(city)
        asked: dict[str, Any] = {"id": f"{place}-where", "question": f"Where did the {place}th congress meet?"}
        asked["answers"] = [{"text": city, "answer_start": start}, {"text": f"in {city}", "answer_start": start - 3}]
        when: dict[str, Any] = {"id": f"{place}-when", "question": f"How long did the {place}th congress last?"}
        days = f"{place + 2} days"
        when["answers"] = [{"text": days, "answer_start": context.index(days)}]
        if version == "v2.0":
            asked["is_impossible"] = False
            when |= {"is_impossible": True, "answers": [], "question": "Who paid for it?"}
            when["plausible_answers"] = [{"text": city, "answer_start": start}]
        paragraphs.append({"context": context, "qas": [asked, when]})
    return {"version": version, "data": [{"title": "Congresses", "paragraphs": paragraphs}]}


def slice_of_xquad(count: int, skipped: int) -> dict[str, Any]:
    """Some of its questions, in a file as SQuAD 1.1's."""
    paragraphs = [
        {
            "context": each.context,
            "qas": [
                {
                    "id": each.id,
                    "question": each.question,
                    "answers": [{"text": text, "answer_start": start} for text, start in each.answers],
                }
            ],
        }
        for each in read_squad(XQUAD)[skipped : skipped + count]
    ]
    return {"version": "1.1", "data": [{"title": "XQuAD", "paragraphs": paragraphs}]}


def trained(folder: Path, train: str, dev: str, *more: str) -> Path:
    overrides = [f"data.root={folder}", f"data.train=[{{file='{train}'}}]", f"data.test={{dev={{file='{dev}'}}}}"]
    done = command(folder, "train", RECIPE, *overrides, *SMALL, *more, "--run", folder / "run")
    assert done.code == 0, done.shown
    assert "(baseline)" in done.shown
    return folder / "run"


def judged(folder: Path, run: Path, dev: str, metric: str) -> tuple[dict[str, str], float]:
    """Predictions, and the figure that `transduce evaluate` gives them."""
    predicted = command(folder, "predict", run, "--source", folder / dev)
    assert predicted.code == 0, predicted.shown
    (folder / "predictions.json").write_text(predicted.out)
    asked = ["--source", folder / dev, "--outputs", folder / "predictions.json", "--json"]
    done = command(folder, "evaluate", run, *asked)
    assert done.code == 0, done.shown
    systems = json.loads(done.out)["systems"]
    values = [systems[name]["scores"][metric]["value"] for name in systems]
    assert len(values) == 2 and values[0] == values[1]
    return json.loads(predicted.out), values[0]


def test_squad_1_goes_from_its_json_to_predictions_and_figures(tmp_path: Path) -> None:
    (tmp_path / "train-v1.1.json").write_text(json.dumps(article(CITIES, "1.1")))
    (tmp_path / "dev-v1.1.json").write_text(json.dumps(article(CITIES[::-1], "1.1")))
    run = trained(tmp_path, "train-v1.1.json", "dev-v1.1.json")
    found, value = judged(tmp_path, run, "dev-v1.1.json", "squad_f1")
    questions = read_squad(tmp_path / "dev-v1.1.json")
    assert list(found) == [each.id for each in questions]
    assert all(found[each.id] and found[each.id] in each.context for each in questions)
    references = [[text for text, _ in each.answers] for each in questions]
    assert value == squad_tally(list(found.values()), references, "f1").value
    assert json.loads((run / "report.json").read_text())["tests"]["dev"]["scores"]["squad_f1"]["value"] == value


def test_squad_2_has_questions_without_an_answer(tmp_path: Path) -> None:
    (tmp_path / "train-v2.0.json").write_text(json.dumps(article(CITIES, "v2.0")))
    (tmp_path / "dev-v2.0.json").write_text(json.dumps(article(CITIES[::-1], "v2.0")))
    two = [
        "task.no_answer=true",
        "task.no_answer_margin=-30.0",
        "task.metrics=['squad2_em','squad2_f1']",
        "training.best=squad2_f1",
    ]
    run = trained(tmp_path, "train-v2.0.json", "dev-v2.0.json", *two)
    found, value = judged(tmp_path, run, "dev-v2.0.json", "squad2_f1")
    questions = read_squad(tmp_path / "dev-v2.0.json")
    assert {*found.values()} == {""}  # by a margin of minus 30 nats, "no answer" is the answer
    assert value == 50
    references = [[text for text, _ in each.answers] or [""] for each in questions]
    assert value == squad2_tally(list(found.values()), references, "f1").value
    baseline = json.loads((run / "report.json").read_text())["baseline"]
    assert set(baseline["settings"]["means"]) >= {"no answer", "sliding window, runs"}


@pytest.mark.skipif(not XQUAD.is_file(), reason="needs ../shared/data/qa_xquad")
def test_a_slice_of_real_questions(tmp_path: Path) -> None:
    (tmp_path / "train.json").write_text(json.dumps(slice_of_xquad(200, 0)))
    (tmp_path / "dev.json").write_text(json.dumps(slice_of_xquad(12, 600)))
    run = trained(tmp_path, "train.json", "dev.json", "data.hold_out=0.3")
    found, value = judged(tmp_path, run, "dev.json", "squad_em")
    references = [[text for text, _ in each.answers] for each in read_squad(tmp_path / "dev.json")]
    assert value == squad_tally(list(found.values()), references, "em").value


def test_a_missing_download_says_where_to_get_it(tmp_path: Path) -> None:
    done = command(tmp_path, "train", RECIPE, f"data.root={tmp_path}", "--run", tmp_path / "run")
    assert done.code == 2
    said = " ".join(done.shown.split())
    assert "train-v1.1.json: no such file" in said and "dev-v1.1.json: no such file" in said
    assert not (tmp_path / "run").exists()
    assert "https://rajpurkar.github.io/SQuAD-explorer" in said


def opened(folder: Path, hold_out: float) -> tuple[ExtractiveQa, Any, list[str]]:
    data = [f"data.root={folder}", "data.train=[{file='train.json'}]", "data.test=none", f"data.hold_out={hold_out}"]
    recipe = load_recipe(RECIPE, [*SMALL, *data])
    columns = ExtractiveQa.learn_columns(recipe.tokenizer, recipe.data)
    told: list[str] = []
    task = ExtractiveQa(recipe.task, recipe.data, columns)
    return task, task.open(folder / "cache", told.append), told


def test_held_out_texts_take_all_their_questions_along(tmp_path: Path) -> None:
    cities = [f"{one} {other}" for one in CITIES for other in CITIES]
    (tmp_path / "train.json").write_text(json.dumps(article(cities, "1.1")))
    _, never_split, _ = opened(tmp_path, 0.0)
    assert never_split.validation is None
    task, data, told = opened(tmp_path, 0.25)
    [(store, _)] = data.corpora
    contexts = [text.split("\t")[1] for text, _ in data.validation.texts]
    assert 15 <= len({*contexts}) <= 35  # of 100
    assert all(contexts.count(each) == 2 for each in contexts)
    assert len(store) + len(contexts) * 3 // 2 == len(never_split.corpora[0][0]) == 300  # half have two answers
    assert len(data.validation.store) == len(contexts)
    spans = never_split.corpora[0][0].read("target", np.arange(300))
    assert len({tuple(each.tolist()) for each in spans[:2]}) == 2
    assert any("100 of them with different answers" in line for line in opened(tmp_path, 0.0)[2])
    assert any("0.25 of the texts" in line for line in told)
    column = task.columns["source"]
    trained_on = {column.decode(row.tolist()) for row in store.read("source", np.arange(len(store)))}
    assert not any(text in each for text in contexts for each in trained_on)
    again = opened(tmp_path, 0.25)[1]
    assert again.validation.texts == data.validation.texts
    more = {text for text, _ in opened(tmp_path, 0.4)[1].validation.texts}
    assert more > {text for text, _ in data.validation.texts}


def test_too_small_a_share_and_two_ways_to_validate_are_refused(tmp_path: Path) -> None:
    (tmp_path / "train.json").write_text(json.dumps(article(CITIES, "1.1")))
    with pytest.raises(InputError, match="none of so few texts"):
        opened(tmp_path, 1e-9)
    with pytest.raises(InputError, match="leave out either"):
        load_recipe(RECIPE, ["data.validation={file='dev-v1.1.json'}"])
