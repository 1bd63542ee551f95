"""The page at "/docs": every command that it shows works as it stands, for each model."""

import os
import re
import subprocess
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from drawn_models import classifier, file_of, graphs, tagger, tree_labeller
from random_models import language_model, model_file
from served import Server, serving, write_model
from transduce.core.model_file import ModelFile, save_model_file
from transduce.serve.api_page import api_page

MADE = {"labels": classifier, "entities": tagger, "trees": tree_labeller, "graphs": graphs}
FILES = ("NAME", "recording.wav")  # what stands for something of the user's


def commands(page: str) -> list[str]:
    return [unescape(each) for each in re.findall(r"<pre[^>]*>(.*?)</pre>", page, re.DOTALL)]


def run(command: str, key: str = "") -> tuple[int, str]:
    """The status and the answer, by a shell and the real curl."""
    written = command.replace("curl ", "curl -sS --noproxy '*' -w '\n%{http_code}' ", 1)
    environment = {**os.environ, "TRANSDUCE_API_KEY": key}
    done = subprocess.run(
        ["bash", "-c", written], capture_output=True, text=True, check=True, timeout=120, env=environment
    )
    answer, _, status = done.stdout.rpartition("\n")
    return int(status), answer


def described(file: ModelFile, text: str) -> ModelFile:
    """With an example, as a training leaves it there."""
    file.provenance["examples"] = [text]
    return file


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A translator, a language model, and models of other inputs."""
    folder = tmp_path_factory.mktemp("several")
    paths = [write_model(folder / "translator.safetensors", seed=5), folder / "writer.safetensors"]
    save_model_file(paths[1], described(model_file(language_model()), "it's ba"))
    for name, make in MADE.items():
        paths.append(folder / f"{name}.safetensors")
        save_model_file(paths[-1], file_of(make()))
    with serving(paths, page="<p>") as running:
        yield running


def test_every_command_works_as_it_stands(server: Server) -> None:
    found = commands(server.client.get("/docs").text)
    tried = [each for each in found if not any(name in each for name in FILES)]
    for command in tried:
        status, answer = run(command)
        assert status == 200, (command, answer)
        assert "event: error" not in answer, (command, answer)
    called = [re.search(rf"{server.address}(/\S*)", each) for each in tried]
    count = {
        path: sum(each is not None and each[1] == path for each in called) for path in ("/v1/predict", "/v1/stream")
    }
    assert count == {"/v1/predict": 6, "/v1/stream": 2}
    paths = server.client.get("/openapi.json").json()["paths"]
    shown = {each[1] for each in called if each}
    assert set(paths) - shown == {"/download_file/{name}", "/v1/audio/transcriptions", "/v1/explore/training"}


def test_the_examples_are_those_of_the_models(server: Server) -> None:
    found = commands(server.client.get("/docs").text)
    assert any("/v1/generate" in each and "it\\u0027s ba" in each for each in found)
    assert any('\\"nodes\\"' in each and '"model": "graphs"' in each for each in found)
    translate = [each for each in found if each.startswith(f"curl {server.address}/translate ")]
    assert len(translate) == 1 and "Zwei Hunde laufen." in translate[0]


def test_with_a_key_the_commands_send_it(tmp_path: Path) -> None:
    with serving([write_model(tmp_path / "one.safetensors", seed=5)], api_key="sesame") as running:
        page = running.client.get("/docs").text
        for command in commands(page):
            if any(name in command for name in FILES):
                continue
            assert run(command, "sesame")[0] == 200, command
        assert "sesame" not in page
        assert 'id="key"' in page
        [text] = [each for each in commands(page) if each.startswith(f"curl {running.address}/v1/predict")]
        assert run(text, "barley")[0] == 403
        assert '"model"' not in text


def test_a_route_that_no_model_is_for_says_so(server: Server) -> None:
    page = server.client.get("/docs").text
    section = page[page.index('id="post/v1/audio/transcriptions"') :].partition("</section>")[0]
    assert "None of the models that are loaded can do this." in section


def test_the_policy_allows_the_pages_own_script(server: Server) -> None:
    answer = server.client.get("/docs")
    policy = answer.headers["content-security-policy"]
    assert re.search(r"script-src 'sha256-[^']+';", policy) and "unsafe" not in policy
    assert answer.text.count("<script") == 1
    assert "http" not in answer.text.replace(server.address, "").replace("over HTTP", "")


def test_without_models_the_examples_are_those_of_the_description() -> None:
    operation = {"tags": ["x"], "responses": {}, "requestBody": {"content": {"a/b": {"schema": {"example": {"q": 1}}}}}}
    page = api_page({"info": {"title": "t"}, "paths": {"/x": {"post": operation}}})
    assert commands(page) == ["curl http://localhost:8000/x -H 'content-type: application/json' -d '{\"q\": 1}'"]
