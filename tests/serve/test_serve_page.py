"""What "/" shows: a page that translates where a model does, else the explorer, else the API; and its icon."""

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest

from random_models import language_model, model_file, translator
from served import serving, start, write_model
from transduce.core.model_file import save_model_file
from transduce.documents.formats import FORMATS

EXPLORER = "<!doctype html><title>explorer</title><p>Hi"


@pytest.fixture(scope="module")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A language model."""
    path = tmp_path_factory.mktemp("page") / "writer.safetensors"
    save_model_file(path, model_file(language_model()))
    return path


def told(page: str) -> Any:
    """What the page knows of the server."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert found
    return json.loads(found[1])


def test_a_translator_is_shown_with_its_languages_and_limits(served_file: Path, writer: Path, tmp_path: Path) -> None:
    back = tmp_path / "back.safetensors"
    task = {"kind": "translation", "source": "en", "target": "de"}
    save_model_file(back, model_file(translator(task=task)))
    models = [writer, served_file, f"again={served_file}", back]
    with serving(models, page=EXPLORER, characters=777, api_key="k") as running:
        answer = running.client.get("/")
    assert answer.status_code == 200
    pairs = [["de", ["en"]], ["en", ["de"]]]
    data = told(answer.text)
    assert data.pop("files") == [*FORMATS]
    assert data.pop("bytes") == 10_000_000
    assert data == {"pairs": pairs, "characters": 777, "key": True, "explore": True, "attends": True}
    assert 'href="explore"' in answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "connect-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer.headers["permissions-policy"].endswith("microphone=()")
    assert "http" not in answer.text.replace("http://www.w3.org/2000/svg", "").replace("by http from", "")


def test_a_model_without_languages_is_a_pair_as_well(tmp_path: Path) -> None:
    path = tmp_path / "unsaid.safetensors"
    save_model_file(path, model_file(translator(task={"kind": "translation"})))
    with serving([path]) as running:
        assert told(running.client.get("/").text)["pairs"] == [["und", ["und"]]]
        assert running.post("/translate", q="ba", source="und", target="und").status_code == 200


def test_without_a_translator_it_leads_to_the_explorer_or_shows_the_api(writer: Path) -> None:
    with serving([writer], page=EXPLORER) as running:
        answer = running.client.get("/")
        assert (answer.status_code, answer.headers["location"]) == (307, "explore")
        assert running.client.get("/", follow_redirects=True).text == EXPLORER
    with serving([writer]) as running:
        assert running.client.get("/").text == running.client.get("/docs").text
        assert running.client.get("/explore").status_code == 404


def test_the_explorer_can_be_hidden_with_all_that_it_asks(served_file: Path) -> None:
    with serving([served_file], page=EXPLORER, explore=False) as running:
        page = running.client.get("/")
        assert page.status_code == 200
        assert 'href="explore"' not in page.text
        assert running.client.get("/explore").status_code == 404
        assert running.client.get("/v1/explore/models").status_code == 404
        assert running.post("/v1/explore/predict", text="ba").status_code == 404
        assert "/v1/explore" not in running.client.get("/openapi.json").text


def test_the_option_hides_it(served_file: Path) -> None:
    process, address = start(served_file, "--no-explore")
    try:
        found = [httpx.get(f"{address}{path}", timeout=60).status_code for path in ("/", "/explore")]
    finally:
        process.terminate()
        assert process.wait(60) == 0
    assert found == [200, 404]


def test_a_reloaded_model_with_other_languages_changes_the_page(tmp_path: Path) -> None:
    path = write_model(tmp_path / "model.safetensors")
    with serving([path]) as running:
        assert told(running.client.get("/").text)["pairs"] == [["de", ["en"]]]
        task = {"kind": "translation", "source": "fr", "target": "en"}
        save_model_file(path, model_file(translator(task=task)))
        [model] = running.service.models
        while model.current.version == 1:
            model.reload_if_changed()
        answer = running.client.get("/")
    assert told(answer.text)["pairs"] == [["fr", ["en"]]]


def test_the_icon_is_a_picture_that_browsers_keep(served_file: Path) -> None:
    with serving([served_file], api_key="k") as running:
        answer = running.client.get("/favicon.ico")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "image/svg+xml"
    assert "max-age=" in answer.headers["cache-control"]
    assert ElementTree.fromstring(answer.text).tag == "{http://www.w3.org/2000/svg}svg"
    assert len(answer.content) < 2000
