"""Extractive question answering: files, windows and predictions against slow references; trained, resumed, served."""

import gzip
import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import transduce
from forked import Fate
from forked import transduce as command
from served import serving
from transduce.core.errors import InputError
from transduce.data.squad import cut, joined, placed, read_squad
from transduce.evaluation.evaluate import Files, Settings, evaluate_files
from transduce.inference.spans import best_span, token_span, windows
from transduce.interpret.attention import attention_of

THINGS = ["key", "ball", "book", "lamp", "cup"]
PLACES = ["kitchen", "garden", "old cellar", "hall", "blue attic"]
SIZES = {
    "bidaf": "d_model = 16\nhidden = 16\nmodeling_layers = 1\ncharacter_filters = 8\ncharacter_width = 4",
    "qanet": "d_model = 16\nheads = 2\nblocks = 1\nencoder_convolutions = 1\ncharacter_filters = 8\ncharacter_width = 4\nlayer_dropout = 0.0",
}


def drawn(count: int, seed: int, without: float = 0.0) -> dict[str, Any]:
    """Where things are; some of the things asked for are nowhere."""
    random_ = random.Random(seed)
    paragraphs = []
    for number in range(count):
        things = random_.sample(THINGS, 3)
        places = dict(zip(things, random_.sample(PLACES, 3), strict=True))
        context = " ".join(f"The {thing} is in the {place}." for thing, place in places.items())
        missing = random_.random() < without
        thing = random_.choice([each for each in THINGS if (each in places) != missing])
        answers = []
        if not missing:
            start = context.index(f"The {thing}") + len(f"The {thing} is in the ")
            answers = [{"text": places[thing], "answer_start": start}]
        question = {"id": f"q{seed}-{number}", "question": f"Where is the {thing}?", "answers": answers}
        paragraphs.append({"context": context, "qas": [question]})
    return {"version": "x", "data": [{"title": "t", "paragraphs": paragraphs}]}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("questions")
    for name, count, seed, without in (("train", 300, 1, 0.0), ("valid", 30, 2, 0.0), ("test", 40, 3, 0.0)):
        (folder / f"{name}.json").write_text(json.dumps(drawn(count, seed, without)))
    for name, count, seed in (("train2", 400, 4), ("valid2", 30, 5), ("test2", 40, 6)):
        (folder / f"{name}.json").write_text(json.dumps(drawn(count, seed, 0.4)))
    return folder


def recipe_at(corpus: Path, path: Path, kind: str = "bidaf", two: str = "", task: str = "") -> Path:
    path.write_text(f"""
[task]
kind = "extractive_qa"
metrics = ["squad{two}_em", "squad{two}_f1"]
window = 30
stride = 15
longest_answer = 4
{task}
[data]
root = "{corpus}"
train = [{{ file = "train{two}.json" }}]
validation = {{ file = "valid{two}.json" }}
test = {{ held_out = {{ file = "test{two}.json" }} }}
[tokenizer]
vocabulary = 200
[batch]
tokens = 600
[model]
kind = "{kind}"
{SIZES[kind]}
dropout = 0.0
[training]
threads = 1
updates = 150
learning_rate = 1e-2
warmup = 10
precision = "fp32"
best = "squad{two}_f1"
validate_every = 50
checkpoint_every = 40
""")
    return path


def trained_at(corpus: Path, folder: Path, cache: Path, *more: Any, **options: str) -> Path:
    recipe = recipe_at(corpus, folder / "recipe.toml", **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRANSDUCE_CACHE", str(cache))
        done = command(folder, "train", recipe, *more, "--run", folder / "run")
    assert done.code == 0, done.shown
    assert "EM" in done.shown
    return folder / "run"


@pytest.fixture(scope="module", params=["bidaf", "qanet"])
def trained(request: pytest.FixtureRequest, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trained")
    return trained_at(corpus, folder, tmp_path_factory.getbasetemp() / "cache", kind=request.param)


@pytest.fixture(scope="module")
def questions(corpus: Path) -> list[Any]:
    return read_squad(corpus / "test.json")


def test_it_learns_to_answer_and_its_report_says_so(trained: Path, questions: list[Any]) -> None:
    model = transduce.load(trained)
    found: Any = model.predict([each.text for each in questions])
    right = sum(
        one.text.lower() in (each.answers[0][0], each.answers[0][0] + ".")
        for one, each in zip(found, questions, strict=True)
    )
    assert right >= 30
    scores = json.loads((trained / "report.json").read_text())["tests"]["held_out"]["scores"]
    assert scores["squad_em"]["value"] == pytest.approx(100 * right / len(questions))
    assert scores["squad_f1"]["interval"][0] <= scores["squad_f1"]["value"] <= scores["squad_f1"]["interval"][1]
    for one, each in zip(found, questions, strict=True):
        assert each.context[one.start : one.end] == one.text
