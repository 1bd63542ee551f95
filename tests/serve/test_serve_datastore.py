"""A server whose model consults a translation memory: the answers of `predict --datastore`, and fuzzy matches."""

import importlib.util
from pathlib import Path

import pytest

from random_models import sentences
from served import serving, write_model
from transduce.core.errors import InputError
from transduce.pipeline.datastores import BuildOptions, build_datastore
from transduce.pipeline.pipeline import load
from transduce.serve.datastores import datastores_of
from transduce.serve.models import Models
from transduce.serve.served_model import ModelUse

SOURCES = [text for text in sentences(14, seed=5) if text]
TARGETS = [text for text in sentences(40, seed=8) if text][: len(SOURCES)]
SHORT = {"max_length_factor": 0.5, "max_length_offset": 4}


@pytest.fixture(scope="module")
def store(served_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("memory") / "memory.datastore"
    pairs = [(number, *pair) for number, pair in enumerate(zip(SOURCES, TARGETS, strict=True), 1)]
    settings = {"k": 2, "weight": 0.9, "temperature": 1.0, "distance": 100.0}
    build_datastore(load(served_file), pairs, path, BuildOptions(knn=settings))
    return path


def test_answers_are_those_of_predict_and_matches_come_when_asked(served_file: Path, store: Path) -> None:
    model, text = load(served_file), SOURCES[2]
    expected = model.predict(text, datastore=store, **SHORT).text
    assert expected != model.predict(text, **SHORT).text
    asked = {"q": text, "source": "de", "target": "en"}
    use = ModelUse(datastores=(str(store),), search=SHORT)
    with serving([served_file], use=use) as running:
        plain = running.post("/translate", **asked).json()
        assert plain == {"translatedText": expected}
        if importlib.util.find_spec("rapidfuzz"):
            found = running.post("/translate", **asked, matches=95).json()
            match = {"similarity": 100, "source": text, "target": TARGETS[2], "pair": 3}
            assert found == {**plain, "matches": [match]}
            several = running.post("/translate", **{**asked, "q": [text, "zz"]}, matches=95).json()
            assert several["matches"] == [[match], []]
            assert '"memory": true' in running.client.get("/").text
        [answer] = running.post("/v1/predict", texts=[text], origins=True, nbest=2).json()["predictions"]
        told = model.predict(text, datastore=store, origins=True, nbest=2, **SHORT).to_dict()
        assert answer["text"] == told["text"]
        assert len(answer["nbest"]) == 2
        assert [each["token"] for each in answer["origins"]] == list(told["tokens"])
        assert answer["origins"] == told["origins"]
        assert answer["origin_pairs"] == told["origin_pairs"]
        explored = running.post("/v1/explore/predict", text=text).json()
        assert explored["nbest"][0]["text"] == told["text"]
        assert explored["memory"] == {name: told[name] for name in ("origins", "origin_pairs")}
        assert running.post("/translate", **asked, matches=101).status_code == 400
    with serving([served_file], use=ModelUse(search=SHORT)) as running:
        refused = running.post("/translate", **asked, matches=70)
        assert (refused.status_code, "has no translation memory" in refused.json()["error"]) == (400, True)
        assert running.post("/v1/predict", texts=[text], origins=True).status_code == 400
        assert running.post("/v1/explore/predict", text=text).json()["memory"] is None
        assert '"memory": true' not in running.client.get("/").text


def test_whose_a_datastore_is() -> None:
    assert datastores_of(["a.datastore"], ["one"]) == {"one": Path("a.datastore")}
    assert datastores_of(["two=b=c"], ["one", "two"]) == {"two": Path("b=c")}
    for asked, said in (
        (["a"], "there are several models"),
        (["six=a"], "there is no model six"),
        (["one=a", "one=b"], "has one already"),
    ):
        with pytest.raises(InputError, match=said):
            datastores_of(asked, ["one", "two"])


def test_one_of_another_model_or_without_torch_is_refused(served_file: Path, store: Path, tmp_path: Path) -> None:
    other = write_model(tmp_path / "other.safetensors", seed=4)
    with pytest.raises(InputError, match="was built for the model"):
        Models.open([other], ModelUse(datastores=(str(store),)))
    with pytest.raises(InputError, match="a datastore needs torch"):
        Models.open([served_file], ModelUse(datastores=(str(store),), engine="kernels"))
