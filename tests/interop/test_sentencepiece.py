"""Tokenizers as files of SentencePiece, read by its own library: the same pieces, ids and texts."""

import random
from pathlib import Path
from typing import Any

import pytest

from foreign_models import LINES, train_spm
from random_models import sentences
from transduce.core.errors import InputError
from transduce.data.tags import with_tags
from transduce.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer
from transduce.interop.import_tokenizer import of_sentencepiece
from transduce.interop.sentencepiece import _varint, read_sentencepiece, sentencepiece_model

sentencepiece = pytest.importorskip("sentencepiece")

PUNCTUATED = [
    *sentences(50, seed=4),
    '"ba" be (bi) bo.',
    "(ba) be",
    "ba, be! bi?",
    "never seen: 世界 ☃☃ x",
    "ba-be 3.14% #bi @bo",
    "",
]


def random_words(count: int, seed: int) -> list[str]:
    """Of few letters, which can be cut into pieces in many ways."""
    drawn = random.Random(seed)
    words = ["".join(drawn.choices("abcde", [5, 4, 3, 2, 1], k=drawn.randrange(2, 8))) for _ in range(4 * count)]
    return [" ".join(words[4 * place : 4 * place + 4]) for place in range(count)]


def read(tokenizer: Tokenizer, size: int | None = None) -> Any:
    return sentencepiece.SentencePieceProcessor(model_proto=sentencepiece_model(tokenizer, size))


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_sentencepiece_gives_the_same_ids(kind: Any) -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind=kind, vocabulary=90), sentences(300, 9) + ['ba, "be" (bi).'] * 3)
    theirs = read(tokenizer)
    assert (theirs.pad_id(), theirs.bos_id(), theirs.eos_id(), theirs.unk_id()) == (0, 1, 2, 3)
    assert [theirs.id_to_piece(index) for index in range(tokenizer.size)] == tokenizer.tokens(range(tokenizer.size))
    for line, ids in zip(PUNCTUATED, tokenizer.encode(PUNCTUATED), strict=True):
        assert without_repeats(theirs.encode(line), 3) == without_repeats(ids, 3), line
        if tokenizer.unknown not in ids:
            assert theirs.encode(line) == ids
            assert theirs.decode(ids) == line


def without_repeats(ids: list[int], unknown: int) -> list[int]:
    """SentencePiece makes one unknown of several; ours does so within a word alone."""
    return [each for place, each in enumerate(ids) if each != unknown or place == 0 or ids[place - 1] != unknown]


@pytest.mark.parametrize("size", [60, 150])
@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_of_many_ways_to_cut_a_word_both_choose_the_same(kind: Any, size: int) -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind=kind, vocabulary=size), random_words(300, 1))
    lines = random_words(100, 2)
    assert read(tokenizer).encode(lines) == tokenizer.encode(lines)


@pytest.mark.parametrize("bytewise", [False, True])
@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_model_of_sentencepiece_comes_back_as_it_was(kind: str, bytewise: bool, tmp_path: Path) -> None:
    """With its table of characters, its scores, its bytes and its tags."""
    learnt_from = [*LINES, *random_words(200, 1)]
    settings = {"byte_fallback": bytewise, "pad_id": 3, "user_defined_symbols": ">>fr<<"}
    path = train_spm(tmp_path / "theirs.spm", learnt_from, 400, kind, **settings)
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(path))
    ids = {theirs.id_to_piece(index): index for index in range(theirs.get_piece_size())}
    ours = of_sentencepiece(read_sentencepiece(path), ids, ["<unk>", "<s>", "</s>", "<pad>"]).tokenizer
    again = read(ours)
    lines = [*random_words(50, 3), *LINES[:50], ">>fr<< ba", "ﬁne  ½ Ａ", " ba  be ", "☃ ba 世界"]
    assert again.encode(lines) == theirs.encode(lines)
    assert again.decode(theirs.encode(lines)) == theirs.decode(theirs.encode(lines))
    told = ("is_unknown", "is_control", "is_byte", "is_unused")
    for index in range(theirs.get_piece_size()):
        assert [getattr(again, each)(index) for each in told] == [getattr(theirs, each)(index) for each in told]


