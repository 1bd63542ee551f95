"""`transduce serve --engine ctranslate2`: the same answers as from our own model, over the same API."""

import zipfile
from pathlib import Path
from typing import Any

import pytest
from torch import Tensor, nn

from random_models import SHORT, sentences, translator
from served import CODES, serving, write_model
from transduce.core.errors import InputError
from transduce.interop.export_argos import export_argos
from transduce.interop.export_ctranslate2 import export_ctranslate2, write_ctranslate2
from transduce.interop.model_card import Languages
from transduce.interop.sentencepiece import sentencepiece_model
from transduce.interop.text_to_text import never_chosen
from transduce.pipeline.pipeline import Pipeline
from transduce.serve.models import Model
from transduce.serve.served_model import ModelUse

pytest.importorskip("ctranslate2")

ENGINE = ModelUse(engine="ctranslate2")
LINES = [line for line in sentences(40, seed=6) if line]
GREEDY = {"search": {**SHORT, "method": "greedy"}}


def random_translator(**sections: Any) -> Pipeline:
    return translator("unigram", task=CODES, **sections)


def exported(pipeline: Pipeline, folder: Path) -> Path:
    folder.mkdir()
    return export_ctranslate2(pipeline, folder, Languages.of(pipeline))


class SharedOut(nn.Module):
    """The probability of tokens that are never chosen is shared out among the others, as an exported model does."""

    def __init__(self, model: Any, never_V: Tensor) -> None:
        super().__init__()
        self.model, self._never_V = model, never_V

    def start(self, source: Any, rows: int) -> Any:
        return self.model.start(source, rows)

    def step(self, token_B: Tensor, memory: Any, state: Any) -> tuple[Tensor, Any]:
        scores_BV, state = self.model.step(token_B, memory, state)
        return (scores_BV + self._never_V).log_softmax(-1), state


@pytest.mark.parametrize("search", [{}, {"method": "greedy"}, {"beam": 3, "nbest": 3, "alpha": 0.3}], ids=str)
def test_predictions_are_those_of_our_model(search: dict[str, Any], tmp_path: Path) -> None:
    pipeline = random_translator(search={**SHORT, **search})
    folder = exported(pipeline, tmp_path / "model")
    target: Any = pipeline.task.columns["target"]
    pipeline.model = SharedOut(pipeline.model, never_chosen(target.tokenizer.size, target.unwritten))
    own = pipeline.predict(LINES)
    with serving([folder], use=ENGINE) as server:
        answer = server.post("/v1/predict", texts=LINES, scores=True, tokens=True).json()
    for line, one, other in zip(LINES, own, answer["predictions"], strict=True):
        assert (other["text"], other["ended"], other["tokens"]) == (one.text, one.ended, list(one.tokens)), line
        assert other["score"] == pytest.approx(one.score, abs=1e-4)
        assert other["log_probability"] == pytest.approx(one.log_probability, abs=1e-4)
        assert len(other.get("nbest") or []) == len(one.alternatives)


def test_libretranslates_api_splits_sentences_as_ever(tmp_path: Path) -> None:
    libretranslatepy = pytest.importorskip("libretranslatepy")
    pipeline = random_translator(**GREEDY)
    text = "ba be bi. Ka le mo.\n\n  fi go  "
    with serving([exported(pipeline, tmp_path / "model")], use=ENGINE) as server:
        client = libretranslatepy.LibreTranslateAPI(f"{server.address}/")
        assert client.translate(text, "de", "en") == "{} {}\n\n  {}  ".format(
            *(each.text for each in pipeline.predict(["ba be bi.", "Ka le mo.", "fi go"]))
        )
        assert {each["code"] for each in client.languages()} == {"de", "en"}
        html = server.post("/translate", q="ba <b>be</b> bi", source="de", target="en", format="html")
        assert html.json()["translatedText"].count("<b>") == 1
        assert server.client.get("/").status_code == 200


