"""BERT and its relatives with random weights, named where a model is named, and compared with transformers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import transduce
from forked import transduce as command
from served import serving
from transduce.cli.convert import convert
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.core.padded import Padded
from transduce.data.columns.masked_text import MaskedText
from transduce.data.columns.text_pair import TextPair
from transduce.inference.masked_words import MaskedWordPredictor
from transduce.interop.encoder_parity import CLOSE, compare_encoder
from transduce.interop.import_encoder import _scheme
from transduce.interop.import_tokenizer import of_wordpieces
from transduce.interop.imports import read_foreign
from transduce.interop.model_card import Languages
from transduce.interop.parity import Text
from transduce.layers.text_encoder import TextEncoder

transformers = pytest.importorskip("transformers")

TEXTS = ["a good film", "bad bad plot of a film with no end", "the end"]
PAIR = "a good film\tthe end"
LABELS = 3
SIZES = {"vocab_size": 60, "max_position_embeddings": 40}
BERT = SIZES | {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
ROBERTA = BERT | {"type_vocab_size": 1, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", BERT),
    "bert, gelu_new": ("Bert", BERT | {"hidden_act": "gelu_new", "layer_norm_eps": 1e-5}),
    "distilbert": ("DistilBert", SIZES | {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24}),
    "electra": ("Electra", BERT | {"embedding_size": 16}),
    "electra, small": ("Electra", BERT | {"embedding_size": 8}),
    "roberta": ("Roberta", ROBERTA),
    "xlm-roberta": ("XLMRoberta", ROBERTA),
    "camembert": ("Camembert", ROBERTA),
}
OF_BERT = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")
OF_ROBERTA = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


def foreign(folder: Path, family: str, head: str, seed: int = 0) -> Any:
    """A random model of transformers, written into the folder with a tokenizer."""
    name, settings = FAMILIES[family]
    torch.manual_seed(seed)
    labels = 2 if head == "ForQuestionAnswering" else LABELS
    config = getattr(transformers, f"{name}Config")(**settings, num_labels=labels)
    model = getattr(transformers, f"{name}{head}")(config).eval()
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    model.save_pretrained(folder)
    tokenizer(folder, OF_ROBERTA if settings.get("pad_token_id") else OF_BERT)
    return model


def tokenizer(folder: Path, special: tuple[str, ...]) -> None:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    found = Tokenizer(models.WordPiece(unk_token=special[3]))
    found.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordPieceTrainer(vocab_size=60, special_tokens=list(special), show_progress=False)
    found.train_from_iterator(TEXTS * 5, trainer)
    found.save(str(folder / "tokenizer.json"))


def read(folder: Path, text: str) -> torch.Tensor:
    """(1, S): the ids that a model of transformers reads."""
    from tokenizers import Tokenizer

    cut = Tokenizer.from_file(str(folder / "tokenizer.json"))
    start, end = (next(cut.token_to_id(name) for name in names if cut.token_to_id(name) is not None)
                  for names in (("<s>", "[CLS]"), ("</s>", "[SEP]")))  # fmt: skip
    return torch.tensor([[start, *cut.encode(text, add_special_tokens=False).ids, end]])


@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_probabilities_of_labels_are_equal(family: str, tmp_path: Path) -> None:
    model = foreign(tmp_path, family, "ForSequenceClassification")
    for text, made in zip(TEXTS, transduce.load(tmp_path).predict(TEXTS), strict=True):
        theirs_C = model(read(tmp_path, text)).logits[0].softmax(-1)
        ours_C = torch.tensor([made.probabilities[f"LABEL_{each}"] for each in range(LABELS)])
        torch.testing.assert_close(ours_C, theirs_C, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_vectors_and_attention_are_equal(family: str, tmp_path: Path) -> None:
    model = foreign(tmp_path, family, "Model")
    model.set_attn_implementation("eager")
    for text, made in zip(TEXTS, transduce.load(tmp_path).predict(TEXTS), strict=True):
        theirs = model(read(tmp_path, text), output_attentions=True)
        mean_H = theirs.last_hidden_state[0].mean(0)
        torch.testing.assert_close(torch.tensor(made.vector), mean_H / mean_H.norm(), rtol=1e-5, atol=1e-6)
        for layer, weights_1HTS in zip(made.attention().layers, theirs.attentions, strict=True):
            torch.testing.assert_close(layer.weights, weights_1HTS[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_scores_of_spans_are_equal(family: str, tmp_path: Path) -> None:
    """Those of the text; the first token of the row, which says that there is no answer, stands behind them here."""
    model = foreign(tmp_path, family, "ForQuestionAnswering")
    pipeline = transduce.load(tmp_path)
    column = pipeline.task.columns["source"]
    [row], ids = column.encode([PAIR]), pair_ids(tmp_path, family)
    passage = column.collate([np.asarray(row, np.int32)])
    whole_BN = passage.as_read(passage.question.values, passage.context.values)
    assert whole_BN[0].tolist() == ids
    types = {"token_type_ids": torch.tensor([types_of(ids, passage)])} if family.startswith(("bert", "elec")) else {}
    theirs = model(torch.tensor([ids]), **types)
    asked = int(passage.question.lengths[0])
    for ours_1S, theirs_1N in zip(pipeline.model.point(passage), (theirs.start_logits, theirs.end_logits), strict=True):
        wanted_S = torch.cat((theirs_1N[0, asked:-1], theirs_1N[0, :1]))
        torch.testing.assert_close(ours_1S[0], wanted_S, rtol=1e-5, atol=1e-5)
    made = pipeline.predict([PAIR])[0]
    assert made.text in PAIR.split("\t")[1]
    assert [token.text for token in made.attention().source.tokens] == column.tokens(ids)


def pair_ids(folder: Path, family: str) -> list[int]:
    """Both texts of `PAIR` as a model of transformers reads them."""
    one, other = (read(folder, text)[0].tolist() for text in PAIR.split("\t"))
    twice = FAMILIES[family][1].get("pad_token_id") == 1
    return [*one, *([one[-1]] if twice else []), *other[1:]]


def types_of(ids: list[int], passage: Any) -> list[int]:
    asked = int(passage.question.lengths[0])
    return [0] * asked + [1] * (len(ids) - asked)


@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_labels_of_words_are_equal(family: str, tmp_path: Path) -> None:
    """Each word has those of its first piece."""
    model = foreign(tmp_path, family, "ForTokenClassification")
    pipeline = transduce.load(tmp_path)
    column = pipeline.task.columns["source"]
    for text in TEXTS:
        inputs = column.collate([np.asarray(*column.encode([text]), np.int32)])
        assert torch.equal(inputs.pieces.values, read(tmp_path, text))
        theirs_NC = model(inputs.pieces.values).logits[0, inputs.firsts.values[0]]
        torch.testing.assert_close(pipeline.model.classify(inputs)[0], theirs_NC, rtol=1e-5, atol=1e-5)
        said = pipeline.predict([text])[0].text.split(" ")
        assert said == [f"LABEL_{each}" for each in theirs_NC.argmax(1).tolist()]


def test_labels_keep_to_their_scheme_but_where_spans_begin_inside() -> None:
    assert _scheme(("O", "B-PER", "I-PER", "B-LOC")) == "bio"
    assert _scheme(("O", "B-PER", "I-PER", "I-LOC")) == "none"
    assert _scheme(("NOUN", "VERB")) == "none"


@pytest.mark.parametrize("family", FAMILIES)
@torch.inference_mode()
def test_hidden_words_are_predicted_alike(family: str, tmp_path: Path) -> None:
    model = foreign(tmp_path, family, "ForMaskedLM")
    pipeline = transduce.load(tmp_path)
    column = pipeline.task.columns["source"]
    if "gelu_new" in family:
        assert pipeline.recipe.task.kind == "text_encoding"  # its head has another activation than ours
        return
    (mask,) = column.tokenizer.tokens([column.tokenizer.mask])
    names = column.tokenizer.tokens(range(column.tokenizer.size))
    unused = [index for index, name in enumerate(names) if name.startswith("<unused")]  # rows that no token has
    for text in TEXTS:
        words = text.split(" ")
        words[1] = mask
        made, ids = pipeline.predict([" ".join(words)])[0], read(tmp_path, text)
        place = 1 + len(read(tmp_path, words[0])[0]) - 2
        assert len(read(tmp_path, text.split(" ")[1])[0]) == 3  # one piece
        ids[0, place] = column.tokenizer.mask
        theirs_V = model(ids).logits[0, place]
        theirs_V[[*column.tokenizer.special.values(), *unused]] = -torch.inf
        best = theirs_V.log_softmax(-1).topk(len(made.alternatives))
        ours = torch.tensor([each.log_probability for each in made.alternatives])
        torch.testing.assert_close(ours, best.values, rtol=1e-5, atol=1e-5)
        assert [column.ids(each.tokens)[0] for each in made.alternatives] == best.indices.tolist()


def test_a_piece_that_goes_on_with_a_word_stands_behind_it(tmp_path: Path) -> None:
    pieces = [*OF_BERT, "a", "film", "##s", ","]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")
    reads = MaskedText(of_wordpieces((tmp_path / "vocab.txt").read_text(), {}, len(pieces)), ends=True)
    predictor = MaskedWordPredictor({"source": reads})
    ids = dict(zip(pieces, range(len(pieces)), strict=True))
    assert predictor._filled_in("A film [MASK] !", [ids["##s"]]) == "A films !"
    assert predictor._filled_in("[MASK] Film", [ids["a"]]) == "a Film"
    assert {*predictor._unwritten} == {ids[each] for each in OF_BERT}


def test_a_head_that_is_not_read_is_told(tmp_path: Path) -> None:
    foreign(tmp_path, "bert, gelu_new", "ForMaskedLM")
    imported = read_foreign(tmp_path, Languages(), "bert")
    assert imported.notes == ("left out: cls, which this model does not need.",)


@pytest.mark.parametrize("family", ["bert", "roberta"])
@torch.inference_mode()
def test_pairs_are_read_with_types_of_tokens(family: str, tmp_path: Path) -> None:
    """A classifier of pairs that starts from the encoder reads them as transformers does."""
    model = foreign(tmp_path, family, "Model")
    pipeline = transduce.load(tmp_path)
    column = pipeline.task.columns["source"]
    pairs = TextPair(column.tokenizer, ends=True, before=column.before, between=column.between)
    [row] = pairs.encode([PAIR])
    ids_BS = torch.tensor([pairs.closed(row)])
    first, second = PAIR.split("\t")
    one, other = read(tmp_path, first)[0].tolist(), read(tmp_path, second)[0].tolist()
    bare = family == "bert"
    assert ids_BS[0].tolist() == [*one, *(other[1:] if bare else [one[-1], *other[1:]])]
    types_BS = torch.tensor([[0] * len(one) + [1] * (len(other) - 1)]) if bare else torch.zeros_like(ids_BS)
    theirs_BSH = model(ids_BS, token_type_ids=types_BS).last_hidden_state
    reader = TextEncoder(pipeline.recipe.model, pairs.spec)
    reader.load_state_dict(pipeline.model.state_dict())
    ours_BSH = reader.eval().encode(Padded(ids_BS, torch.tensor([ids_BS.shape[1]]))).values
    torch.testing.assert_close(ours_BSH, theirs_BSH, rtol=1e-5, atol=2e-6)


def test_a_vocabulary_alone_cuts_texts_as_transformers_does(tmp_path: Path) -> None:
    pieces = [*OF_BERT, "na", "##ive", "naive", "caf", "##e", ",", "!", "中", "文", "a", "##b", "b", "[", "mask", "]"]
    (tmp_path / "vocab.txt").write_text("\n".join(pieces) + "\n")
    texts = ["naïve café, 中文!", "AB ab", "[MASK] a", "  a\tb \u200b b", "…", "cafes"]
    for lowercase in (True, False):
        settings = {"do_lower_case": lowercase, "strip_accents": None, "tokenize_chinese_chars": True}
        theirs = transformers.BertTokenizer(str(tmp_path / "vocab.txt"), do_lower_case=lowercase)
        ours = of_wordpieces((tmp_path / "vocab.txt").read_text(), settings, len(pieces))
        plain = [text for text in texts if "[MASK]" not in text]  # text is text here, and never a special token
        wanted = [theirs.encode(text, add_special_tokens=False) for text in plain]
        assert ours.encode(plain) == wanted


def test_a_folder_is_converted_once_and_again_when_it_changes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    foreign(tmp_path, "bert", "Model")
    before = transduce.load(tmp_path).predict(TEXTS)
    assert "converted from Hugging Face bert" in capsys.readouterr().err
    assert [each.vector for each in transduce.load(tmp_path).predict(TEXTS)] == [each.vector for each in before]
    assert "converted" not in capsys.readouterr().err
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text('{"pooling_mode_cls_token": true}')
    assert transduce.load(tmp_path).predict(TEXTS)[0].vector != before[0].vector


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("position_embedding_type", "relative_key", "expected 'absolute'; got 'relative_key'"),
        ("is_decoder", True, "expected False; got True"),
        ("hidden_act", "mish", 'hidden_act: expected one of relu, .*; got "mish"'),
        ("problem_type", "regression", "expected \"single_label_classification\"; got 'regression'"),
        ("architectures", 5, "architectures: expected a list; got 5"),
        ("id2label", ["a"], "id2label: expected a table; got"),
        ("id2label", {"0": "a", "1": "a", "2": ""}, 'id2label: expected two labels or more, all .* "a", "a", ""'),
        ("auto_map", {"AutoModel": "modeling.Model"}, "auto_map: code of its own cannot be converted"),
        ("num_hidden_layers", 10**9, "num_hidden_layers = 1000000000, but there are"),
        ("hidden_size", 10**6, "embeddings_project.weight. is missing"),
        ("model_type", "deberta", 'model_type = "deberta" cannot be converted'),
    ],
)
def test_other_settings_are_refused(key: str, value: Any, message: str, tmp_path: Path) -> None:
    foreign(tmp_path, "bert", "ForSequenceClassification")
    file = tmp_path / "config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {key: value}))
    with pytest.raises(InputError, match=message):
        read_foreign(tmp_path, Languages(), "bert")


def test_more_weights_than_the_memory_holds_are_refused_before_they_are_read(tmp_path: Path) -> None:
    foreign(tmp_path, "bert", "Model")
    size = 10**12  # bytes of a file without blocks
    header = json.dumps({"x": {"dtype": "F32", "shape": [size // 4], "data_offsets": [0, size]}}).encode()
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + size)
    config = json.loads((tmp_path / "config.json").read_text()) | {"num_hidden_layers": 1}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(InputError, match=r"250\.0 billion weights need 1000 GB in fp32"):
        read_foreign(tmp_path, Languages(), "bert")


@pytest.mark.parametrize("content", ["[1]", "{", '{"pooling_mode_weightedmean_tokens": true}'])
def test_a_pooling_that_is_not_known_is_refused(content: str, tmp_path: Path) -> None:
    foreign(tmp_path, "bert", "Model")
    (tmp_path / "1_Pooling").mkdir()
    (tmp_path / "1_Pooling" / "config.json").write_text(content)
    with pytest.raises(InputError, match=r"1_Pooling/config.json: (expected|not JSON)"):
        read_foreign(tmp_path, Languages(), "bert")


def test_a_folder_of_ctranslate2_is_named_as_one(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    name = b"TransformerSpec\0"
    (tmp_path / "model.bin").write_bytes((6).to_bytes(4, "little") + len(name).to_bytes(2, "little") + name + bytes(40))
    with pytest.raises(InputError, match=r"a model of CTranslate2 \(TransformerSpec\)"):
        read_foreign(tmp_path, Languages(), "whisper")


@pytest.mark.parametrize(
    "head", ["ForSequenceClassification", "Model", "ForTokenClassification", "ForQuestionAnswering"]
)
def test_convert_compares_with_transformers(head: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder := tmp_path / "theirs").mkdir()
    foreign(folder, "bert", head)
    for_transformers(folder)
    texts = [PAIR, "bad plot\ta film with no end"] if head == "ForQuestionAnswering" else TEXTS
    (lines := tmp_path / "lines.txt").write_text("".join(f"{text}\n" for text in texts))
    convert(folder, tmp_path / "ours.safetensors", check=lines)
    told, count = capsys.readouterr().err, len(texts)
    assert f"transformers and Transduce on {count} lines" in told and "largest difference of" in told
    assert f"equal tokens     {count} of {count}" in told
    assert (f"equal labels     {count} of {count}" in told) == (head != "Model")


def test_convert_tells_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder whose weights change after it was read, and lines that both cut in different ways."""
    (folder := tmp_path / "theirs").mkdir()
    foreign(folder, "bert", "ForSequenceClassification")
    for_transformers(folder)
    read_ = read_foreign(folder, Languages(), "bert")
    save_model_file(tmp_path / "ours.safetensors", read_.file)
    foreign(folder, "bert", "ForSequenceClassification", seed=1)
    for_transformers(folder)
    found = compare_encoder(transduce.load(tmp_path / "ours.safetensors"), folder, Text("lines", [*TEXTS, ""]))
    assert (found.lines, found.left_out, found.tokens) == (len(TEXTS), 1, len(TEXTS))
    assert not found.holds and found.difference > CLOSE


