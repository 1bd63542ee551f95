"""Classifiers of pairs of texts, and texts beyond a model's positions: both as transformers reads them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_import_encoder import FAMILIES, LABELS, OF_BERT, OF_ROBERTA, TEXTS, for_transformers, foreign

import transduce
from forked import transduce as command
from served import serving
from transduce.cli.convert import convert
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.explore.exploration import explore
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages
from transduce.pipeline.pipeline import Pipeline

transformers = pytest.importorskip("transformers")

PAIRS = [("a good film", "the end"), ("bad", "no plot of a film with no end"), ("the end of the end", "a")]
WORDS = ["a", "good", "bad", "plot", "of", "the", "film", "with", "no", "end"]
POSITIONS = 40


def long_text(count: int, seed: int) -> str:
    return " ".join(np.random.default_rng(seed).choice(WORDS, count))


LONG = [long_text(60, 1), TEXTS[0], long_text(39, 2), long_text(37, 3), long_text(200, 4), "the end"]
LONG_PAIRS = [
    (long_text(60, 1), "the end"),
    ("the end", long_text(60, 2)),
    (long_text(50, 3), long_text(70, 4)),
    (long_text(70, 5), long_text(50, 6)),
    (long_text(20, 7), long_text(17, 8)),
    (long_text(19, 9), long_text(18, 10)),
    ("a", "the end"),
]


def positions(family: str) -> int:
    """Of a row; RoBERTa's begin at the third."""
    return POSITIONS - 2 * (FAMILIES[family][1].get("pad_token_id") == 1)


def theirs(folder: Path, family: str) -> Any:
    """The tokenizer of the folder, as a class of transformers that puts special tokens around texts."""
    from tokenizers import Tokenizer, processors

    path = folder / "tokenizer.json"
    cut = Tokenizer.from_file(str(path))
    if FAMILIES[family][1].get("pad_token_id") == 1:
        cut.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
        roles = dict(zip(("cls_token", "pad_token", "sep_token", "unk_token", "mask_token"), OF_ROBERTA, strict=True))
    else:
        cut.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
        roles = dict(zip(("pad_token", "cls_token", "sep_token", "unk_token", "mask_token"), OF_BERT, strict=True))
    names = ["input_ids", "token_type_ids", "attention_mask"]
    found = transformers.PreTrainedTokenizerFast(tokenizer_object=cut, model_input_names=names, **roles)
    found.model_max_length = positions(family)
    return found


def read(tokenizer: Any, model: Any, *texts: str) -> dict[str, torch.Tensor]:
    """What a model of transformers reads of one text or two, cut where it has to be."""
    found = tokenizer(*texts, return_tensors="pt", truncation=True)
    types = getattr(model.config, "type_vocab_size", 1) > 1
    return {key: found[key] for key in ("input_ids", "attention_mask", *(["token_type_ids"] if types else []))}


def with_pairs(folder: Path) -> Pipeline:
    save_model_file(folder / "pairs.safetensors", read_foreign(folder, Languages(), "pairs", pairs=True).file)
    return transduce.load(folder / "pairs.safetensors", device="cpu")


def probabilities(made: Any) -> torch.Tensor:
    return torch.tensor([made.probabilities[f"LABEL_{each}"] for each in range(LABELS)])


