"""Rules for sentences as a model of MiniSBD: run by onnxruntime on what MiniSBD gives its models."""

import json
import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from transduce.interop.sentence_rules import FEATURES, sentence_rules

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

TEXTS = [
    ["Two dogs run.", "A man sleeps."],
    ['He said "No!"', "She left. ok. no split.", "J. Smith came.", "Dr. J. R. Tolkien wrote it."],
    ["两只狗。", "一个人！", "“好。”", "他说"],
    ["Zwei Hunde laufen.", "Ein Mann schläft?", "Ja…", "(Nein.)", "3.5 m"],
    ["أين الكتاب؟", "هنا."],
    ["Дом. дом.", "Дом"],
    ["No.", "Sí.", "She said it to Ms. Smith.", "St. Paul"],
    ["no end"],
]


@pytest.fixture(scope="module")
def session() -> Any:
    return onnxruntime.InferenceSession(sentence_rules("en"), providers=["CPUExecutionProvider"])


def split(session: Any, text: str) -> list[str]:
    """As MiniSBD asks a model of one paragraph: ids and features of characters, and one place of padding behind."""
    metadata = session.get_modelmeta().custom_metadata_map
    ids = json.loads(metadata["vocab"])["_unit2id"]
    names = json.loads(metadata["config"])["feat_funcs"]
    values = {
        "capitalized": [character.isupper() for character in text],
        "end_of_para": [place == len(text) - 1 for place in range(len(text))],
        "start_of_para": [place == 0 for place in range(len(text))],
    }
    units_BN = np.array([[*(ids.get(character, ids["<UNK>"]) for character in text), ids["<PAD>"]]])
    feature_BNF = np.zeros((1, len(text) + 1, len(names)), np.float32)
    for place, name in enumerate(names):
        feature_BNF[0, : len(text), place] = values[name]
    [scores_BNC] = session.run(None, {"units": units_BN, "features": feature_BNF})
    classes_N = scores_BNC.argmax(2)[0, : len(text)]
    assert set(classes_N.tolist()) <= {0, 2}
    ends = [0, *(np.flatnonzero(classes_N == 2) + 1).tolist()]
    return [text[first:last].strip() for first, last in pairwise(ends)]


@pytest.mark.parametrize("sentences", TEXTS, ids=lambda sentences: sentences[0])
def test_sentences_end_where_they_end(session: Any, sentences: list[str]) -> None:
    glue = "" if re.search("[。！]", sentences[0]) else " "
    assert split(session, glue.join(sentences)) == sentences
    assert [split(session, each) for each in sentences] == [[each] for each in sentences]


def test_paragraphs_of_several_lengths_are_read_together(session: Any) -> None:
    feature_BNF = np.zeros((2, 5, len(FEATURES)), np.float32)
    [scores] = session.run(None, {"units": np.ones((2, 5), np.int64), "features": feature_BNF})
    assert scores.shape == (2, 5, 3)
    assert sentence_rules("de") != sentence_rules("en") == sentence_rules("en")


def test_minisbd_itself_reads_it(tmp_path: Any) -> None:
    minisbd = pytest.importorskip("minisbd", reason="minisbd is not installed: make test EXTRAS=ci")
    path = tmp_path / "rules.onnx"
    path.write_bytes(sentence_rules("en"))
    detector = minisbd.SBDetect(str(path), use_gpu=False)
    for sentences in TEXTS:
        glue = "" if re.search("[。！]", sentences[0]) else " "
        assert detector.sentences(glue.join(sentences)) == sentences
