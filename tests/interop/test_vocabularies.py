"""Where others keep their tokens: codes of languages in tokenizer_config.json, two vocabularies with one padding."""

import json
from pathlib import Path
from typing import Any

import pytest

from converted import converted_file, logits_of_both
from foreign_models import LINES, SIZES, marian, nllb, pieces_of, saved, train_spm
from forked import transduce as command
from random_models import sentences
from transduce.core.errors import InputError
from transduce.interop.export_huggingface import export_huggingface
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages
from transduce.interop.original_engine import OriginalEngine
from transduce.interop.parity import Text
from transduce.interop.run_parity import compare_runs
from two_vocabularies import translator_of_two

transformers = pytest.importorskip("transformers")
pytest.importorskip("sentencepiece")

TEXTS = [line for line in sentences(12, 3) if line]
EN_FR = {"source": "eng_Latn", "target": "fra_Latn"}


def without_codes(folder: Path) -> list[str]:
    """The codes that tokenizer_config.json has, which its tokenizer.json loses here."""
    codes: list[str] = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))[
        "extra_special_tokens"
    ]
    table = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    table["added_tokens"] = [each for each in table["added_tokens"] if each["content"] not in {*codes, "<mask>"}]
    table["model"]["vocab"] = {name: i for name, i in table["model"]["vocab"].items() if name not in {*codes, "<mask>"}}
    table["post_processor"] = None
    (folder / "tokenizer.json").write_text(json.dumps(table), encoding="utf-8")
    return codes


def test_codes_of_tokenizer_config_are_read(tmp_path: Path) -> None:
    """Their ids follow those of tokenizer.json, as in transformers, in their order."""
    nllb(tmp_path)
    codes = without_codes(tmp_path)
    size = len(json.loads((tmp_path / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"])
    source: Any = converted_file(tmp_path, **EN_FR).task.columns["source"]
    assert source.tokenizer.ids([codes[0], codes[-1]]) == [size, size + len(codes) - 1]
    assert source.before == ("eng_Latn",)
    with pytest.raises(InputError, match=r'got "eng_Latm"\. Did you mean "eng_Latn"'):
        read_foreign(tmp_path, Languages("eng_Latm", "fra_Latn"), "x")


def test_a_sentencepiece_model_is_numbered_as_fairseq_does(tmp_path: Path) -> None:
    nllb(tmp_path)
    codes = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))["extra_special_tokens"]
    (tmp_path / "tokenizer.json").unlink()
    pieces = pieces_of(train_spm(tmp_path / "sentencepiece.bpe.model", LINES, 60, "bpe"))
    target: Any = converted_file(tmp_path, **EN_FR).task.columns["target"]
    ids = target.tokenizer.ids(["<pad>", pieces[3], pieces[-1], codes[0], codes[1], "<mask>"])
    size = len(pieces) + 1
    assert ids == [1, 4, size - 1, size, size + 1, size + len(codes)]
    assert target.opening == target.tokenizer.ids(["fra_Latn"])


def test_two_vocabularies_with_one_padding(tmp_path: Path) -> None:
    """Outputs begin with the source's id of padding, which is no token of the target."""
    sides = []
    for side, lines, size, name in (
        ("source", LINES, 60, "vocab.json"),
        ("target", [line[::-1] for line in LINES], 40, "target_vocab.json"),
    ):
        pieces = pieces_of(train_spm(tmp_path / f"{side}.spm", lines, size))
        named = ["</s>", "<unk>", *(each for each in pieces if each not in ("<unk>", "<s>", "</s>")), "<pad>"]
        (tmp_path / name).write_text(json.dumps({piece: index for index, piece in enumerate(named)}), encoding="utf-8")
        sides.append(named)
    source, target = sides
    pad = source.index("<pad>")
    assert len(target) < pad
    tokenizer = {
        "tokenizer_class": "MarianTokenizer",
        "separate_vocabs": True,
        "target_vocab_file": "target_vocab.json",
    }
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    ids = {"pad_token_id": pad, "decoder_start_token_id": pad, "vocab_size": pad + 1, "decoder_vocab_size": pad + 1}
    apart = {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False}
    model = saved(transformers.MarianMTModel, transformers.MarianConfig(**SIZES, **ids, **apart), tmp_path, 0.5)
    model.final_logits_bias[:, len(target) :] = -1e4  # its tokenizer has no such tokens
    model.save_pretrained(str(tmp_path))
    pipeline = converted_file(tmp_path, short=False)
    assert pipeline.task.columns["target"].start == pad  # type: ignore[attr-defined]
    theirs, ours = logits_of_both(model, pipeline)
    assert (ours - theirs)[:, : len(target)].abs().max() < 1e-4
    found = compare_runs(pipeline, OriginalEngine(pipeline, tmp_path), Text("lines", TEXTS))
    assert found.holds, found.report()


def test_an_export_of_two_vocabularies_comes_back(tmp_path: Path) -> None:
    ours = translator_of_two(norm="post")
    export_huggingface(ours, tmp_path, Languages())
    back = converted_file(tmp_path)
    wanted = [each.text for each in ours.predict(TEXTS, method="greedy", max_length_factor=0.5, max_length_offset=4)]
    assert [each.text for each in back.predict(TEXTS, method="greedy")] == wanted
    assert OriginalEngine(back, tmp_path).translate(TEXTS[:1])[0].text


def test_info_shows_the_tokenizer_that_is_there(tmp_path: Path) -> None:
    """And no settings by which another would be learnt."""
    (folder := tmp_path / "theirs").mkdir()
    marian(folder)
    converted_file(folder)
    found = command(tmp_path, "info", folder / "ours.safetensors")
    assert "tokenizer, source │ Unigram, 89 entries" in found.out
    assert "vocabulary 8000" not in found.out and "min_frequency" not in found.out
