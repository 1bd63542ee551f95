"""The explorer over HTTP: the same numbers, the same limits, the same queue."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from base64_arrays import from_base64
from random_models import language_model, model_file
from served import Gate, Server, serving
from transduce.attention.interventions import Place
from transduce.core.model_file import save_model_file
from transduce.explore.example import example
from transduce.explore.exploration import asked, explore
from transduce.interpret.capabilities import described
from transduce.interpret.importance import importance
from transduce.interpret.positions import placed
from transduce.interpret.steps import steps
from transduce.interpret.why_not import why_not
from transduce.pipeline.pipeline import Pipeline
from transduce.runtime.event_log import trained
from transduce.serve.explorer_schemas import ExplorationAnswer, StepsAnswer, WhyAnswer

TEXT = "ba de fi go"


def close(found: Any, expected: Any) -> bool:
    """Equal, numbers up to rounding."""
    if isinstance(expected, dict):
        return set(found) == set(expected) and all(close(found[key], expected[key]) for key in expected)
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(close, found, expected))
    return found == pytest.approx(expected, abs=1e-5) if isinstance(expected, float) else found == expected


def test_an_exploration_is_the_one_in_python(server: Server, offline: Pipeline) -> None:
    answer = server.post("/v1/explore/predict", text=TEXT, beam=3)
    found, expected = answer.json(), explore(offline, TEXT, "tiny", beam=3)
    assert answer.status_code == 200
    assert close(found | {"attention": None}, json.loads(json.dumps(expected)) | {"attention": None})
    assert [each["name"] for each in found["attention"]] == [each["name"] for each in expected["attention"]]
    ExplorationAnswer.model_validate(found)


def test_what_is_cut_is_not_attended_to(server: Server, offline: Pipeline) -> None:
    name = "encoder.blocks.0.self_attention"
    cut = [{"name": name, "query": 0, "key": 1}, {"name": name, "head": 1}]
    found = server.post("/v1/explore/predict", text=TEXT, cut=cut).json()
    expected = explore(offline, TEXT, "tiny", cut=[Place(**each) for each in cut])
    assert close(found | {"attention": None}, json.loads(json.dumps(expected)) | {"attention": None})
    assert not close(found["alternatives"], explore(offline, TEXT, "tiny")["alternatives"])
    (layer,) = (each for each in found["attention"] if each["name"] == name)
    weights_HTS = from_base64(layer["weights"], layer["shape"])
    assert weights_HTS[0, 0, 1] == 0 and not weights_HTS[1].any() and weights_HTS[0, 0].sum() == pytest.approx(1)


def test_another_output_is_weighed_as_in_python(server: Server, offline: Pipeline) -> None:
    tokens = server.post("/v1/explore/predict", text=TEXT).json()["nbest"][0]["tokens"]
    own, other = asked(offline, TEXT, tokens), asked(offline, TEXT, "go ku")
    expected = why_not(offline.model, offline.task, TEXT, own, other)
    answer = server.post("/v1/explore/why", text=TEXT, target=tokens, other="go ku").json()
    assert close(answer, json.loads(json.dumps(expected))) and answer["words"]
    WhyAnswer.model_validate(answer)
    refused = server.post("/v1/explore/why", text=TEXT, other="go " * 1000)
    assert refused.status_code in (400, 413) and "shorten" in refused.json()["error"]


def test_all_else_is_as_in_python(server: Server, offline: Pipeline) -> None:
    tokens = server.post("/v1/explore/predict", text=TEXT).json()["nbest"][0]["tokens"]
    given, text = asked(offline, TEXT, tokens), " ".join(tokens)
    model, task = offline.model, offline.task
    name = "decoder.blocks.0.cross_attention"
    expected = {
        "heads": importance(model, task, given),
        "steps": steps(model, task, given, (TEXT, text), name, 1, 0),
    }
    for target in (tokens, text, None):
        more = {} if target is None else {"target": target}
        assert close(server.post("/v1/explore/heads", text=TEXT, **more).json(), expected["heads"])
        found = server.post("/v1/explore/steps", text=TEXT, name=name, head=1, query=0, **more).json()
        assert close(found, json.loads(json.dumps(expected["steps"])))
        StepsAnswer.model_validate(found)
        assert set(server.post("/v1/explore/rollout", text=TEXT, **more).json()) == {"encoder", "decoder", "cross"}
    assert server.client.get("/v1/explore/example").json() == json.loads(json.dumps(example()))
    assert server.post("/v1/explore/positions", length=9).json() == placed(None, 9)
    assert server.post("/v1/explore/positions", length=9, model="tiny").json() == placed(model, 9)
    [model_found] = server.client.get("/v1/explore/models").json()["models"]
    assert model_found == described("tiny", model, task, offline.recipe, False, offline.provenance)


@pytest.mark.parametrize(
    ("path", "asked", "said"),
    [
        ("predict", {"text": "  "}, "empty"),
        ("predict", {"text": "ba " * 300}, "reads at most 256"),
        ("predict", {"text": TEXT, "beam": 99}, "16 at most"),
        ("predict", {"text": TEXT, "model": "../../etc/passwd"}, "no model"),
        ("predict", {"text": TEXT, "lattice": True}, "Extra"),
        ("predict", {"texts": [TEXT]}, "text"),
        ("predict", {"text": TEXT, "cut": [{"name": "decoder"}]}, 'no attention "decoder"'),
        ("predict", {"text": TEXT, "cut": [{"head": 1}]}, "name"),
        ("heads", {"text": TEXT, "target": ["nowhere"]}, "not a token"),
        ("steps", {"text": TEXT, "name": "decoder", "query": 0}, "no attention called"),
        ("steps", {"text": TEXT, "name": "/etc/passwd", "query": 0}, "no attention called"),
        ("steps", {"text": TEXT, "name": "encoder.blocks.0.self_attention", "query": 99}, "expected 0 to 4"),
        ("positions", {"length": 201}, "200"),
        ("training", {}, "its training is not known"),
        ("training", {"from": -1}, "from"),
        ("rollout", {"text": TEXT, "model": "nobody"}, "no model"),
    ],
)
def test_what_is_wrong_is_said(server: Server, path: str, asked: dict[str, Any], said: str) -> None:
    answer = server.post(f"/v1/explore/{path}", **asked)
    assert (answer.status_code, set(answer.json())) == (400, {"error"})
    assert said in answer.json()["error"]


def test_the_limits_are_the_servers(served_file: Path) -> None:
    with serving([served_file], characters=20, attention_numbers=200) as running:
        assert running.post("/v1/explore/predict", text="ba" * 11).status_code == 413
        assert running.post("/v1/explore/heads", text="ba", target=["x" * 11] * 2).status_code == 413
        answer = running.post("/v1/explore/predict", text="ba de fi")
        assert (answer.status_code, "200 at most" in answer.json()["error"]) == (400, True)


def test_a_key_is_asked_for(served_file: Path) -> None:
    with serving([served_file], api_key="secret") as running:
        assert running.post("/v1/explore/predict", text="ba").status_code == 403
        assert running.client.get("/v1/explore/models").status_code == 403
        answer = running.client.get("/v1/explore/models", headers={"x-api-key": "secret"})
        assert answer.status_code == 200


def test_it_waits_in_the_same_queue_and_leaves_it(served_file: Path) -> None:
    with serving([served_file], queue=1, timeout=3.0) as running:
        gate = Gate(running.service.batches.run)
        running.service.batches.run = gate
        first = running.post("/v1/explore/heads", text=TEXT)  # in the worker's hands until the gate opens
        assert first.status_code == 503
        assert gate.reached.is_set()
        waiting = running.post("/v1/predict", texts=["ba"])
        assert waiting.status_code == 503
        gate.open()
        until_idle(running)
        assert gate.batches[0] == [TEXT]
        while (again := running.post("/v1/explore/heads", text=TEXT)).status_code == 503:
            pass  # a busy machine needs more than 3 s
        assert again.status_code == 200


def until_idle(running: Server) -> None:
    while running.metric("transduce_queue_texts"):
        pass


def test_a_language_model_is_explored_too(tmp_path: Path) -> None:
    save_model_file(tmp_path / "lm.safetensors", model_file(language_model()))
    with serving([tmp_path / "lm.safetensors"]) as running:
        found = running.post("/v1/explore/predict", text="ba de").json()
        assert found["source"] is None
        assert found["target"]["text"].startswith("ba de")
        assert {each["kind"] for each in found["attention"]} == {"decoder"}
        assert set(running.post("/v1/explore/rollout", text="ba de").json()) == {"decoder"}
        assert running.post("/v1/explore/heads", text="ba de").json()["log_probability"] < 0


def test_the_training_of_a_run_is_watched(tiny_run: Path) -> None:
    with serving([f"tiny={tiny_run}"]) as running:
        found = running.post("/v1/explore/training", model="tiny").json()
        assert found == trained(tiny_run)
        again = running.post("/v1/explore/training", **{"from": found["size"]}).json()
        assert again == {"events": [], "finished": True, "stopped": False, "size": found["size"]}
        assert running.client.get("/v1/explore/models").json()["models"][0]["shows"]["training"]
    with serving([tiny_run / "model.safetensors"]) as running:
        assert running.post("/v1/explore/training").json()["finished"]


def test_a_log_that_cannot_be_read_is_told_while_the_model_works(tmp_path: Path, tiny_run: Path) -> None:
    run = shutil.copytree(tiny_run, tmp_path / "run")
    with serving([run]) as running:
        gate = running.service.batches.run = Gate()
        with (run / "log.jsonl").open("w") as log:
            log.write('{"event": "train", "update": 1, "loss": NaN}\n')
        with ThreadPoolExecutor(1) as clients:
            clients.submit(running.post, "/v1/explore/predict", text="1")
            assert gate.reached.wait(60)
            assert running.post("/v1/explore/training").json()["events"] == [
                {"event": "train", "update": 1, "loss": None}
            ]
            (run / "log.jsonl").unlink()
            os.mkfifo(run / "log.jsonl")
            assert "log.jsonl: cannot be read: " in running.post("/v1/explore/training").json()["error"]
            gate.open()


def test_a_changed_model_is_described_anew(tmp_path: Path, tiny_run: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_model_file(path, model_file(language_model()))
    with serving([path], watch_seconds=0.02) as running:
        first = running.client.get("/v1/explore/models").json()["models"][0]
        path.write_bytes((tiny_run / "model.safetensors").read_bytes())
        while running.client.get("/v1/models").json()["data"][0]["version"] == 1:
            pass
        second = running.client.get("/v1/explore/models").json()["models"][0]
        assert (first["kind"], second["kind"]) == ("transformer_decoder", "transformer")