@pytest.mark.parametrize(("kind", "number"), [("unigram", 1), ("bpe", 2)])
def test_every_field_is_where_its_format_has_it(kind: Any, number: int) -> None:
    """As read by the protocol buffers that SentencePiece's library brings."""
    formats = pytest.importorskip("sentencepiece.sentencepiece_model_pb2")
    tokenizer = train_tokenizer(TokenizerConfig(kind=kind, vocabulary=90), random_words(300, 1))
    model = formats.ModelProto.FromString(sentencepiece_model(tokenizer))
    assert [each.piece for each in model.pieces] == tokenizer.tokens(range(tokenizer.size))
    told = model.trainer_spec
    assert (told.model_type, told.byte_fallback) == (number, False)
    assert (told.pad_id, told.bos_id, told.eos_id, told.unk_id) == (0, 1, 2, 3)
    assert [told.pad_piece, told.bos_piece, told.eos_piece, told.unk_piece] == tokenizer.tokens(range(4))
    told = model.normalizer_spec
    assert (told.name, told.precompiled_charsmap) == ("identity", b"")
    assert told.add_dummy_prefix
    assert told.remove_extra_whitespaces
    assert told.escape_whitespaces


def test_numbers_are_written_seven_bits_a_byte() -> None:
    for value in (0, 1, 126, 127, 128, 129, 255, 256, 2**14 - 1, 2**14, 10**9):
        written = _varint(value)
        assert sum((byte & 127) << (7 * place) for place, byte in enumerate(written)) == value
        assert [byte > 127 for byte in written] == [True] * (len(written) - 1) + [False]


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_pieces_that_only_begin_a_text_are_unused(kind: Any) -> None:
    """A space with the punctuation behind it: inside a text ours cuts between them."""
    inside = ["ba (bi) bo", "be, “bo” ba", "bo +ba, (bi)", "ba €bi 3"]
    lines = [*inside, "(ba) be", "“bi” bo", "+be bi", "€be bi", "3 be"] * 20
    tokenizer = train_tokenizer(TokenizerConfig(kind=kind, vocabulary=80), lines)
    theirs, tokens = read(tokenizer), tokenizer.tokens(range(tokenizer.size))
    assert {name for index, name in enumerate(tokens) if theirs.is_unused(index)} == {"▁(", "▁“", "▁+"}
    assert theirs.encode(inside) == tokenizer.encode(inside)


def test_tags_are_cut_by_nothing() -> None:
    learnt = train_tokenizer(TokenizerConfig(kind="unigram", vocabulary=90), sentences(300, 9))
    assert ">>fr<<" in read(with_tags(learnt, [">>fr<<"])).encode(">>fr<< ba", out_type=str)


def test_a_smaller_vocabulary_is_its_first_pieces() -> None:
    learnt = train_tokenizer(TokenizerConfig(kind="unigram", vocabulary=90), sentences(300, 9))
    tokenizer = with_tags(learnt, [">>fr<<"])
    assert read(tokenizer).get_piece_size() == tokenizer.size
    assert read(tokenizer, learnt.size).get_piece_size() == learnt.size


def test_lower_casing_is_refused() -> None:
    learnt = train_tokenizer(TokenizerConfig(kind="unigram", vocabulary=90, lowercase=True), sentences(300, 9))
    with pytest.raises(InputError, match="lower-casing"):
        sentencepiece_model(learnt)


@pytest.mark.parametrize("kind", ["whitespace", "character", "byte"])
def test_other_kinds_are_refused(kind: Any) -> None:
    learnt = train_tokenizer(TokenizerConfig(kind=kind, vocabulary=300), sentences(300, 9))
    with pytest.raises(InputError, match="SentencePiece has no tokenizer of this kind"):
        sentencepiece_model(learnt)
