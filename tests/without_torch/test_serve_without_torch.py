"""The server without torch: it answers what the server with torch answers, to the byte, and says what needs torch."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from random_models import language_model, model_file, sentences
from served import ENVIRONMENT, serving, start, write_model
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.inference.options import PredictionOptions
from transduce.pipeline.pipeline import load
from transduce.serve.kernels_model import KernelsModel
from transduce.serve.models import Model
from transduce.serve.pipeline_model import PipelineModel
from transduce.serve.served_model import ModelUse
from transduce.without_torch import choice

pytestmark = pytest.mark.usefixtures("kernels")

KERNELS, TORCH = ModelUse(engine="kernels"), ModelUse(engine="torch", device="cpu")
NO_TORCH = """
import sys
sys.modules["torch"] = None  # importing it raises ImportError
from transduce.cli.{module} import main
main()
"""
SERVERS = {  # of the whole package where torch is missing, and of transduce-runtime
    "app": ["-c", NO_TORCH.format(module="app")],
    "runtime": ["-c", NO_TORCH.format(module="runtime")],
}
TWO = {"q": "ba be bi. Ka le mo.", "source": "de", "target": "en"}
LONG = " ".join(["ba", "du", "go"] * 200)
TEXTS = [*(line for line in sentences(12, seed=4) if line), "", " ba ", "ba. Du ga! Ne", LONG]
ASKED: list[tuple[str, dict[str, Any] | None]] = [
    ("/translate", TWO),
    ("/translate", {**TWO, "q": ["ba be\n\n  ka le ", "", LONG], "alternatives": 2}),
    ("/translate", {**TWO, "q": "<p>ba be <br> ka. Le mo</p><i>fi</i>", "format": "html", "source": "auto"}),
    ("/translate", {**TWO, "split": "none"}),
    ("/translate", {**TWO, "target": "fr"}),
    ("/translate", {**TWO, "alternatives": 9}),
    ("/v1/predict", {"texts": TEXTS, "scores": True, "tokens": True}),
    ("/v1/predict", {"texts": TEXTS, "beam": 3, "nbest": 3, "alpha": 0.2, "max_new": 3, "scores": True, "seed": 5}),
    ("/v1/predict", {"texts": TEXTS, "method": "greedy", "split": "sentences", "long": "truncate", "tokens": True}),
    ("/v1/predict", {"texts": ["ba", LONG], "split": "none", "long": "refuse"}),
    ("/v1/predict", {"texts": ["ba"], "method": "greedy", "temperature": 2.0}),
    ("/v1/predict", {"texts": ["ba"], "beam": 2, "nbest": 3}),
    ("/v1/predict", {"texts": ["ba"], "to": "fr"}),
    ("/v1/stream", {"text": "ba be bi. Ka le mo."}),
    ("/v1/stream", {"text": "  "}),
    ("/v1/audio/transcriptions", {}),
    ("/languages", None),
    ("/v1/models", None),
    ("/ready", None),
    ("/health", None),
    ("/openapi.json", None),
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random translator with a beam."""
    return write_model(tmp_path_factory.mktemp("served") / "tiny.safetensors", search={"beam": 3, "alpha": 0.5})


def answers(address: str, asked: list[tuple[str, dict[str, Any] | None]]) -> list[tuple[int, bytes]]:
    """Status and body of each, without the server's own address."""
    own = address.encode()
    with httpx.Client(base_url=address, timeout=120) as client:
        found = [client.get(path) if body is None else client.post(path, json=body) for path, body in asked]
    return [(each.status_code, each.content.replace(own, b"")) for each in found]


@pytest.fixture(scope="module")
def with_torch(path: Path) -> Iterator[str]:
    """The address of a server that computes with torch."""
    with serving([path], use=TORCH) as server:
        yield server.address


@pytest.fixture(scope="module")
def expected(with_torch: str) -> list[tuple[int, bytes]]:
    """From the server with torch."""
    return answers(with_torch, ASKED)


@pytest.fixture(scope="module", params=SERVERS)
def without_torch(request: pytest.FixtureRequest, path: Path) -> Iterator[str]:
    """The address of a server where torch is missing."""
    process, address = start(path, command=SERVERS[request.param])
    try:
        yield address
    finally:
        process.terminate()
        assert process.wait(60) == 0


def test_answers_are_those_with_torch_to_the_byte(
    without_torch: str, path: Path, expected: list[tuple[int, bytes]]
) -> None:
    found = answers(without_torch, ASKED)
    for asked, one, other in zip(ASKED, found, expected, strict=True):
        assert one == other, asked
    assert [status for status, _ in found].count(200) == 15
    [two, stream] = (json.loads(found[0][1])["translatedText"], found[13][1].decode())
    model = load(path, device="cpu")
    apart = [each.text for each in model.predict(["ba be bi.", "Ka le mo."])]
    assert two == " ".join(apart)
    assert stream.count("event: token") > 2
    pages = answers(without_torch, [("/", None), ("/explore", None), ("/favicon.ico", None), ("/docs", None)])
    assert [status for status, _ in pages] == [200, 404, 200, 200]  # no page that needs torch
    assert b'id="swap"' in pages[0][1]
    assert b'href="explore"' not in pages[0][1]
    assert b'"attends": false' in pages[0][1]  # so words cannot be clicked
    examples = pages[3][1].decode()
    assert "curl /v1/predict " in examples  # without the address, as `answers` gives it
    assert "curl /v1/alternatives" not in examples and "curl /v1/explore" not in examples
    files = {"file": ("film.srt", b"1\n0:00 --> 0:01\nba be bi.\n")}
    answer = httpx.post(f"{without_torch}/translate_file", files=files, data={"source": "de", "target": "en"})
    found_file = httpx.get(answer.json()["translatedFileUrl"]).text
    assert found_file.splitlines()[:2] == ["1", "0:00 --> 0:01"]
    assert " ".join(found_file.splitlines()[2:]) == model.predict("ba be bi.").text


