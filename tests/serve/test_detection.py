"""/detect, "auto", one language into itself, two models behind each other, and alternatives that are not there."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from libretranslatepy import LibreTranslateAPI

from declaration import ARTICLE
from random_models import model_file, translator
from served import Server, serving
from transduce.core.model_file import save_model_file
from transduce.data.language_profile import LanguageProfile
from transduce.pipeline.pipeline import load

PAIRS = {"de-en": ("de", "en"), "en-fr": ("en", "fr"), "cs-fr": ("cs", "fr")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three random models whose files say what their languages look like, from one text each, over and over."""
    path = tmp_path_factory.mktemp("pairs")
    profiles = {}
    for code in ("cs", "de", "en", "fr"):
        profile = LanguageProfile.of([ARTICLE[code]] * 40)
        assert profile is not None
        profiles[code] = profile.to_dict()
    for seed, (name, (source, target)) in enumerate(PAIRS.items()):
        search = {"method": "greedy"} if name == "en-fr" else {}
        task = {"kind": "translation", "source": source, "target": target}
        file = model_file(translator(seed=seed + 3, task=task, search=search))
        file.provenance["ngrams"] = {"source": profiles[source], "target": profiles[target]}
        save_model_file(path / f"{name}.safetensors", file)
    return path


@pytest.fixture(scope="module")
def running(folder: Path) -> Iterator[Server]:
    with serving([folder / f"{name}.safetensors" for name in PAIRS]) as found:
        yield found


def test_its_own_client_detects(running: Server) -> None:
    client = LibreTranslateAPI(running.address)
    [found] = client.detect(ARTICLE["fr"])
    assert found["language"] == "fr" and 50 < found["confidence"] <= 100
    assert client.detect(ARTICLE["ru"])[0]["language"] in ("und", "ru")  # the latter where py3langid is installed
    assert client.detect("12") == [{"language": "und", "confidence": 0.0}]


@pytest.mark.parametrize("how", ["json", "data", "params"])
def test_detect_reads_what_translate_reads(running: Server, how: str) -> None:
    answer = running.client.post("/detect", **{how: {"q": ARTICLE["de"]}})  # type: ignore[arg-type]
    assert (answer.status_code, answer.json()[0]["language"]) == (200, "de")
    assert running.post("/detect").json() == {"error": "Invalid request: missing q parameter"}


def test_auto_chooses_the_model_and_says_how_sure_it_is(running: Server, folder: Path) -> None:
    for code in ("cs", "en"):
        found = running.post("/translate", q=ARTICLE[code], source="auto", target="fr").json()
        told = running.post("/translate", q=ARTICLE[code], source=code, target="fr").json()
        assert found["translatedText"] == told["translatedText"]
        assert found["detectedLanguage"]["language"] == code
        assert (
            found["detectedLanguage"]["confidence"] == running.post("/detect", q=ARTICLE[code]).json()[0]["confidence"]
        )
        assert "pivot" not in found


def test_auto_never_claims_what_it_did_not_detect(running: Server) -> None:
    found = running.post("/translate", q="12 34", source="auto", target="en").json()
    assert found["detectedLanguage"] == {"language": "de", "confidence": 0.0}  # all that is read into English
    answer = running.post("/translate", q="12 34", source="auto", target="fr")
    assert answer.status_code == 400
    assert "not detected; name one of de, en, cs" in answer.json()["error"]


def test_markup_is_no_language(running: Server) -> None:
    page = '<div class="alle Menschen sind frei und gleich">'
    asked = {"q": f"{page * 9}{ARTICLE['cs']}", "source": "auto", "target": "fr", "format": "html"}
    assert running.post("/translate", **asked).json()["detectedLanguage"]["language"] == "cs"


def test_a_language_into_itself_is_as_it_was(running: Server) -> None:
    asked = {"q": ["  Zwei\n<b>", "x"], "source": "de", "target": "de-AT", "alternatives": 2, "format": "html"}
    found = running.post("/translate", **asked)
    assert found.json() == {"translatedText": asked["q"], "alternatives": [[], []]}
    found = running.post("/translate", q=ARTICLE["fr"], source="auto", target="fr").json()
    assert (found["translatedText"], found["detectedLanguage"]["language"]) == (ARTICLE["fr"], "fr")
    unknown = running.post("/translate", q="a", source="xx", target="xx")
    assert unknown.status_code == 400 and "xx is not supported; this server knows de, en, " in unknown.json()["error"]


def test_two_models_join_and_it_is_told(running: Server, folder: Path) -> None:
    first, second = (load(folder / f"{name}.safetensors") for name in ("de-en", "en-fr"))
    found = running.post("/translate", q=["ba de", "\nfi go\n"], source="de", target="fr", alternatives=1).json()
    expected = [second.predict(first.predict(text).text).text for text in ("ba de", "fi go")]
    assert found == {
        "translatedText": [expected[0], f"\n{expected[1]}\n"],
        "alternatives": [[], []],
        "pivot": "en",
    }
    listed = {each["code"]: each["targets"] for each in running.client.get("/languages").json()}
    assert listed == {"de": ["en", "fr", "de"], "en": ["fr", "en"], "fr": ["fr"], "cs": ["fr", "cs"]}
    asked = {"q": "ba", "source": "de", "target": "fr", "start": 0, "end": 1}
    assert "no single model" in running.post("/v1/alternatives", **asked).json()["error"]


def test_who_always_asks_for_alternatives_gets_what_there_is(running: Server, folder: Path) -> None:
    beam = load(folder / "de-en.safetensors")
    found = running.post("/translate", q="ba de", source="de", target="en", alternatives=50).json()
    listed = [each.text for each in beam.predict("ba de", nbest=5).alternatives]
    assert [found["translatedText"], *found["alternatives"]] == listed
    greedy = running.post("/translate", q="ba de", source="en", target="fr", alternatives=3).json()
    assert greedy["alternatives"] == []
    assert "alternatives" not in running.post("/translate", q="ba de", source="en", target="fr").json()


def test_the_description_has_the_fields(running: Server) -> None:
    described = running.client.get("/openapi.json").json()
    assert "api_key" in json.dumps(described["paths"]["/detect"]["post"]["requestBody"])
