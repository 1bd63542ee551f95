"""Folders for Hugging Face, loaded by transformers itself."""

from pathlib import Path
from typing import Any

import pytest

from forked import Run
from random_models import model_file, sentences, translator
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.interop.export_huggingface import HuggingFaceEngine, export_huggingface
from transduce.interop.model_card import Languages
from transduce.interop.parity import Text, compare
from two_vocabularies import translator_of_two

transformers = pytest.importorskip("transformers")

SIZES = {"d_model": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 1, "feed_forward": 24, "tied": "none"}
GOES: list[dict[str, Any]] = [
    {"norm": norm, **more}
    for norm in ("post", "pre")
    for more in (
        {},
        {"positions": "learned", "tied": "all"},
        {"positions": "none", "tied": "output"},
        {"activation": "gelu", "key_value_heads": 1},
        {"shared_layers": True},
    )
]


@pytest.mark.parametrize("settings", GOES, ids=str)
def test_greedy_search_is_equal(settings: dict[str, Any], tmp_path: Path) -> None:
    pipeline = translator("unigram", model={**SIZES, **settings})
    export_huggingface(pipeline, tmp_path, Languages("en", "sw"))
    engine = HuggingFaceEngine(pipeline, tmp_path)
    name = {"post": "MarianMTModel", "pre": "PegasusForConditionalGeneration"}[settings["norm"]]
    assert type(engine.model).__name__ == name
    found = compare(pipeline, engine, Text("random", sentences(20)))
    assert found.holds, found.report()


@pytest.mark.parametrize("kind", ["bpe", "byte", "character", "whitespace"])
def test_auto_tokenizer_gives_our_ids_and_texts(kind: str, tmp_path: Path) -> None:
    pipeline = translator(kind, model={**SIZES, "norm": "post"}, tags=[">>fr<<"])
    export_huggingface(pipeline, tmp_path, Languages())
    theirs = transformers.AutoTokenizer.from_pretrained(str(tmp_path))
    ours = pipeline.task.tokenizers["source"]
    names = [] if kind == "whitespace" else ["ba </s> be"]  # which transformers finds in the vocabulary of words
    for line in [*sentences(30), ">>fr<< ba be", *names, ""]:
        [ids] = ours.encode([line])
        assert theirs(line)["input_ids"] == [*ids, ours.end]
        if ours.unknown not in ids:
            assert theirs.decode(ids, skip_special_tokens=True) == ours.decode(ids)
    assert theirs.pad_token_id == ours.pad


def test_two_vocabularies_go_into_marian_alone(tmp_path: Path) -> None:
    pipeline = translator_of_two(norm="post")
    export_huggingface(pipeline, tmp_path, Languages())
    found = compare(pipeline, HuggingFaceEngine(pipeline, tmp_path), Text("random", sentences(40)))
    assert found.holds, found.report()
    target = transformers.AutoTokenizer.from_pretrained(str(tmp_path / "target"))
    assert len(target) == pipeline.task.tokenizers["target"].size
    with pytest.raises(InputError, match="has one vocabulary"):
        export_huggingface(translator_of_two(norm="pre"), tmp_path, Languages())


def test_what_cannot_go_is_told_all_at_once(tmp_path: Path) -> None:
    settings = {"positions": "rotary", "norm_kind": "rms", "activation": "swiglu", "normalizer": "sparsemax"}
    with pytest.raises(InputError) as raised:
        export_huggingface(translator(model={**SIZES, **settings}), tmp_path, Languages())
    named = [each.split("model.")[1].split(" ")[0] for each in raised.value.problems]
    assert named == ["positions", "activation", "norm_kind", "normalizer"]
    assert not list(tmp_path.iterdir())


def test_the_command_writes_a_folder_with_a_card(run: Run, tmp_path: Path) -> None:
    task = {"kind": "translation", "source": "en", "target": "sw"}
    path, lines = tmp_path / "model.safetensors", tmp_path / "lines.txt"
    save_model_file(path, model_file(translator("unigram", model={**SIZES, "norm": "post"}, task=task)))
    lines.write_text("\n".join(sentences(20)) + "\n", encoding="utf-8")
    done = run("export", path, "--to", "huggingface", "--output", tmp_path / "out", "--check", lines)
    assert done.code == 0, done.err
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert card.startswith("---\nlibrary_name: transformers\nlanguage:\n- en\n- sw\n---\n# random")
    assert "English to Swahili" in card
