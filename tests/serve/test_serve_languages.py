"""LibreTranslate's API over a model of several target languages: `target` chooses its tag."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from libretranslatepy import LibreTranslateAPI

from random_models import model_file, translator
from served import Server, serving
from transduce.core.model_file import save_model_file
from transduce.interpret.links import links
from transduce.pipeline.pipeline import Pipeline, load

TAGS = (">>fr<<", ">>sw<<")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random model from English to French and Swahili."""
    path = tmp_path_factory.mktemp("several") / "several.safetensors"
    save_model_file(path, model_file(translator(tags=TAGS, task={"kind": "translation", "source": "en"})))
    return path


@pytest.fixture(scope="module")
def several(file: Path) -> Pipeline:
    return load(file)


@pytest.fixture(scope="module")
def running(file: Path) -> Iterator[Server]:
    with serving([file]) as found:
        yield found


def test_its_own_client_chooses_the_language(running: Server, several: Pipeline) -> None:
    client = LibreTranslateAPI(running.address)
    assert client.languages() == [
        {"code": "en", "name": "English", "targets": ["fr", "sw", "en"]},
        {"code": "fr", "name": "French", "targets": ["fr"]},
        {"code": "sw", "name": "Swahili", "targets": ["sw"]},
    ]
    found = {target: client.translate("ba de fi go", "en", target) for target in ("fr", "sw")}
    assert found == {target: several.predict("ba de fi go", to=target).text for target in found}
    assert found["fr"] != found["sw"]
    assert client.translate("", "auto", "sw") == ""


def test_each_sentence_and_each_text_has_the_tag(running: Server, several: Pipeline) -> None:
    asked = {"q": ["Ba de.\n\n fi go", "ku la"], "source": "auto", "target": "sw", "split": "sentences"}
    found = running.post("/translate", **asked).json()
    first, second, third = (several.predict(text, to="sw").text for text in ("Ba de.", "fi go", "ku la"))
    assert found["translatedText"] == [f"{first}\n\n {second}", third]


def test_markup_stays_where_its_words_go(running: Server, several: Pipeline) -> None:
    asked = {"q": "<p>ba <b>de</b> fi</p>", "source": "en", "target": "fr", "format": "html"}
    found = running.post("/translate", **asked).json()["translatedText"]
    prediction = several.predict("ba de fi", to="fr")
    de = (10, 12)  # behind ">>fr<< ba"
    of_de = [link.output for link in links(prediction, several.attention(prediction)) if tuple(link.source) == de]
    first, last = min(start for start, _ in of_de), max(end for _, end in of_de)
    text = prediction.text
    assert found == f"<p>{text[:first]}<b>{text[first:last]}</b>{text[last:]}</p>"


@pytest.mark.parametrize("more", [{}, {"model": "several"}])
def test_an_unknown_target_is_an_error(running: Server, more: dict[str, str]) -> None:
    answer = running.post("/translate", q="ba de", source="en", target="de", **more)
    assert answer.status_code == 400
    assert "not supported" in answer.json()["error"]
    assert "fr" in answer.json()["error"]
    assert "sw" in answer.json()["error"]


def test_models_are_listed_with_their_targets(running: Server) -> None:
    [model] = running.client.get("/v1/models").json()["data"]
    assert (model["source"], model["targets"]) == ("en", ["fr", "sw"])


def test_a_model_that_says_no_source_takes_any(tmp_path: Path) -> None:
    path = tmp_path / "any.safetensors"
    save_model_file(path, model_file(translator(tags=TAGS)))
    with serving([path]) as running:
        answer = running.post("/translate", q="ba de", source="en", target="fr")
        assert answer.json() == {"translatedText": load(path).predict("ba de", to="fr").text}
