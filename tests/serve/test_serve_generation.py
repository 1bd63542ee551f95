"""Language models over HTTP: what `generate` writes, told while it is written, and texts explored as they stand."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from random_models import language_model, model_file, poet
from served import Server, serving
from transduce.core.model_file import save_model_file
from transduce.explore.exploration import explore
from transduce.pipeline.generation import generate
from transduce.pipeline.pipeline import load

POEM = {"acrostic": "春白夜", "seed": 3, "max_new": 40}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("writers")
    for name, model in (
        ("poet", poet()),
        ("words", language_model()),
        ("backwards", poet(direction="right_to_left")),
    ):
        save_model_file(folder / f"{name}.safetensors", model_file(model))
    return folder


@pytest.fixture(scope="module")
def writing(files: Path, served_file: Path) -> Iterator[Server]:
    models = [*(files / f"{name}.safetensors" for name in ("poet", "words", "backwards")), served_file]
    with serving(models) as running:
        yield running


def events(answer: httpx.Response) -> list[tuple[str, dict[str, Any]]]:
    assert answer.status_code == 200, answer.text
    found = []
    for block in answer.text.strip().split("\n\n"):
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("words", {"text": "ba de", "seed": 6, "temperature": 0.8, "top_k": 9, "top_p": 0.9}),
        ("words", {"text": "", "seed": 1}),
        ("words", {"text": "ba", "method": "greedy"}),
        ("poet", POEM),
        ("poet", {**POEM, "separator": "眠"}),
        ("backwards", {"text": "少", "seed": 2}),
    ],
)
def test_it_is_what_generate_writes(writing: Server, files: Path, model: str, asked: dict[str, Any]) -> None:
    found = events(writing.post("/v1/generate", model=model, **asked))
    keys = {"max_new": "max_length_offset", "text": "prompt"}
    [wanted] = generate(load(files / f"{model}.safetensors"), **{keys.get(key, key): asked[key] for key in asked})
    *grown, (last, done) = found
    assert {name for name, _ in grown} <= {"token"} and last == "done"
    assert "".join(data["delta"] for _, data in grown) == done["text"] == wanted.text
    assert done["log_probability"] == pytest.approx(wanted.log_probability, abs=1e-4)
    assert done["tokens"] == list(wanted.tokens)
    if asked.get("acrostic"):
        mark = asked.get("separator", "|")
        assert [line[0] for line in done["text"].split(mark)] == list(asked["acrostic"])
        assert len(grown) == 3


@pytest.mark.parametrize(
    ("asked", "status", "said"),
    [
        ({"model": "tiny", "text": "ba"}, 400, "generate is for language models"),
        ({"model": "nobody"}, 400, "no model"),
        ({"acrostic": "春x"}, 400, 'no token for "x"'),
        ({"acrostic": "春", "text": "白"}, 400, "acrostic and prompt"),
        ({"acrostic": "春", "separator": "+"}, 400, "separator"),
        ({"acrostic": "春" * 65}, 400, "at most 64"),
        ({"acrostic": "少", "model": "backwards"}, 400, "from right to left"),
        ({"text": "春", "max_new": 513}, 400, "max_new may be 512"),
        ({"text": "春", "temperature": 0}, 400, "temperature"),
        ({"text": "春", "top_p": float("inf")}, 400, "top_p"),
        ({"text": "春" * 70}, 400, "text: "),
        ({"text": "春", "beam": 3}, 400, "beam"),
        ({"text": "春" * 20_001}, 413, "characters"),
        ({"text": 5}, 400, "text"),
    ],
)
def test_what_cannot_be_written_is_said_before_anything_is(
    writing: Server, asked: dict[str, Any], status: int, said: str
) -> None:
    body = json.dumps(asked)
    answer = writing.client.post("/v1/generate", content=body, headers={"content-type": "application/json"})
    assert (answer.status_code, set(answer.json())) == (status, {"error"})
    assert said in answer.json()["error"]


def test_a_key_is_asked_for(files: Path) -> None:
    with serving([files / "poet.safetensors"], api_key="secret") as running:
        assert running.post("/v1/generate", text="春").status_code == 403


def test_models_say_which_marks_stand_between_their_lines(writing: Server) -> None:
    models = writing.client.get("/v1/explore/models").json()["models"]
    assert {model["name"]: model["generates"] for model in models} == {
        "poet": {"lines": "|"},
        "words": {"lines": None},
        "backwards": {"lines": None},
        "tiny": None,
    }


def test_a_text_is_explored_as_it_stands(writing: Server, files: Path) -> None:
    model = load(files / "words.safetensors")
    found = writing.post("/v1/explore/predict", text="ba de fi", model="words", as_it_stands=True).json()
    wanted = model.score("ba de fi")
    assert found["target"]["text"] == found["text"] == "ba de fi"
    assert found["log_probability"] == pytest.approx(wanted.log_probability, abs=1e-4)
    assert found["nbest"][0]["token_log_probabilities"] == pytest.approx(wanted.token_log_probabilities, abs=1e-4)
    assert explore(model, "ba de fi", as_it_stands=True)["nbest"] == found["nbest"]
    refused = writing.post("/v1/explore/predict", text="ba de", model="tiny", as_it_stands=True)
    assert refused.status_code == 400 and "expected a language model" in refused.json()["error"]
