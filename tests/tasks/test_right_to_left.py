"""Lines that are learnt and written from their last token to their first read as people wrote them."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from random_models import _pipeline as pipeline_of
from random_models import model_file, sentences
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.data.tokenizers.right_to_left import RightToLeft
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
from transduce.inference.splitting import pieces_of
from transduce.interpret.token_spans import written_spans
from transduce.pipeline.pipeline import EnsemblePipeline, Pipeline, load
from transduce.tasks.language_modelling import LanguageModelling, LanguageModellingConfig, LanguageModellingData

KINDS = ["bpe", "unigram", "byte", "character", "whitespace"]
TEXTS = ["ba de fi", "go  ku, ma!", "", "mu", "na né ø"]


def model(direction: str, seed: int = 1) -> Pipeline:
    table: dict[str, Any] = {
        "task": {"kind": "language_modelling", "context": 24, "direction": direction},
        "data": {"train": [{"text": "a"}]},
        "model": {"kind": "transformer_decoder", "d_model": 16, "heads": 2, "layers": 1, "tied": False},
    }
    return pipeline_of(table, "whitespace", seed)


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(kind: str) -> None:
    config = TokenizerConfig.model_validate({"kind": kind, "vocabulary": 300, "min_frequency": 1})
    plain = train_tokenizer(config, [*sentences(50), *TEXTS])
    turned = RightToLeft(plain)
    assert turned.encode(TEXTS) == [ids[::-1] for ids in plain.encode(TEXTS)]
    assert [turned.decode(ids) for ids in turned.encode(TEXTS)] == [plain.decode(ids) for ids in plain.encode(TEXTS)]
    assert turned.to_json() == plain.to_json()
    assert turned.left_to_right.encode(TEXTS) == plain.encode(TEXTS)
    assert turned.equals(RightToLeft(plain))
    assert not turned.equals(plain)
    for text in TEXTS[:2]:
        [ids] = turned.encode([text])
        assert turned.offsets(text) == plain.offsets(text)[::-1]
        shown = plain.decode(ids[::-1])
        assert written_spans(turned, ids, shown) == written_spans(plain, ids[::-1], shown)[::-1]


def test_rows_hold_each_line_turned_around(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one two three\nfour\n\nfive six\n")
    data = LanguageModellingData.model_validate({"root": str(tmp_path), "train": [{"text": "a"}]})
    columns = LanguageModelling.learn_columns(TokenizerConfig(kind="whitespace", min_frequency=1), data)
    found = {}
    for direction in ("left_to_right", "right_to_left"):  # beside each other in one cache
        config = LanguageModellingConfig.model_validate({"context": 4, "direction": direction})
        task = LanguageModelling(config, data, columns)
        store = task.open(tmp_path / "cache", lambda line: None).corpora[0][0]
        rows = store.read("target", np.arange(len(store)))
        found[direction] = columns["target"].tokens([id for row in rows for id in row[1:]])
    ends = "</s>"
    assert found["left_to_right"] == ["one", "two", "three", ends, "four", ends, ends, "five", "six", ends]
    assert found["right_to_left"] == ["three", "two", "one", ends, "four", ends, ends, "six", "five", ends]


def test_it_is_the_plain_model_of_turned_texts() -> None:
    plain, turned = model("left_to_right"), model("right_to_left")
    [first], [second] = plain.score([("", "ba de fi go")]), turned.score([("", "go fi de ba")])
    assert first == second
    wanted, found = plain.predict("ba de fi", beam=3, nbest=3), turned.predict("fi de ba", beam=3, nbest=3)
    assert [each.text.split() for each in wanted.alternatives] == [
        each.text.split()[::-1] for each in found.alternatives
    ]
    assert [each.score for each in wanted.alternatives] == [each.score for each in found.alternatives]
    assert found.text.endswith("fi de ba")
    assert found.tokens == wanted.tokens  # in the order of writing, as are their log-probabilities


def test_a_model_file_keeps_its_direction(tmp_path: Path) -> None:
    turned = model("right_to_left")
    save_model_file(tmp_path / "model.safetensors", model_file(turned))
    loaded = load(tmp_path)
    assert loaded.predict("fi ba", method="greedy") == turned.predict("fi ba", method="greedy")
    assert loaded.task.tokenizers["target"].right_to_left


def test_of_a_long_prompt_its_beginning_is_kept() -> None:
    turned = model("right_to_left")
    text = " ".join(["ba"] + ["de"] * 20)
    pieces = turned.pieces([text])
    assert pieces.read == ["ba" + " de" * 11]
    assert pieces.done[0] == "only its first 12 are seen"
    plain = turned.task.tokenizers["target"].left_to_right
    assert pieces_of([text], [False], plain, 12, "split", prompts=True).done[0] == "only its last 12 are seen"


def test_what_cannot_be_is_refused(tmp_path: Path) -> None:
    turned = model("right_to_left")
    for options in ({"must": ["ba"]}, {"must_not": ["ba"]}):
        with pytest.raises(InputError, match="from right to left, so phrases cannot be followed"):
            turned.predict("fi", **options)
    with pytest.raises(InputError, match="its target tokenizer is not that of"):
        EnsemblePipeline([turned, model("left_to_right")])
    (tmp_path / "a").write_text("one two\n")
    data = LanguageModellingData.model_validate({"root": str(tmp_path), "train": [{"text": "a", "unit": "stream"}]})
    columns = LanguageModelling.learn_columns(TokenizerConfig(kind="character"), data)
    task = LanguageModelling(LanguageModellingConfig(direction="right_to_left"), data, columns)
    with pytest.raises(InputError, match='expected unit = "line"'):
        task.open(tmp_path / "cache", lambda line: None)
