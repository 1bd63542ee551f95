"""A converted translator says what its original says, both as they are by default."""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from converted import converted_file
from foreign_models import bart, marian, t5
from random_models import sentences
from scripts import loaded
from transduce.core.errors import InputError
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages

transformers = pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")

LINES = [line for line in sentences(400, 7) if line]


@pytest.fixture(scope="module")
def models() -> ModuleType:
    return loaded("benchmarks/imported_models.py")


@pytest.mark.parametrize("name", ["bart", "marian", "mbart", "t5", "t5 1.1", "m2m_100", "nllb"])
def test_texts_are_those_of_the_original(name: str, models: ModuleType, tmp_path: Path) -> None:
    models.saved(models.LAYOUTS[name], tmp_path, LINES, "tiny")
    found, ended = models.compared(tmp_path, models.LAYOUTS[name].languages, LINES[:12])
    assert found.holds, found.report()
    assert [each.same_tokens for each in found.searches] == [12, 12]
    assert ended > 0


def with_generation(folder: Path, **settings: Any) -> dict[str, Any]:
    """The [search] section of a folder's model with these settings of generation."""
    (folder / "generation_config.json").write_text(json.dumps(settings), encoding="utf-8")
    search: dict[str, Any] = read_foreign(folder, Languages(), "x").file.config["search"]
    return search


def test_defaults_are_those_of_transformers(tmp_path: Path) -> None:
    t5(tmp_path)
    search = with_generation(tmp_path, decoder_start_token_id=0)
    assert (search["method"], search["alpha"], search["stopping"]) == ("greedy", 1.0, "heuristic")
    assert (search["max_length_factor"], search["max_length_offset"], search["at_limit"]) == (0.0, 20, "stop")
    said = read_foreign(tmp_path, Languages(), "x").notes
    assert "stops after 20 tokens, as transformers does" in said[0]
    search = with_generation(tmp_path, num_beams=4, max_length=50, forced_eos_token_id=1, early_stopping=True)
    assert (search["method"], search["beam"], search["stopping"]) == ("beam", 4, "complete")
    assert (search["max_length_offset"], search["at_limit"]) == (49, "end")
    (tmp_path / "generation_config.json").unlink()
    config = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    (tmp_path / "config.json").write_text(json.dumps({**config, "num_beams": 3, "max_length": 30}), encoding="utf-8")
    search = read_foreign(tmp_path, Languages(), "x").file.config["search"]
    assert (search["beam"], search["max_length_offset"]) == (3, 29)


def test_tokens_that_are_never_written_are_kept(tmp_path: Path) -> None:
    bart(tmp_path)
    given = {"suppress_tokens": [7, 8], "bad_words_ids": [[9]], "begin_suppress_tokens": [10, 7], "max_length": 20}
    with_generation(tmp_path, **given, forced_bos_token_id=0, min_length=6)
    pipeline = converted_file(tmp_path)
    target: Any = pipeline.task.columns["target"]
    assert target.unwritten == [7, 8, 9] and target.unwritten_first == [10]
    assert read_foreign(tmp_path, Languages(), "x").file.config["search"]["min_length"] == 4  # without </s> and <s>


REFUSED: dict[str, tuple[Any, str]] = {
    "repetition_penalty": (1.2, "repetition_penalty = 1.2: search here has no such setting"),
    "bad_words_ids": ([[4, 5]], "only single tokens can be ruled out"),
    "length_penalty": (-1.0, "length_penalty: expected a number of at least 0"),
    "forced_eos_token_id": (5, "forced_eos_token_id: expected 2, which ends outputs; got 5"),
    "early_stopping": ("soon", 'early_stopping: expected true, false or "never"'),
    "num_beams": ("4", "num_beams: expected a whole number from 1"),
}


@pytest.mark.parametrize("key", REFUSED)
def test_what_search_does_not_have_is_refused_by_name(key: str, tmp_path: Path) -> None:
    value, said = REFUSED[key]
    bart(tmp_path)
    with pytest.raises(InputError, match=said):
        with_generation(tmp_path, **{key: value})


def test_unknown_tokens_are_left_out_of_texts(tmp_path: Path) -> None:
    """As transformers leaves them out, which may write them."""
    t5(tmp_path)
    with_generation(tmp_path, max_length=20)
    target = converted_file(tmp_path).task.tokenizers["target"]
    [word] = target.encode(["ba"])
    assert target.unknown not in converted_file(tmp_path).task.columns["target"].unwritten
    assert target.decode([*word, target.unknown, *word]) == target.decode([*word, *word])
    (other := tmp_path / "marian").mkdir()
    marian(other, tie_word_embeddings=False)
    read: Any = converted_file(other).task.columns["target"]
    assert "<unk>" not in read.tokenizer.decode([read.tokenizer.unknown])