def test_what_needs_torch_is_refused_with_what_to_install(without_torch: str, path: Path) -> None:
    needs: list[tuple[str, dict[str, Any] | None]] = [
        ("/v1/predict", {"texts": ["ba be"], "attention": True}),
        ("/v1/predict", {"texts": ["ba be"], "alignment": True}),
        ("/v1/predict", {"texts": ["ba be"], "method": "sample", "temperature": 0.5}),
        ("/v1/generate", {"text": "ba"}),
        ("/v1/alternatives", {**TWO, "start": 0, "end": 1}),
        ("/v1/explore/models", None),
        ("/v1/explore/example", None),
        ("/v1/explore/predict", {"text": "ba"}),
        ("/v1/explore/positions", {"length": 4, "width": 8}),
    ]
    tagged = {**TWO, "q": "ba <b>be</b> bi", "format": "html"}
    for asked, (status, body) in zip(needs, answers(without_torch, needs), strict=True):
        assert (status, "pip install" in body.decode()) == (400, True), (asked, body)
    [(status, body)] = answers(without_torch, [("/translate", tagged)])
    text = load(path, device="cpu").predict("ba be bi").text
    told = json.loads(body)["translatedText"]
    assert (status, told) == (200, f"<b>{text}</b>")  # no attention says where the words went


ON_DEMAND = """
import json, sys
from starlette.testclient import TestClient
from transduce.serve.app import create_app
from transduce.serve.models import Models
path, asked = json.loads(sys.argv[1])
with TestClient(create_app(Models.open([path]), "<p>the explorer")) as client:
    for page in ("/", "/favicon.ico", "/explore", "/docs"):
        assert client.get(page).status_code == 200
    two = {"q": "ba be.\\n\\nKa le.", "source": "de", "target": "en"}  # as the page at / asks
    assert client.post("/translate", json=two).json()["translatedText"].count("\\n") == 2
    assert "torch" not in sys.modules
    for body in asked:
        answer = client.post("/v1/predict", json=body)
        print(json.dumps([answer.status_code, answer.text, "torch" in sys.modules]))
"""


@pytest.mark.slow  # those above start where torch cannot be, that below sees which requests load it
def test_torch_is_loaded_when_it_is_needed(path: Path, with_torch: str) -> None:
    if any(each.exists() for each in choice.GPUS):
        pytest.skip("on a machine with a GPU torch computes from the beginning")
    asked = [{"texts": ["ba be"]}, {"texts": ["ba be"], "attention": True}, {"texts": ["ba"], "method": "sample"}]
    command = [sys.executable, "-c", ON_DEMAND, json.dumps([str(path), asked])]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=ENVIRONMENT)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert [loaded for _, _, loaded in found] == [False, True, True]
    expected = answers(with_torch, [("/v1/predict", body) for body in asked])
    assert [(status, text.encode()) for status, text, _ in found] == expected


def test_engines_are_chosen(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "GPUS", ())
    monkeypatch.setenv("TRANSDUCE_DEVICE", "")
    writer = tmp_path / "writer.safetensors"
    save_model_file(writer, model_file(language_model()))
    assert isinstance(Model("it", path).current.served, KernelsModel)
    assert isinstance(Model("it", path, KERNELS).current.served, KernelsModel)
    assert isinstance(Model("it", path, TORCH).current.served, PipelineModel)
    for use in (ModelUse(search={"coverage": 0.2}), ModelUse(trust_code=True)):
        assert isinstance(Model("it", path, use).current.served, PipelineModel)
    assert isinstance(Model("it", writer).current.served, PipelineModel)
    with pytest.raises(InputError, match="without torch, Transduce only translates"):
        Model("it", writer, KERNELS)
    with pytest.raises(InputError, match=r"search\.coverage = 0\.2: needs a search that goes step by step"):
        Model("it", path, KERNELS._replace(search={"coverage": 0.2}))
    with pytest.raises(InputError, match="translates without torch"):
        _ = Model("it", path, KERNELS).current.pipeline


def test_settings_of_search_are_those_of_the_command(path: Path) -> None:
    search = {"method": "greedy", "max_length_offset": 2}
    for use in (KERNELS, TORCH):
        served = Model("it", path, use._replace(search=search)).current.served
        assert (served.search.method, served.search.beam, served.search.alpha) == ("greedy", 3, 0.5)
        found = served.predict(["ba be bi"], PredictionOptions())
        assert found == load(path, device="cpu").predict(["ba be bi"], **search)


def test_a_replaced_file_is_served_and_looked_into_anew(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "model.safetensors"
    file.write_bytes(path.read_bytes())
    model = Model("it", file)
    first = model.current
    file.write_bytes(write_model(tmp_path / "other.safetensors", seed=9).read_bytes())
    with pytest.raises(InputError, match="its file was replaced"):
        _ = first.pipeline
    assert [model.reload_if_changed(), model.reload_if_changed()] == [None, True]
    assert isinstance(model.current.served, KernelsModel)
    text = "ba be bi"
    other = load(file, device="cpu").predict(text)
    assert model.current.served.predict([text], PredictionOptions()) == [other]
    assert model.current.pipeline.predict(text) == other