@pytest.mark.parametrize("family", ["bert", "distilbert", "electra, small", "roberta", "xlm-roberta"])
@torch.inference_mode()
def test_probabilities_of_pairs_are_equal(family: str, tmp_path: Path) -> None:
    model = foreign(tmp_path, family, "ForSequenceClassification")
    tokenizer, pipeline = theirs(tmp_path, family), with_pairs(tmp_path)
    room = positions(family) - 2
    with pytest.warns(UserWarning, match=rf"\d of 10 texts were cut to {room} tokens"):
        found = pipeline.predict([f"{one}\t{other}" for one, other in [*PAIRS, *LONG_PAIRS]])
    for pair, made in zip([*PAIRS, *LONG_PAIRS], found, strict=True):
        inputs = read(tokenizer, model, *pair)
        column = pipeline.task.columns["source"]
        assert column.closed(column.encode(["\t".join(pair)])[0]) == inputs["input_ids"][0].tolist()
        wanted_C = model(**inputs).logits[0].softmax(-1)
        torch.testing.assert_close(probabilities(made), wanted_C, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", ["bert", "roberta"])
@pytest.mark.parametrize("head", ["ForSequenceClassification", "Model"])
@torch.inference_mode()
def test_longer_texts_are_cut_as_transformers_cuts_them(family: str, head: str, tmp_path: Path) -> None:
    model = foreign(tmp_path, family, head)
    model.set_attn_implementation("eager")
    tokenizer, pipeline = theirs(tmp_path, family), transduce.load(tmp_path, device="cpu")
    told, room = list[str](), positions(family) - 2
    found = pipeline.predict(LONG, tell=told.append)
    counts = [len(text.split()) for text in LONG]
    longer = sum(count > room for count in counts)
    assert told == [f"{longer} of 6 texts were cut to {room} tokens, the most that this model reads."]
    wanted = [(count, room) if count > room else None for count in counts]
    assert [each.cut and (each.cut.tokens, each.cut.read) for each in found] == wanted
    for text, made in zip(LONG, found, strict=True):
        output = model(**read(tokenizer, model, text), output_attentions=True)
        if head == "Model":
            mean_H = output.last_hidden_state[0].mean(0)
            torch.testing.assert_close(torch.tensor(made.vector), mean_H / mean_H.norm(), rtol=1e-5, atol=1e-6)
        else:
            torch.testing.assert_close(probabilities(made), output.logits[0].softmax(-1), rtol=1e-5, atol=1e-5)
        assert ("cut" in made.to_dict()) == (made.cut is not None)
        seen = made.attention()
        assert len(seen.source.tokens) == output.attentions[0].shape[-1]
        torch.testing.assert_close(seen.layers[0].weights, output.attentions[0][0], rtol=1e-5, atol=1e-5)
        words = text.split()[:room]
        assert [token.text for token in seen.source.tokens[1:-1]] == words


def test_a_texts_numbers_do_not_depend_on_its_batch(tmp_path: Path) -> None:
    foreign(tmp_path, "bert", "ForSequenceClassification")
    pipeline = transduce.load(tmp_path, device="cpu")
    together = pipeline.predict(LONG, tell=lambda line: None)
    for text, made in zip(LONG, together, strict=True):
        [alone] = pipeline.predict([text], batch_size=1, tell=lambda line: None)
        torch.testing.assert_close(probabilities(alone), probabilities(made), rtol=1e-6, atol=1e-7)
    short = pipeline.predict([" ".join(LONG[0].split()[:38])])
    torch.testing.assert_close(probabilities(short[0]), probabilities(together[0]), rtol=1e-6, atol=1e-7)
    pairs = [(text, made.label) for text, made in zip(LONG, together, strict=True)]
    each = pipeline.score(pairs)
    wanted = [np.log(made.probabilities[made.label]) for made in together]
    assert [one.log_probability for one in each] == pytest.approx(wanted, abs=1e-5)


def test_cut_texts_are_counted_once_and_flagged(tmp_path: Path) -> None:
    (folder := tmp_path / "theirs").mkdir()
    foreign(folder, "bert", "ForSequenceClassification")
    given = "".join(f"{text}\n" for text in LONG * 3).encode()
    found = command(tmp_path, "predict", folder, "--json", "--batch-size", 2, given=given)
    assert found.code == 0 and found.err.count("9 of 18 texts were cut to 38 tokens") == 1
    lines = [json.loads(line) for line in found.out.splitlines()]
    assert [line.get("cut") for line in lines[:3]] == [{"tokens": 60, "read": 38}, None, {"tokens": 39, "read": 38}]
    refused = command(tmp_path, "predict", folder, "--long", "refuse", given=given)
    assert refused.code == 2 and "line 1: 60 tokens, the model reads 38 at most" in refused.err
    with serving([folder]) as server:
        answers = server.post("/v1/predict", texts=LONG[:2]).json()["predictions"]
    assert answers[0]["cut"] == {"tokens": 60, "read": 38} and not answers[1].get("cut")
    with pytest.raises(InputError, match="60 tokens; the model reads at most 38 at once"):
        explore(transduce.load(folder), LONG[0])


def test_pairs_are_converted_compared_and_predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder := tmp_path / "theirs").mkdir()
    foreign(folder, "bert", "ForSequenceClassification")
    for_transformers(folder)
    (lines := tmp_path / "lines.txt").write_text("".join(f"{one}\t{other}\n" for one, other in PAIRS))
    convert(folder, path := tmp_path / "ours.safetensors", check=lines, pairs=True)
    told = capsys.readouterr().err
    assert "equal tokens     3 of 3" in told and "equal labels     3 of 3" in told
    found = command(tmp_path, "predict", path, given=lines.read_bytes())
    labels = [each.text for each in transduce.load(path).predict(lines.read_text().splitlines())]
    assert (found.code, found.out.split()) == (0, labels)
    (tmp_path / "long.tsv").write_text("".join(f"{one}\t{other}\n" for one, other in LONG_PAIRS))
    (tmp_path / "labels.txt").write_text("LABEL_0\n" * len(LONG_PAIRS))
    files = ["--source", tmp_path / "long.tsv", "--reference", tmp_path / "labels.txt"]
    scored = command(tmp_path, "evaluate", path, *files)
    assert scored.code == 0 and "4 of 7 texts were cut to 38 tokens" in scored.out
    alone = command(tmp_path, "predict", path, given=b"a good film\n")
    assert alone.code == 2 and "expected two texts with a tab between" in alone.err


def test_tokens_around_texts_are_words_of_their_own(tmp_path: Path) -> None:
    foreign(tmp_path, "bert", "ForSequenceClassification")
    pipeline = with_pairs(tmp_path)
    words = explore(pipeline, "a good film\tthe end")["source"]["words"]
    assert [word["text"] for word in words] == ["[CLS]", "a", "good", "film", "[SEP]", "the", "end", "[SEP]"]
    pair = "\t".join(LONG_PAIRS[2])
    read = pipeline.predict(pair, tell=lambda line: None).attention().source
    assert [token.text for token in read.tokens if token.text[0] == "["] == ["[CLS]", "[SEP]", "[SEP]"]
    assert all(pair[token.start : token.end] == token.text for token in read.tokens if token.text[0] != "[")


@pytest.mark.parametrize("head", ["Model", "ForTokenClassification", "ForQuestionAnswering"])
def test_pairs_are_for_classifiers_of_texts(head: str, tmp_path: Path) -> None:
    foreign(tmp_path, "bert", head)
    with pytest.raises(InputError, match="pairs of texts are read by classifiers of texts"):
        read_foreign(tmp_path, Languages(), "pairs", pairs=True)
