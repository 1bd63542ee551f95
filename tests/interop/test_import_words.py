"""Words of byte-level BPE keep the space before them: ids, labels and offsets as transformers has them of raw text."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_import_encoder import LABELS, ROBERTA

import transduce
from transduce.cli.convert import convert
from transduce.data.columns.words import Words
from transduce.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer
from transduce.interpret.entity_marks import EntityMarks

transformers = pytest.importorskip("transformers")

RAW = [
    "Anna Ruz of Kisumu met Bo Stone, who left.",
    "(Oslo) Ann: 12 rivers",
    "我们 去 北京, Ann",
    "שלום Ann, עולם",
    "ba 👍 Müller",
    "Ann",
]
TEXTS = [*RAW, "rivers of Oslo, left", "Ann met Anna in Kisumu", " who who left left (12)"] * 4


@pytest.fixture(scope="module", params=[False, True], ids=["as it is", "space first"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random RoBERTa that labels words, with a byte-level BPE that was learnt with or without a space first."""
    from tokenizers import Tokenizer as Inner
    from tokenizers import decoders, models, pre_tokenizers, processors, trainers

    path, spaces = tmp_path_factory.mktemp("roberta"), request.param
    cut = Inner(models.BPE())
    cut.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=spaces)
    cut.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=330, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    cut.train_from_iterator(TEXTS, trainer)
    cut.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=spaces)
    roles = dict(zip(("bos_token", "pad_token", "eos_token", "unk_token", "mask_token"), special, strict=True))
    more = {"cls_token": "<s>", "sep_token": "</s>", "add_prefix_space": spaces}
    transformers.PreTrainedTokenizerFast(tokenizer_object=cut, **roles, **more).save_pretrained(path)
    settings = ROBERTA | {"vocab_size": cut.get_vocab_size(), "max_position_embeddings": 80}
    torch.manual_seed(0)
    model = transformers.RobertaForTokenClassification(transformers.RobertaConfig(**settings, num_labels=LABELS))
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    model.save_pretrained(path)
    return path


def theirs(folder: Path) -> Any:
    return transformers.PreTrainedTokenizerFast.from_pretrained(folder)


@torch.inference_mode()
def test_ids_labels_and_offsets_are_those_of_raw_text(folder: Path) -> None:
    model = transformers.RobertaForTokenClassification.from_pretrained(folder).eval()
    pipeline, tokenizer = transduce.load(folder, device="cpu"), theirs(folder)
    column = pipeline.task.columns["source"]
    assert isinstance(column, Words) and column.spaced
    for text, made in zip(RAW, pipeline.predict(RAW), strict=True):
        read = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
        inputs = column.collate([np.asarray(*column.encode([text]), np.int32)])
        assert inputs.pieces.values[0].tolist() == read["input_ids"][0].tolist(), text
        first_N = inputs.firsts.values[0]
        logits_NC = model(read["input_ids"]).logits[0, first_N]
        torch.testing.assert_close(pipeline.model.classify(inputs)[0], logits_NC, rtol=1e-5, atol=1e-5)
        assert made.text.split(" ") == [f"LABEL_{each}" for each in logits_NC.argmax(1).tolist()]
        begins = [start + (text[start] == " ") for start, _ in read["offset_mapping"][0, first_N].tolist()]
        assert [word.start for word in made.words] == begins
        assert [mark.start for mark in EntityMarks.of(made).marks] == begins
        spans = [(token.start, token.end) for token in made.attention().source.tokens[1:-1]]
        mapped = [(start + (text[start] == " "), end) for start, end in read["offset_mapping"][0, 1:-1].tolist()]
        assert spans == mapped, text


def test_words_between_spaces_are_those_of_split_words(folder: Path) -> None:
    """As models are fine-tuned: each word with a space before it, the first one where texts get one."""
    tokenizer, column = theirs(folder), transduce.load(folder).task.columns["source"]
    words = Words(column.tokenizer, before=column.before, after=column.after, unit="word", spaced=True)
    if not column.tokenizer.spaces_texts:
        tokenizer = transformers.RobertaTokenizer.from_pretrained(folder, add_prefix_space=True)
    for text in RAW:
        row = [each % column.tokenizer.size for each in words.encode([f" {text}"])[0]]
        wanted = tokenizer(text.split(" "), is_split_into_words=True, add_special_tokens=False)["input_ids"]
        assert row == wanted
    saved = words.to_dict()
    assert Words.from_dict(saved, column.tokenizer) == words
    assert "spaced" not in Words(column.tokenizer).to_dict()


@pytest.mark.parametrize("kind", ["bpe", "unigram", "byte", "character", "whitespace"])
def test_tokenizers_learnt_here_do_not_space_words(kind: str) -> None:
    tokenizer: Tokenizer = train_tokenizer(TokenizerConfig(kind=kind, vocabulary=200, min_frequency=1), TEXTS)
    assert not tokenizer.spaces_words and not tokenizer.spaces_texts


def test_convert_compares_words_in_their_text(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (lines := tmp_path / "lines.txt").write_text("".join(f"{text}\n" for text in RAW))
    convert(folder, tmp_path / "ours.safetensors", check=lines)
    told = capsys.readouterr().err
    assert f"equal tokens     {len(RAW)} of {len(RAW)}" in told and f"equal labels     {len(RAW)} of {len(RAW)}" in told


def test_the_settings_of_the_tokenizer_come_before_its_file(folder: Path, tmp_path: Path) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    before = transduce.load(folder).task.columns["source"].tokenizer.spaces_texts
    settings = json.loads((path := tmp_path / "tokenizer_config.json").read_text())
    path.write_text(json.dumps({**settings, "add_prefix_space": not before}))
    assert transduce.load(tmp_path).task.columns["source"].tokenizer.spaces_texts is not before
