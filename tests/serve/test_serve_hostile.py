"""Requests that are made to hurt are refused or answered, and others are answered meanwhile."""

import json
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from hostile import hurting

from random_models import model_file, translator
from served import CODES, Server, serving
from transduce.core.model_file import save_model_file
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.pipeline.pipeline import Pipeline

HALF = "\ud800"
HALVES: list[tuple[str, dict[str, Any]]] = [
    ("/translate", {"q": HALF, "source": "de", "target": "en"}),
    ("/translate", {"q": ["ba", HALF], "source": "de", "target": "en"}),
    ("/translate", {"q": f"<b>{HALF}</b>", "source": "de", "target": "en", "format": "html"}),
    ("/translate", {"q": "ba", "source": "de", "target": HALF}),
    ("/v1/predict", {"texts": [HALF]}),
    ("/v1/predict", {"texts": ["ba"], "model": HALF}),
    ("/v1/stream", {"text": HALF}),
    ("/v1/explore/predict", {"text": HALF}),
    ("/v1/explore/heads", {"text": "ba", "target": HALF}),
    ("/v1/explore/rollout", {"text": "ba", "target": [HALF]}),
    ("/v1/explore/steps", {"text": HALF, "name": "decoder", "query": 0}),
]


@pytest.mark.parametrize(("path", "values"), HALVES)
def test_half_a_character_is_refused_in_words(server: Server, path: str, values: dict[str, Any]) -> None:
    escaped = json.dumps(values)
    raw = json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass")
    for body in (escaped.encode(), raw):
        answer = server.client.post(path, content=body, headers={"content-type": "application/json"})
        assert answer.status_code == 400
        assert "half of a character" in answer.json()["error"]


def test_half_a_character_in_a_form_is_refused_too(server: Server) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="q"\r\n\r\n+2AA-\r\n--x--\r\n'
    for charset, said in {"utf-7": "in UTF-8, not", "punycode": "in UTF-8, not", "utf-8": "missing"}.items():
        kind = f"multipart/form-data; boundary=x; charset={charset}"
        answer = server.client.post("/translate", content=body, headers={"content-type": kind})
        assert (answer.status_code, said in answer.json()["error"]) == (400, True)


@pytest.mark.parametrize(
    ("values", "status", "said"),
    [
        ({"texts": [0] * 5_000}, 400, "body.texts.0: Input should be a valid string"),
        ({"texts": [0] * 100_000}, 413, "more than 21,000 values"),
        ({str(number): 0 for number in range(65)}, 400, "65 keys; no request has more than 64"),
        ({"texts": ["ba"] * 129}, 413, "129 texts; 128 at most"),
        ({"texts": ["x" * 20_001]}, 413, "20,001 characters; 20,000 at most"),
        ({"texts": ["ba"], "nbest": 17, "beam": 17}, 400, "beam and nbest may be 16 at most"),
        ({"texts": ["ba"], "max_new": 513}, 400, "max_new may be 512 at most"),
        ({"texts": ["ba"] * 64, "method": "sample", "nbest": 16}, 400, "1,024 at once; 512 at most"),
    ],
)
def test_what_takes_memory_is_refused_first(server: Server, values: dict[str, Any], status: int, said: str) -> None:
    answer = server.post("/v1/predict", **values)
    assert answer.status_code == status
    assert said in answer.json()["error"]
    assert len(answer.content) < 500


def test_a_target_to_explore_has_an_end(server: Server) -> None:
    answer = server.post("/v1/explore/heads", text="ba", target="de " * 1000)
    assert answer.status_code == 400
    assert "at most" in answer.json()["error"]


def test_all_hostile_requests_at_once_are_refused_or_answered(server: Server, offline: Pipeline) -> None:
    asked = hurting(characters=2_000)

    def ask(name: str) -> tuple[str, httpx.Response]:
        path, body, kind = asked[name]
        with httpx.Client(base_url=server.address, timeout=120) as client:
            return name, client.post(path, content=body, headers={"content-type": kind})

    with ThreadPoolExecutor(len(asked)) as together:
        answers = dict(together.map(ask, asked))
    assert {name: each.status_code for name, each in answers.items() if each.status_code not in (200, 400, 413)} == {}
    assert answers["spaces"].status_code == answers["ZWJ chain"].status_code == 200
    assert server.client.get("/health").status_code == 200
    answer = server.post("/translate", q="ba de", source="de", target="en")
    assert answer.json()["translatedText"] == offline.predict(["ba de"])[0].text


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("/translate", {"q": "slow", "source": "de", "target": "en"}),
        ("/v1/predict", {"texts": ["slow"]}),
        ("/v1/stream", {"text": "slow"}),
        ("/v1/explore/predict", {"text": "slow"}),
    ],
)
def test_others_are_answered_while_a_text_is_encoded(
    server: Server, path: str, values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A text that takes its tokenizer long: here as long as /health has not answered."""
    encode, begun, goes_on = Tokenizer.encode, threading.Event(), threading.Event()

    def slowly(self: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
        if "slow" in texts:
            begun.set()
            assert goes_on.wait(30)
        return encode(self, texts)

    monkeypatch.setattr(Tokenizer, "encode", slowly)
    with ThreadPoolExecutor(1) as other:
        asking = other.submit(lambda: httpx.post(server.address + path, json=values, timeout=60))
        assert begun.wait(30)
        assert httpx.get(server.address + "/health", timeout=20).status_code == 200
        assert not asking.done()
        goes_on.set()
        assert asking.result().status_code == 200


def panicking(path: Path) -> Path:
    """A model whose tokenizer panics over many letters "a": its pattern gives up after ten million tries."""
    file = model_file(translator(seed=3, task=CODES))
    tokenizers = {}
    for side, text in file.tokenizers.items():
        table = json.loads(text)
        table["normalizer"] = {"type": "Replace", "pattern": {"Regex": r"a*a*a*a*a*a*a*a*\z"}, "content": ""}
        tokenizers[side] = json.dumps(table)
    save_model_file(path, replace(file, tokenizers=tokenizers))
    return path


def test_a_tokenizers_panic_is_one_requests_error(tmp_path: Path) -> None:
    panic = "a" * 40 + "b"
    with serving([panicking(tmp_path / "panicking.safetensors")]) as running:
        expected = running.post("/v1/predict", texts=["be"]).json()
        for path, values in {
            "/v1/explore/predict": {"text": panic},
            "/v1/predict": {"texts": [panic]},
            "/translate": {"q": panic, "source": "de", "target": "en"},
        }.items():
            answer = running.post(path, **values)
            assert (answer.status_code, set(answer.json())) == (500, {"error"})
        assert "event: error" in running.post("/v1/stream", text=panic).text
        assert running.client.get("/health").status_code == 200
        assert running.post("/v1/predict", texts=["be"]).json() == expected


def test_without_its_thread_the_server_says_so_and_nobody_waits(served_file: Path) -> None:
    with serving([served_file]) as running:
        running.service.batches.stop()
        health = running.client.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "no text is answered any more")
        assert running.client.get("/ready").status_code == 503
        for path, values in (("/v1/predict", {"texts": ["ba"]}), ("/v1/stream", {"text": "ba"})):
            answer = running.post(path, **values)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "10")
