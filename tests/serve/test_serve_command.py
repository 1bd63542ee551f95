"""`transduce serve`, as a process: it starts, stops gracefully, and says what is wrong."""

import json
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from served import ENVIRONMENT, start
from transduce.cli.server import hosts_of
from transduce.core.extras import installing
from transduce.pipeline.pipeline import Pipeline


def test_sigterm_lets_requests_end_and_takes_no_new_ones(served_file: Path, offline: Pipeline) -> None:
    process, address = start(served_file, "--batch-size", "1")
    lines = [f"ba de fi go ku la {each}" for each in ("me", "ni", "po", "ra") * 30]
    answers: list[httpx.Response] = []
    asked = {"q": "\n".join(lines), "source": "de", "target": "en"}
    with httpx.Client(base_url=address, timeout=120) as client:
        client.get("/health")  # this connection is open before the signal comes
        asking = threading.Thread(
            target=lambda: answers.append(httpx.post(f"{address}/translate", json=asked, timeout=120))
        )
        asking.start()
        while "transduce_requests_open 2.0" not in client.get("/metrics").text:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        refused = client.post("/translate", json=asked)
        while refused.status_code != 503:  # the signal is on its way
            refused = client.post("/translate", json=asked | {"q": ""})
        assert refused.json() == {"error": "the server is stopping."}
        assert refused.headers["retry-after"] == "5"
    with httpx.Client(base_url=address) as client:
        ready = client.get("/ready")
        assert (ready.status_code, ready.json()["ready"]) == (503, False)
        assert client.get("/health").status_code == 200
    asking.join()
    assert answers[0].json()["translatedText"].split("\n") == [each.text for each in offline.predict(lines)]
    assert process.wait(120) == 0


def test_an_idle_server_stops_at_once(served_file: Path) -> None:
    process, address = start(f"x={served_file}")
    assert httpx.get(f"{address}/v1/models").json()["data"][0]["name"] == "x"
    assert httpx.get(f"{address}/health", headers={"host": "rebound.example"}).status_code == 421
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 0


BUSY = """
import atexit, sys, time
from transduce.cli.app import main
from transduce.serve.batches import BatchQueue

def never_done(queue, batch):
    print("reached", file=sys.stderr)
    time.sleep(3600)

BatchQueue._answer = never_done
atexit.register(print, "taken down", file=sys.stderr)
sys.argv[0] = "transduce"
main()
"""


def test_a_second_signal_ends_a_server_that_computes(served_file: Path) -> None:
    """At once: where the interpreter goes on to take down its libraries, the thread that uses them crashes."""
    process, address = start(served_file, command=("-c", BUSY))

    def ask() -> None:
        with suppress(httpx.HTTPError):
            httpx.post(f"{address}/translate", json={"q": "ba", "source": "de", "target": "en"}, timeout=120)

    asking = threading.Thread(target=ask)
    asking.start()
    assert process.stderr is not None
    assert any("reached" in line for line in process.stderr)
    process.send_signal(signal.SIGTERM)
    assert any("finishing" in line for line in process.stderr)
    process.send_signal(signal.SIGTERM)
    assert (process.wait(120), "taken down" in process.stderr.read()) == (0, False)
    asking.join()


def said(*arguments: str | Path, script: str = "") -> tuple[int, str]:
    start = [sys.executable, "-c", script] if script else [sys.executable, "-m", "transduce"]
    done = subprocess.run(
        [*start, "serve", *map(str, arguments)], capture_output=True, text=True, env=ENVIRONMENT, check=False
    )
    return done.returncode, done.stderr


def test_a_missing_extra_is_named(served_file: Path) -> None:
    hidden = "import sys; sys.modules['fastapi'] = None; from transduce.cli.app import main; sys.argv[0] = 't'; main()"
    code, told = said(served_file, script=hidden)
    assert code == 2
    assert "serving needs fastapi, which is not installed: " in told
    assert installing("serve") in told


def test_what_is_wrong_is_said_before_anything_is_served(served_file: Path, tmp_path: Path) -> None:
    code, told = said(tmp_path / "gone.safetensors")
    assert (code, "there is no such file" in told) == (2, True)
    code, told = said(served_file, "--batch-size", "0", "--queue", "0")
    assert (code, told.count("serve.")) == (2, 2)


@pytest.mark.parametrize(
    ("host", "further", "expected"),
    [
        ("127.0.0.1", [], ("localhost", "127.0.0.1", "[::1]")),
        ("127.0.0.2", ["a.example"], ("localhost", "127.0.0.1", "[::1]", "a.example", "127.0.0.2")),
        ("0.0.0.0", [], ()),
        ("0.0.0.0", ["a.example"], ("a.example",)),
    ],
)
def test_on_loopback_only_its_names_are_answered(host: str, further: list[str], expected: tuple[str, ...]) -> None:
    assert hosts_of(host, further) == expected


def test_the_description_is_json(served_file: Path) -> None:
    from transduce.serve.app import create_app
    from transduce.serve.models import Models

    app = create_app(Models.open([served_file]))
    assert app.openapi_schema is None  # which takes half a second, so nothing at the start may ask for it
    described = app.openapi()
    assert json.loads(json.dumps(described))["info"]["title"] == "Transduce"
    assert "422" not in json.dumps(described)
    assert set(described["paths"]) == {
        *(
            "/translate",
            "/languages",
            "/detect",
            "/frontend/settings",
            "/spec",
            "/translate_file",
            "/download_file/{name}",
            "/v1/alternatives",
            "/v1/predict",
            "/v1/generate",
            "/v1/stream",
            "/v1/models",
            "/v1/audio/transcriptions",
            "/health",
            "/ready",
            "/metrics",
        ),
        *(f"/v1/explore/{name}" for name in ("models", "predict", "heads", "rollout", "steps", "example")),
        *(f"/v1/explore/{name}" for name in ("positions", "training", "why", "page")),
    }