def test_a_text_gets_the_same_output_alone_and_among_longer_ones(tmp_path: Path) -> None:
    pipeline = random_translator(search={"beam": 2, "max_length_factor": 1.0, "max_length_offset": 1})
    model = Model("it", exported(pipeline, tmp_path / "model"), ENGINE).current.pipeline
    assert [each.tokens for each in model.predict(LINES)] == [model.predict(line).tokens for line in LINES]
    assert model.predict(["", "  "])[1].text == ""


def test_of_long_texts_the_same_is_told_as_by_our_model(tmp_path: Path) -> None:
    pipeline = random_translator(**GREEDY)
    model = Model("it", exported(pipeline, tmp_path / "model"), ENGINE).current.pipeline
    long, told, expected = ["ba", "go " * 400], list[str](), list[str]()
    assert model.predict(long, tell=told.append, first=5)[1].text
    pipeline.predict(long, tell=expected.append, first=5)
    assert told == expected and told[0].startswith("line 7:")


def test_what_the_engine_cannot_do_is_refused_in_words(tmp_path: Path) -> None:
    with serving([exported(random_translator(**GREEDY), tmp_path / "model")], use=ENGINE) as server:
        asked: list[tuple[str, dict[str, Any], str]] = [
            ("/v1/predict", {"texts": ["ba"], "attention": True}, "shows nothing"),
            ("/v1/predict", {"texts": ["ba"], "method": "sample"}, "search.method"),
            ("/v1/explore/predict", {"text": "ba"}, ""),
        ]
        for path, values, words in asked:
            answer = server.post(path, **values)
            assert answer.status_code == 400, answer.text
            assert words in answer.json()["error"]
        assert "as they grow" in server.post("/v1/stream", text="ba").text
        assert server.post("/v1/predict", texts=["ba"]).status_code == 200


def test_settings_and_files_that_do_not_fit_are_refused_at_the_start(tmp_path: Path) -> None:
    folder = exported(random_translator(search={"length_rule": "gnmt", "prune": 2.0}), tmp_path / "model")
    with pytest.raises(InputError) as raised:
        Model("it", folder, ENGINE)
    assert [each.split(":")[0].split(" ")[0] for each in raised.value.problems] == [
        "search.length_rule",
        "search.prune",
    ]
    with pytest.raises(InputError, match="transduce export MODEL --to ctranslate2"):
        Model("it", write_model(tmp_path / "tiny.safetensors"), ENGINE)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"there is no model\.bin"):
        Model("it", tmp_path / "empty", ENGINE)
    (folder / "model.bin").write_bytes(b"nothing")
    with pytest.raises(InputError):
        Model("it", folder, ENGINE)
    pipeline = random_translator(**GREEDY)
    with pytest.raises(InputError, match="must: CTranslate2 has no constraints"):
        Model("it", exported(pipeline, tmp_path / "two"), ENGINE).current.pipeline.predict("ba", must=["be"])


def test_foreign_folders_are_cut_by_sentencepiece(tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece")
    pipeline = random_translator(**GREEDY)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    write_ctranslate2(pipeline, foreign)
    with pytest.raises(InputError, match="there is no tokenizer"):
        Model("it", foreign, ENGINE)
    (foreign / "sentencepiece.model").write_bytes(sentencepiece_model(pipeline.task.tokenizers["source"]))
    found = Model("it", foreign, ENGINE).current
    own = pipeline.predict(LINES, max_length_factor=1.5, max_length_offset=20)
    assert (found.source, found.target) == ("und", "und")
    assert [each.text for each in found.pipeline.predict(LINES, method="greedy")] == [each.text for each in own]


def test_an_unpacked_argos_package_names_its_languages(tmp_path: Path) -> None:
    pytest.importorskip("sentencepiece")
    pipeline = random_translator(**GREEDY)
    with zipfile.ZipFile(export_argos(pipeline, tmp_path, Languages("en", "sw"))) as packed:
        packed.extractall(tmp_path / "unpacked")
    [root] = (tmp_path / "unpacked").iterdir()
    found = Model("it", root, ENGINE).current
    assert (found.source, found.target) == ("en", "sw")
    assert found.pipeline.predict("ba be", method="greedy").text