def for_transformers(folder: Path) -> None:
    """What its own tokenizer needs to put the special tokens around a text."""
    from tokenizers import Tokenizer, processors

    special = dict(zip(("pad_token", "cls_token", "sep_token", "unk_token", "mask_token"), OF_BERT, strict=True))
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    table = {"tokenizer_class": "PreTrainedTokenizerFast", "model_input_names": inputs, **special}
    (folder / "tokenizer_config.json").write_text(json.dumps(table))
    cut = Tokenizer.from_file(str(folder / "tokenizer.json"))
    cut.post_processor = processors.BertProcessing(("[SEP]", 2), ("[CLS]", 1))
    cut.save(str(folder / "tokenizer.json"))


def test_a_folder_is_served_and_explored(tmp_path: Path) -> None:
    """Where a model is named, the folder itself stands; the page in one file shows the encoder's attention."""
    (folder := tmp_path / "theirs").mkdir()
    foreign(folder, "bert", "Model")
    with serving([folder]) as server:
        [made] = server.post("/v1/predict", texts=TEXTS[:1]).json()["predictions"]
    [alone] = transduce.load(folder).predict(TEXTS[:1])
    assert made["vector"] == pytest.approx(list(alone.vector), abs=1e-6)
    page = tmp_path / "page.html"
    command(tmp_path, "explore", folder, "--file", page, "--text", TEXTS[0])
    assert '"encoder"' in page.read_text() and "[CLS]" in page.read_text()
    assert (
        json.loads(command(tmp_path, "predict", folder, "--text", TEXTS[0], "--json").out)["vector"] == made["vector"]
    )
