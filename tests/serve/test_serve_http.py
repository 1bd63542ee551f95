"""A real server over real sockets: its answers are `transduce predict`'s, whatever the load."""

import asyncio
import http.client
import json
import random
import re
import socket
import time
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest
from libretranslatepy import LibreTranslateAPI

from random_models import sentences
from served import Gate, Server, serving, write_model
from transduce.pipeline.pipeline import Pipeline
from transduce.serve import service
from transduce.serve.api_page import api_page


def predicted(offline: Pipeline, text: str, **search: Any) -> str:
    return offline.predict([text], **search)[0].text


def until(condition: Any, seconds: float = 120) -> None:
    """Wait for it; a server works in threads of its own."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


# ---- LibreTranslate ---------------------------------------------------------------------------------------


def test_its_own_client_works(server: Server, offline: Pipeline) -> None:
    client = LibreTranslateAPI(server.address)
    assert client.translate("ba de fi", "de", "en") == predicted(offline, "ba de fi")
    assert client.translate("", "auto", "en") == ""
    assert client.languages() == [
        {"code": "de", "name": "German", "targets": ["en", "de"]},
        {"code": "en", "name": "English", "targets": ["en"]},
    ]


@pytest.mark.parametrize("how", ["json", "data", "params", "files"])
def test_every_way_to_send_it(server: Server, offline: Pipeline, how: str) -> None:
    values = {"q": "ba de", "source": "de", "target": "en"}
    sent: Any = {key: (None, value) for key, value in values.items()} if how == "files" else values
    answer = server.client.post("/translate", **{how: sent})
    assert (answer.status_code, answer.json()) == (200, {"translatedText": predicted(offline, "ba de")})


def test_lists_alternatives_and_auto(server: Server, offline: Pipeline) -> None:
    asked = {"q": ["ba de", "fi"], "source": "auto", "target": "en", "alternatives": 3}
    found = server.post("/translate", **asked).json()
    expected = [[each.text for each in offline.predict([text], nbest=4)[0].alternatives] for text in ("ba de", "fi")]
    assert [
        [one, *others] for one, others in zip(found["translatedText"], found["alternatives"], strict=True)
    ] == expected
    assert [each["language"] for each in found["detectedLanguage"]] == ["de"] * 2
    assert all(each["confidence"] < 5 for each in found["detectedLanguage"])  # nothing says so


def test_white_space_is_the_texts_own(server: Server, offline: Pipeline) -> None:
    found = server.post("/translate", q="\n  ba de\t\r\n\n  fi go \n", source="de", target="en").json()
    one, other = predicted(offline, "ba de"), predicted(offline, "fi go")
    assert found["translatedText"] == f"\n  {one}\t\r\n\n  {other} \n"


def test_lines_of_signs_are_not_translated(server: Server, offline: Pipeline) -> None:
    asked = {"q": ["ba de\n—\n12\n", "***"], "source": "de", "target": "en", "alternatives": 1}
    found = server.post("/translate", **asked).json()
    assert found["translatedText"] == [f"{predicted(offline, 'ba de')}\n—\n{predicted(offline, '12')}\n", "***"]
    assert [len(each) for each in found["alternatives"]] == [1, 0]


@pytest.mark.parametrize(("source", "target"), [("de-AT", "en_US"), ("DE", "en-gb"), ("auto", "EN")])
def test_codes_with_regions_mean_the_language(source: str, target: str, server: Server, offline: Pipeline) -> None:
    found = server.post("/translate", q="ba de", source=source, target=target).json()
    assert found["translatedText"] == predicted(offline, "ba de")
    asked = {"q": "ba de", "source": source, "target": target, "model": "tiny"}
    assert server.post("/translate", **asked).json()["translatedText"] == found["translatedText"]


def test_a_long_line_goes_sentence_by_sentence(served_file: Path, offline: Pipeline) -> None:
    with serving([served_file], sentences_above=4) as running:
        found = running.post("/translate", q="Ba de fi go. Ba,  de!   Ku la", source="de", target="en").json()
    parts = [predicted(offline, part) for part in ("Ba de fi go.", "Ba,  de!", "Ku la")]
    assert found["translatedText"] == f"{parts[0]} {parts[1]}   {parts[2]}"


def test_html_keeps_its_markup(server: Server, offline: Pipeline) -> None:
    source = '<p class="x">ba <b>de</b> fi</p>\n<script>if (a < b) {}</script><ul><li>go &amp; ku</li></ul><br>'
    found = server.post("/translate", q=source, source="de", target="en", format="html").json()["translatedText"]
    start, rest = found.split('<p class="x">')
    inside, behind = rest.split("</p>\n<script>if (a < b) {}</script><ul><li>")
    assert start == ""
    assert inside.replace("<b>", "").replace("</b>", "") == predicted(offline, "ba de fi").replace("<", "&lt;").replace(
        ">", "&gt;"
    )
    assert inside.index("<b>") < inside.index("</b>")
    assert behind.endswith("</li></ul><br>")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"source": "de", "target": "en"}, "missing q"),
        ({"q": "a", "target": "en"}, "missing source"),
        ({"q": "a", "source": "xx", "target": "en"}, "xx to en is not supported; this server translates de to en"),
        ({"q": "a", "source": "de", "target": "en", "format": "pdf"}, "format"),
        ({"q": "a", "source": "de", "target": "en", "alternatives": 500}, "alternatives"),
        ({"q": "a", "source": "de", "target": "en", "model": "tony"}, 'Did you mean "tiny"?'),
        ({"q": "a", "source": "de", "target": "en", "model": "../../etc/passwd"}, "no model"),
    ],
)
def test_what_is_wrong_is_said(server: Server, values: dict[str, Any], said: str) -> None:
    answer = server.post("/translate", **values)
    assert answer.status_code == 400
    assert said in answer.json()["error"]


# ---- our own ----------------------------------------------------------------------------------------------


def test_predict_is_predict(server: Server, offline: Pipeline) -> None:
    texts = [*sentences(20, seed=5), ""]
    asked = {"texts": texts, "nbest": 2, "alpha": 0.5, "scores": True, "tokens": True, "beam": 3}
    found = server.post("/v1/predict", **asked).json()
    assert (found["model"], found["version"]) == ("tiny", 1)
    for text, values in zip(texts, found["predictions"], strict=True):
        expected = offline.predict([text], nbest=2, alpha=0.5, beam=3)[0].to_dict()
        assert values["text"] == expected["text"]
        assert values["tokens"] == list(expected["tokens"])
        assert values["score"] == pytest.approx(expected["score"], abs=1e-5)
        assert [each["text"] for each in values.get("nbest", [])] == [
            each["text"] for each in expected.get("nbest", [])
        ]


def test_only_what_was_asked_for_is_sent(server: Server) -> None:
    assert set(server.post("/v1/predict", texts=["ba"]).json()["predictions"][0]) == {"text", "ended"}
    assert server.post("/v1/predict", texts=[]).json()["predictions"] == []


def test_a_text_with_nothing_new_says_so_as_the_command_does(sentence_run: Path) -> None:
    with serving([sentence_run]) as running:
        found = running.post("/v1/predict", texts=["Two dogs run.", "日"]).json()["predictions"]
    assert [each["unseen"] for each in found] == [0, 1]


def test_attention_and_alignment(server: Server) -> None:
    [found] = server.post("/v1/predict", texts=["ba de fi"], attention=True, alignment=True, tokens=True).json()[
        "predictions"
    ]
    attention = found["attention"]
    assert attention["source_tokens"] == ["ba", "de", "fi", "</s>"]
    assert attention["target_tokens"] == [*found["tokens"], "</s>"]
    assert len(attention["alignment"]) == len(found["tokens"])
    assert set(attention["alignment"]) <= {0, 1, 2}
    assert len(attention["cross"]) == 2
    for name in attention["cross"]:
        for head in attention["weights"][name]:
            assert len(head) == len(attention["target_tokens"])
            assert all(sum(row) == pytest.approx(1, abs=1e-4) and len(row) == 4 for row in head)


def events(answer: httpx.Response) -> list[tuple[str, dict[str, Any]]]:
    blocks = [block.split("\n") for block in answer.text.strip().split("\n\n")]
    return [(name.removeprefix("event: "), json.loads(data.removeprefix("data: "))) for name, data in blocks]


def test_tokens_as_they_come(server: Server, offline: Pipeline) -> None:
    for text in [text for text in sentences(12, seed=8) if text]:
        answer = server.post("/v1/stream", text=text)
        assert answer.headers["content-type"].startswith("text/event-stream")
        *tokens, (last, done) = events(answer)
        [expected] = offline.predict([text], method="greedy")
        assert (last, done["text"]) == ("done", expected.text)
        assert len(tokens) == len(expected.tokens)
        assert all((name, *each) == ("token", "delta") for name, each in tokens)
        assert "".join(each["delta"] for _, each in [*tokens, (last, done)]) == expected.text


def test_the_wrong_way_to_ask_is_400(server: Server) -> None:
    answer = server.post("/v1/predict", texts=["ba"], bean=3)
    assert (answer.status_code, answer.json()) == (
        400,
        {"error": "Invalid request: body.bean: Extra inputs are not permitted"},
    )
    assert (
        "nbest = 5 is more than beam = 2" in server.post("/v1/predict", texts=["ba"], beam=2, nbest=5).json()["error"]
    )
    assert "at most on this server" in server.post("/v1/predict", texts=["ba"], beam=500).json()["error"]
    answer = server.post("/v1/predict", texts=["ba", "ba " * 300], long="refuse")
    assert (answer.status_code, answer.json()["error"]) == (400, "texts.1: 300 tokens, the model reads 256 at most.")


# ---- load -------------------------------------------------------------------------------------------------


def test_a_hundred_at_once_get_what_they_would_get_alone(server: Server, offline: Pipeline) -> None:
    texts = [text for text in sentences(150, seed=11) if text][:120]
    expected = [each.text for each in offline.predict(texts)]
    greedy = [each.text for each in offline.predict(texts, method="greedy")]
    order = random.Random(3).sample(range(120), 120)

    async def main() -> list[Any]:
        limits = httpx.Limits(max_connections=100)
        async with httpx.AsyncClient(base_url=server.address, timeout=120, limits=limits) as client:

            async def ask(place: int) -> Any:
                text = texts[place]
                if place % 3 == 0:
                    answer = await client.post("/v1/predict", json={"texts": [text], "method": "greedy"})
                    return answer.json()["predictions"][0]["text"]
                sent = {"q": text, "source": "de", "target": "en"}
                answer = await client.post("/translate", **{"json" if place % 3 == 1 else "data": sent})  # type: ignore[arg-type]
                return answer.json()["translatedText"]

            return await asyncio.gather(*(ask(place) for place in order))

    found = asyncio.run(main())
    assert found == [greedy[place] if place % 3 == 0 else expected[place] for place in order]
    assert server.metric('transduce_batch_texts_bucket{le="1.0"}') < server.metric("transduce_batch_texts_count")


def test_a_full_queue_is_429_and_nothing_is_lost(served_file: Path, offline: Pipeline) -> None:
    with serving([served_file], queue=4, batch_size=2, wait_ms=0) as running:
        gate = Gate()
        running.service.batches.run = gate
        texts = [f"ba {each}" for each in ("de", "fi", "go", "ku", "la", "me", "ni", "po", "ra")]

        async def main() -> list[httpx.Response]:
            async with httpx.AsyncClient(base_url=running.address, timeout=60) as client:

                async def ask(text: str) -> httpx.Response:
                    return await client.post("/translate", json={"q": text, "source": "de", "target": "en"})

                asked = [asyncio.ensure_future(ask(texts[0]))]
                await asyncio.to_thread(gate.reached.wait)
                asked += [asyncio.ensure_future(ask(text)) for text in texts[1:]]
                await asyncio.wait(asked[1:], return_when=asyncio.FIRST_COMPLETED)  # somebody was sent away
                while sum(each.done() for each in asked) < 4:
                    await asyncio.sleep(0.01)
                gate.open()
                return await asyncio.gather(*asked)

        answers = asyncio.run(main())
        refused = [each for each in answers if each.status_code == 429]
        assert len(refused) == 4
        assert all(1 <= int(each.headers["retry-after"]) <= 60 and "busy" in each.json()["error"] for each in refused)
        answered = [(text, each.json()) for text, each in zip(texts, answers, strict=True) if each.status_code == 200]
        assert answered == [(text, {"translatedText": predicted(offline, text)}) for text, _ in answered]
        computed = [text for batch in gate.batches for text in batch]
        assert sorted(computed) == sorted(text for text, _ in answered)
        assert running.metric("transduce_refused_total") == 4


def test_who_hangs_up_is_not_computed_for(served_file: Path) -> None:
    with serving([served_file], batch_size=1, wait_ms=0) as running:
        gate = Gate()
        running.service.batches.run = gate
        body = json.dumps({"q": "ba\nde\nfi", "source": "de", "target": "en"}).encode()
        head = f"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        head += "Content-Type: application/json\r\n\r\n"
        with socket.create_connection(("127.0.0.1", int(running.address.rsplit(":", 1)[1]))) as connection:
            connection.sendall(head.encode() + body)
            assert gate.reached.wait(120)
        until(lambda: running.service.drain.inside == 0)
        gate.open()
        assert running.post("/translate", q="go", source="de", target="en").status_code == 200
        assert gate.batches == [["ba"], ["go"]]
        assert running.metric("transduce_dropped_texts_total") == 2


def test_a_stream_whose_listener_left_ends(served_file: Path) -> None:
    with serving([served_file]) as running:
        with running.client.stream("POST", "/v1/stream", json={"text": "ba de " * 100, "max_new": 500}) as answer:
            next(answer.iter_lines())
        until(lambda: running.service.drain.inside == 0)
        assert running.post("/translate", q="go", source="de", target="en").status_code == 200


def test_a_slow_clients_connection_stays_open(server: Server) -> None:
    """Longer than the 5 s after which clients let go of a connection themselves: who comes first must not matter."""
    connection = http.client.HTTPConnection(server.address.removeprefix("http://"), timeout=30)
    connection.connect()
    connection.auto_open = 0  # a closed one is not opened again behind our back
    for pause in (0, 7):
        time.sleep(pause)
        connection.request("GET", "/health")
        assert json.loads(connection.getresponse().read())["status"] == "ok"
    connection.close()


def test_time_is_limited(served_file: Path) -> None:
    with serving([served_file], timeout=0.3) as running:
        gate = Gate()
        running.service.batches.run = gate
        answer = running.post("/translate", q="ba", source="de", target="en")
        assert answer.status_code == 503
        assert "within 0.3 s" in answer.json()["error"]
        assert "retry-after" in answer.headers
        streamed = events(running.post("/v1/stream", text="ba"))
        assert streamed == [("error", {"error": "no answer within 0.3 s."})]
        gate.open()


def test_a_server_stops_though_a_text_takes_for_ever(served_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "PATIENCE", 0.01)
    gate = Gate()
    with serving([served_file], timeout=0.1) as running:
        running.service.batches.run = gate.__call__  # `serving` opens gates that it sees
        while not gate.reached.is_set():
            assert running.post("/translate", q="ba", source="de", target="en").status_code == 503
    gate.open()


def test_sizes_are_limited(served_file: Path) -> None:
    with serving([served_file], body_bytes=2000, characters=100, texts=3, queue=5) as running:
        asked = {"source": "de", "target": "en"}
        assert running.post("/translate", q="x" * 3000, **asked).status_code == 413
        assert "100 at most" in running.post("/translate", q="x" * 101, **asked).json()["error"]
        assert running.post("/v1/predict", texts=["a"] * 4).status_code == 413
        assert running.post("/translate", q="a\n" * 6, **asked).status_code == 413  # more than ever fits in the queue

        def endless() -> Any:
            for _ in range(100):
                yield b"x" * 1000

        try:
            status = running.client.post("/translate", content=endless()).status_code  # no length said
        except httpx.WriteError:
            status = 413  # it was cut off before it could read the answer
        assert status == 413


# ---- reload -----------------------------------------------------------------------------------------------


def test_a_changed_file_is_loaded_and_a_damaged_one_is_not(tmp_path: Path, offline: Pipeline) -> None:
    path = write_model(tmp_path / "model.safetensors")
    text = "ba de fi go"
    with serving([f"tiny={path}"], watch_seconds=0.05) as running:

        def state() -> dict[str, Any]:
            [found] = running.client.get("/ready").json()["models"]
            return dict(found)

        def translated() -> str:
            return str(running.post("/translate", q=text, source="de", target="en").json()["translatedText"])

        assert (state()["version"], translated()) == (1, predicted(offline, text))
        good = path.read_bytes()
        path.write_bytes(good[:-9] + b"?" + good[-8:])
        until(lambda: state().get("problem"))
        assert "model.safetensors" in state()["problem"]
        assert (state()["version"], translated()) == (1, predicted(offline, text))
        path.unlink()
        until(lambda: "no such file" in state().get("problem", ""))
        assert translated() == predicted(offline, text)
        write_model(path, seed=4)
        until(lambda: state()["version"] == 2)
        assert "problem" not in state()
        assert translated() != predicted(offline, text)
        assert running.metric('transduce_reloads_total{model="tiny",outcome="loaded"}') == 1


def test_a_request_ends_with_the_version_it_began_with(tmp_path: Path, offline: Pipeline) -> None:
    path = write_model(tmp_path / "tiny.safetensors")
    with serving([path], watch_seconds=0.05, batch_size=1, wait_ms=0) as running:
        gate = Gate()
        running.service.batches.run = gate

        async def main() -> str:
            async with httpx.AsyncClient(base_url=running.address, timeout=60) as client:
                sent = {"q": "ba de\nfi go", "source": "de", "target": "en"}
                asked = asyncio.ensure_future(client.post("/translate", json=sent))
                await asyncio.to_thread(gate.reached.wait)
                write_model(path, seed=4)
                [model] = running.service.models
                while model.current.version == 1:
                    await asyncio.sleep(0.02)
                gate.open()
                return str((await asked).json()["translatedText"])

        assert asyncio.run(main()) == f"{predicted(offline, 'ba de')}\n{predicted(offline, 'fi go')}"


# ---- safety -----------------------------------------------------------------------------------------------


def test_without_the_key_nothing_is_translated(served_file: Path, offline: Pipeline) -> None:
    with serving([served_file], api_key="sésame") as running:
        asked = {"q": "ba", "source": "de", "target": "en"}
        for wrong in ({}, {"api_key": "sesame"}, {"api_key": ""}):
            answer = running.post("/translate", **asked, **wrong)
            assert (answer.status_code, answer.json()) == (403, {"error": "Invalid API key"})
        for path in ("/v1/predict", "/v1/stream"):
            assert running.post(path, texts=["ba"]).status_code in (400, 403)
        assert running.client.post("/v1/predict", json={"texts": ["ba"]}).status_code == 403
        assert running.client.get("/metrics").status_code == 200  # from this machine
        assert running.client.get("/metrics", headers={"x-forwarded-for": "6.6.6.6"}).status_code == 403
        assert running.client.get("/ready").json() == {"ready": True, "models": []}
        assert running.client.get("/ready?api_key=s%C3%A9same").json()["models"][0]["name"] == "tiny"
        assert running.client.get("/v1/models").status_code == 403
        assert running.client.get("/health").status_code == running.client.get("/ready").status_code == 200
        client = LibreTranslateAPI(running.address, api_key="sésame")
        assert client.translate("ba", "de", "en") == predicted(offline, "ba")
        for headers in ({"authorization": "Bearer sésame".encode()}, {"x-api-key": "sésame".encode("latin-1")}):
            answer = running.client.post("/v1/predict", json={"texts": ["ba"]}, headers=headers)  # type: ignore[arg-type]
            assert answer.status_code in (200, 403)
        assert running.client.post("/v1/predict?api_key=s%C3%A9same", json={"texts": ["ba"]}).status_code == 200


def test_every_answer_has_its_headers(server: Server) -> None:
    answers = [server.client.get(path) for path in ("/", "/docs", "/health", "/metrics", "/nowhere", "/openapi.json")]
    for answer in [*answers, server.post("/translate"), server.client.post("/translate", content=b"\xff")]:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers
    assert answers[4].json() == {"error": "Not Found"}


def test_pages_ask_no_other_host(server: Server) -> None:
    page = server.client.get("/docs").text
    assert "/translate" in page
    assert "/v1/predict" in page
    assert f"curl {server.address}/v1/models" in page  # the examples work as they stand
    assert "http" not in page.replace(server.address, "").replace("over HTTP", "")


def test_the_page_of_the_api_shows_texts_as_texts_and_calls_no_strange_address() -> None:
    hostile = "</title><script>alert(1)</script>'"
    body = {"schema": {"properties": {hostile: {"description": hostile}}, "example": {"source": "en", "q": hostile}}}
    answers = {"200": {"description": hostile}}
    asked = {"tags": [hostile], "description": hostile, "requestBody": {"content": {"a/b": body}}, "responses": answers}
    description = {"info": {"title": hostile}, "paths": {f"/{hostile}": {"post": asked}}}
    page = api_page(description, "http://a/'; rm -rf /;'")
    assert page.count("<script") == 1  # its own
    assert "alert(1)</" not in page
    assert "rm -rf" not in page
    [example] = re.findall(r"-d '([^']*)'</pre>", unescape(page))
    assert json.loads(example) == {"source": "en", "q": hostile}


def test_the_examples_of_requests_work_as_they_stand_for_a_greedy_model_too(tmp_path: Path) -> None:
    with serving([write_model(tmp_path / "greedy.safetensors", search={"method": "greedy"})]) as running:
        page = unescape(running.client.get("/docs").text)
        for path in ("/translate", "/v1/predict"):
            [example] = re.findall(rf"curl \S+{path} -H 'content-type: application/json' -d '(.*?)'</pre>", page)
            answer = running.client.post(path, json=json.loads(example))
            assert answer.status_code == 200, answer.text


def test_the_explorers_page_is_shown_with_a_policy_for_it(served_file: Path) -> None:
    page = "<!doctype html><title>x</title><style>p{}</style>\r\n<script>let a = '<b>'\r\n</script><p>Hi"
    with serving([served_file], page=page) as running:
        answer = running.client.get("/explore")
    assert answer.text == page
    policy = answer.headers["content-security-policy"]
    # printf "let a = '<b>'\n" | openssl dgst -sha256 -binary | base64
    assert "script-src 'sha256-gLcS5y1JUjFuttp1I8kiXBXJgC4nYkzK7K4sDPXBZ+w='" in policy
    assert (
        "style-src 'sha256-gG2yISYereRMiG2lMXrbiUgi0Ubw9p7QCeWcroOvy9Y=';" in policy
    )  # of what stands between its tags: p{}
    assert "connect-src 'self'" in policy


def test_names_of_other_hosts_are_refused(served_file: Path) -> None:
    with serving([served_file], hosts=("127.0.0.1", "[::1]", "localhost")) as running:
        assert running.client.get("/health").status_code == 200
        for same in (
            "[::1]:80",
            "[::1]",
            "LocalHost:80",
            "localhost.",
            "localhost.:80",
        ):  # names know no case, and may end in .
            assert running.client.get("/health", headers={"host": same}).status_code == 200
        assert running.client.get("/health", headers={"host": "evil.example"}).status_code == 421
        assert running.client.get("/health", headers={"host": "127.0.0.1.evil.example:80"}).status_code == 421


def test_measures(server: Server) -> None:
    before = server.metric('transduce_requests_total{method="POST",path="/translate",status="200"}')
    server.post("/translate", q="ba", source="de", target="en")
    server.client.get("/secret/path")
    assert server.metric('transduce_requests_total{method="POST",path="/translate",status="200"}') == before + 1
    text = server.client.get("/metrics").text
    assert "secret" not in text
    assert "transduce_queue_texts 0.0" in text
