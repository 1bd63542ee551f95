"""Tokenizers: nothing is lost, nothing is left to chance, no text can spell a special token."""

import hashlib
import json
import os
import random
import subprocess
import sys
import unicodedata
from functools import cache
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tokenizers import Tokenizer as Inner
from tokenizers import decoders, models, pre_tokenizers, trainers

from transduce.core.errors import InputError
from transduce.data.columns.packed import pack, unpack
from transduce.data.columns.tokens import Tokens
from transduce.data.files import read_lines
from transduce.data.tokenizers.text_ids import SPECIAL
from transduce.data.tokenizers.tokenizer import (
    LONGEST_WORD,
    Tokenizer,
    TokenizerConfig,
    train_tokenizer,
    without_endless_words,
)

DATA = Path(os.environ.get("TRANSDUCE_DATA", Path(__file__).parents[2] / "../shared/data"))
KINDS = ["bpe", "unigram", "byte", "character", "whitespace"]
TEXTS = [
    "The dog didn't see the cat, did it?",
    "A dog and a cat sat on the mat (again).",
    "Der große Hund läuft über die Straße.",
    "Ein Mädchen ißt Äpfel; zwei Männer grüßen.",
    "L'animal n'est pas là, c'est l'été à Besançon.",
    "Où est le cœur de l'œuvre ?",
    "你好，世界。我喜欢学习中文！",
    "他们在学习，世界很大。",
] * 3
ALPHABET = sorted(set("".join(TEXTS)) - {" "})
WORDS = st.text(st.sampled_from(ALPHABET), min_size=1, max_size=8)


@cache
def trained(kind: str, **changes: object) -> Tokenizer:
    return train_tokenizer(TokenizerConfig(kind=kind, vocabulary=400, **changes), TEXTS)


def there_and_back(kind: str, text: str) -> str:
    tokenizer = trained(kind)
    return tokenizer.decode(tokenizer.encode([text])[0])


@pytest.mark.parametrize("kind", ["bpe", "unigram", "byte", "character"])
@given(words=st.lists(WORDS, max_size=6))
@settings(max_examples=60, deadline=None)
def test_single_spaced_text_comes_back(kind: str, words: list[str]) -> None:
    text = " ".join(words)
    assert there_and_back(kind, text) == text


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@given(words=st.lists(st.one_of(WORDS, st.sampled_from(["", " "])), max_size=6))
@settings(max_examples=60, deadline=None)
def test_runs_of_spaces_survive_inside_and_not_at_the_ends(kind: str, words: list[str]) -> None:
    text = " ".join(words)
    assert there_and_back(kind, text) == text.strip(" ")
    assert trained(kind).encode([text]) == trained(kind).encode([text.strip(" ")])


@given(text=st.text())
@settings(max_examples=100, deadline=None)
def test_bytes_give_back_any_text(text: str) -> None:
    tokenizer = trained("byte")
    (ids,) = tokenizer.encode([text])
    assert tokenizer.decode(ids) == text
    assert ids == [byte + 4 for byte in text.encode()]


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character", "whitespace"])
@given(text=st.text("ad \r\0\t\x85\u2028\u2029\x0b"))
@settings(max_examples=60, deadline=None)
def test_control_characters_read_as_spaces(kind: str, text: str) -> None:
    cleaned = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text)
    tokenizer = trained(kind)
    (ids,) = tokenizer.encode([text])
    assert [ids] == tokenizer.encode([cleaned])
    assert len(tokenizer.decode(ids).splitlines()) <= 1


def test_a_newline_is_a_character_and_only_to_characters() -> None:
    assert there_and_back("character", "a\nd") == "a\nd"
    assert there_and_back("bpe", "a\nd") == "a d"


@pytest.mark.parametrize("kind", KINDS)
def test_texts_cannot_spell_special_tokens(kind: str) -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind=kind, vocabulary=400, min_frequency=1), [*TEXTS, "<pad> <s> </s>"])
    assert (tokenizer.pad, tokenizer.start, tokenizer.end, tokenizer.unknown) == (0, 1, 2, 3)
    for ids in tokenizer.encode(["<pad> <s> </s> <unk>", "a</s>", "</s>", "<s>", "<pad>"]):
        assert not {0, 1, 2} & set(ids)
        assert ids


def test_treebank_unknown_is_the_unknown_word() -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="whitespace", min_frequency=1), ["no <unk> it was n't", "N <unk>"])
    assert tokenizer.size == 4 + 5
    assert tokenizer.encode(["it  <unk> was", "it never was"]) == [tokenizer.encode(["it <unk> was"])[0]] * 2
    assert tokenizer.decode(tokenizer.encode(["it <unk> was"])[0]) == "it <unk> was"
    assert tokenizer.tokens([0, 1, 2, 3]) == list(SPECIAL)


@pytest.mark.parametrize("kind", KINDS)
def test_decoding_skips_pad_start_and_end(kind: str) -> None:
    tokenizer = trained(kind)
    (ids,) = tokenizer.encode(["the dog"])
    assert tokenizer.decode([1, *ids, 2, 0, 0]) == tokenizer.decode(ids)


@pytest.mark.parametrize("kind", KINDS)
def test_json_round_trip_is_exact(kind: str) -> None:
    tokenizer = trained(kind)
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.to_json() == tokenizer.to_json()
    assert again.encode([*TEXTS, "</s> x"]) == tokenizer.encode([*TEXTS, "</s> x"])
    assert again.size == tokenizer.size


@pytest.mark.parametrize("kind", ["character", "bpe", "whitespace"])
def test_symbols_are_one_token_each_and_what_is_no_symbol_is_spelt(kind: str) -> None:
    texts = ["laufen | V;IND;PST", "Lauf | N;DAT;SG", "Laufe | N;NOM;SG"] * 2
    tokenizer = train_tokenizer(TokenizerConfig(kind=kind, vocabulary=60, symbols=" [|] [^;]+|;[^;]+"), texts)
    again = Tokenizer.from_json(tokenizer.to_json())
    known, unseen = again.encode(["Lauf | N;DAT;SG", "Lauf | NN;XY"])
    assert again.tokens(known)[-3:] == [" | N", ";DAT", ";SG"]
    assert ";XY" not in again.tokens(unseen)
    if kind == "character":
        assert again.tokens(known)[:-3] == list("Lauf")
        assert again.tokens(unseen)[4:] == [" | N", "N", ";", "<unk>", "<unk>"]
        assert again.decode(known) == "Lauf | N;DAT;SG"
    assert tokenizer.size == train_tokenizer(TokenizerConfig(kind=kind, vocabulary=60), texts).size + 7


def test_rare_symbols_are_spelt() -> None:
    config = TokenizerConfig(kind="character", vocabulary=60, min_frequency=2, symbols="<[a-z]>")
    assert train_tokenizer(config, ["<a>x<b>", "<a>y"]).added == ["<a>"]


def test_a_pattern_of_symbols_that_is_none_is_refused() -> None:
    with pytest.raises(ValidationError, match="expected a regular expression; missing"):
        TokenizerConfig(symbols="(a")


def test_lowercase() -> None:
    tokenizer = trained("bpe", lowercase=True)
    assert tokenizer.decode(tokenizer.encode(["Der HUND"])[0]) == "der hund"


def test_composed_and_decomposed_letters_are_one() -> None:
    for kind in ("bpe", "unigram", "character", "whitespace"):
        composed, decomposed = trained(kind).encode(["läuft", "la\u0308uft"])
        assert composed == decomposed


@pytest.mark.parametrize("kind", ["bpe", "unigram", "character", "whitespace"])
def test_letters_of_korean_syllables_stand_apart_and_are_composed_again(kind: str) -> None:
    texts = ["한국어 한글", "글 국 어한"] * 3
    tokenizer = train_tokenizer(TokenizerConfig(kind=kind, vocabulary=60, min_frequency=1, normalization="NFD"), texts)
    again = Tokenizer.from_json(tokenizer.to_json())
    if kind == "character":
        assert tokenizer.tokens(tokenizer.encode(["한글"])[0]) == list("\u1112\u1161\u11ab\u1100\u1173\u11af")
        assert tokenizer.decode(tokenizer.encode(["간"])[0]) == "간"  # never seen as a syllable
    for each in (tokenizer, again):
        assert [each.decode(ids) for ids in each.encode(texts)] == texts
        with pytest.raises(InputError, match="NFD"):
            each.spellings()


@pytest.mark.parametrize("kind", KINDS)
def test_offsets_point_into_the_text(kind: str) -> None:
    tokenizer, text = trained(kind), "Der Hund, l'animal 世界"
    offsets = tokenizer.offsets(text)
    assert len(offsets) == len(tokenizer.encode([text])[0])
    assert all(0 <= first < last <= len(text) for first, last in offsets)
    covered = {place for first, last in offsets for place in range(first, last)}
    assert {place for place, c in enumerate(text) if c != " "} <= covered
    if kind == "whitespace":
        assert [text[a:b] for a, b in offsets] == text.split()


def test_frequent_units_come_first_and_rare_ones_are_not_learnt() -> None:
    texts = ["b b b a a c", "a a d d"]
    tokenizer = train_tokenizer(TokenizerConfig(kind="whitespace", vocabulary=6), texts)
    assert tokenizer.tokens(range(tokenizer.size)) == [*SPECIAL, "a", "b"]
    tokenizer = train_tokenizer(TokenizerConfig(kind="whitespace"), texts)
    assert tokenizer.tokens(range(4, tokenizer.size)) == ["a", "b", "d"]


TRAIN = """
import sys
from transduce.data.columns.packed import pack, unpack
from transduce.data.columns.tokens import Tokens
from transduce.data.files import read_lines
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer
texts = open(sys.argv[2], encoding="utf-8", newline="\\n").read().split("\\n")
sys.stdout.write(train_tokenizer(TokenizerConfig(kind=sys.argv[1], vocabulary=1000), texts).to_json())
"""


@pytest.mark.parametrize("kind", ["bpe", "unigram"])  # the others learn by counting, in Python
def test_training_gives_the_same_bytes_whatever_threads_and_hash_seeds(kind: str, tmp_path: Path) -> None:
    path = DATA / "multi30k/raw/train.de.gz"
    if not path.exists():
        pytest.skip(f"no {path}")
    text = tmp_path / "text"
    text.write_text("\n".join(islice(read_lines(path), 1500)), encoding="utf-8")
    found = set()
    for threads, seed in (("1", "1"), ("3", "2")):
        environment = {**os.environ, "RAYON_NUM_THREADS": threads, "PYTHONHASHSEED": seed}
        made = subprocess.run(
            [sys.executable, "-c", TRAIN, kind, str(text)], env=environment, capture_output=True, check=True
        )
        found.add(hashlib.sha256(made.stdout).hexdigest())
    assert len(found) == 1


def foreign(path: Path, vocabulary: list[str]) -> Path:
    model = models.WordLevel({word: index for index, word in enumerate(vocabulary)}, unk_token="[UNK]")
    Inner(model).save(str(path))
    return path


def test_foreign_tokenizer_keeps_its_ids(tmp_path: Path) -> None:
    path = foreign(tmp_path / "tokenizer.json", ["a", "[UNK]", "[SEP]", "[CLS]", "[PAD]"])
    tokenizer = train_tokenizer(TokenizerConfig(file="tokenizer.json"), [], root=tmp_path)
    assert (tokenizer.pad, tokenizer.start, tokenizer.end, tokenizer.unknown) == (4, 3, 2, 1)
    assert tokenizer.encode(["a", "[SEP]", "b"]) == [[0], [1], [1]]
    assert path.exists()


def test_a_foreign_tokenizer_without_an_end_token_is_refused(tmp_path: Path) -> None:
    foreign(tmp_path / "t.json", ["a", "[UNK]", "[PAD]"])
    with pytest.raises(InputError) as caught:
        train_tokenizer(TokenizerConfig(file="t.json"), [], root=tmp_path)
    [problem] = caught.value.problems
    assert "no end token" in problem and "t.json" in problem


SCRIPTS = [
    "hello world",
    "Grüße, Ελλάδα",
    "Привет мир",
    "שלום",
    "مرحبا",
    "नमस्ते",
    "สวัสดี",
    "안녕",
    "こんにちは",
    "你好",
    "😀",
]


def byte_level(special: list[str]) -> Inner:
    """As the tokenizers of GPT-2, Llama, Qwen, Gemma and RoBERTa: BPE over bytes with these special tokens."""
    inner = Inner(models.BPE())
    inner.pre_tokenizer, inner.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=special, initial_alphabet=alphabet)
    inner.train_from_iterator(["hello world"] * 9, trainer)
    return inner


@pytest.mark.parametrize(
    ("special", "found"),
    [
        (["<|endoftext|>"], (-1, 0, 0, -1, -1)),
        (["<|begin_of_text|>", "<|end_of_text|>"], (-1, 0, 1, -1, -1)),
        (["<|endoftext|>", "<|im_start|>", "<|im_end|>"], (-1, 0, 0, -1, -1)),
        (["<pad>", "<eos>", "<bos>", "<unk>"], (0, 2, 1, 3, -1)),
        (["<unk>", "<s>", "</s>"], (-1, 1, 2, 0, -1)),
        (["<s>", "<pad>", "</s>", "<unk>", "<mask>"], (1, 0, 2, 3, 4)),
        (["<|endoftext|>", "<|startoftranscript|>"], (-1, 1, 0, -1, -1)),
    ],
)
def test_roles_of_special_tokens_may_be_absent(special: list[str], found: tuple[int, ...]) -> None:
    """Padding, start, end, unknown, mask; texts are cut as the library cuts them, whatever they spell."""
    inner = byte_level(special)
    tokenizer = Tokenizer.from_json(inner.to_str())
    assert (tokenizer.pad, tokenizer.start, tokenizer.end, tokenizer.unknown, tokenizer.mask) == found
    plain = Inner.from_str(inner.to_str())
    plain.encode_special_tokens = True
    for text in (*SCRIPTS, *special, "hello <s> world</s>"):
        (ids,) = tokenizer.encode([text])
        assert ids == plain.encode(text, add_special_tokens=False).ids
        assert set(ids).isdisjoint(range(len(special))) and tokenizer.decode(ids) == text


def test_a_whole_special_token_without_an_unknown_one_is_spelled() -> None:
    """Where whole words are looked up, the name of a special token would otherwise be that token."""
    words = models.WordLevel({"</s>": 0, "<": 1, "/": 2, "s": 3, ">": 4, "a": 5}, unk_token="<")
    inner = Inner(words)
    inner.pre_tokenizer = pre_tokenizers.Split(" ", "removed")
    assert Tokenizer(inner).encode(["a </s>"]) == [[5, 1, 2, 3, 4]]
    assert Tokenizer(inner).encode_words(["a </s>"]) == [[[5], [1, 2, 3, 4]]]


def test_given_roles_come_before_usual_names_and_are_kept() -> None:
    plain = Tokenizer.from_json(byte_level(["<|endoftext|>", "<|im_start|>", "<|im_end|>"]).to_str())
    named = plain.with_roles({"end": "<|im_end|>", "pad": "<|endoftext|>"})
    assert (named.pad, named.start, named.end) == (0, 0, 2)
    column = Tokens(named, ends=True)
    texts, tables = pack({"target": column})
    again = unpack(texts, json.loads(json.dumps(tables)))["target"]
    assert isinstance(again, Tokens) and again.end == 2 and again.tokenizer.equals(named)
    assert not named.equals(plain) and named.with_added(["<new>"]).end == 2
    with pytest.raises(InputError, match="absent"):
        plain.with_roles({"end": "<|absent|>"})


def test_a_mask_is_added_behind_all_others_and_no_text_spells_it() -> None:
    tokenizer = train_tokenizer(TokenizerConfig(kind="bpe", vocabulary=60), ["ab abc <mask>"] * 9)
    masked = tokenizer.with_mask()
    assert (tokenizer.mask, masked.mask) == (-1, tokenizer.size) and masked.size == tokenizer.size + 1
    assert masked.with_mask() is masked
    assert masked.encode(["ab <mask>"]) == tokenizer.encode(["ab <mask>"])
    assert Tokenizer.from_json(masked.to_json()).equals(masked)
    [words] = masked.encode_words(["ab <mask> </s>"], masked=True)
    assert words[1] == [masked.mask] and words[2:] == tokenizer.encode_words(["ab </s>"])[0][1:]


@pytest.mark.parametrize("content", ["", "{}", "not json", json.dumps({"model": {"type": "BPE"}})])
def test_what_is_not_a_tokenizer_is_refused(content: str, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text(content)
    with pytest.raises(InputError, match=r"t\.json"):
        train_tokenizer(TokenizerConfig(file="t.json"), [], root=tmp_path)


def test_a_missing_file_and_missing_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.json"):
        train_tokenizer(TokenizerConfig(file="absent.json"), [], root=tmp_path)
    for kind in ("bpe", "whitespace", "unigram"):
        with pytest.raises(InputError, match="nothing to learn"):
            train_tokenizer(TokenizerConfig(kind=kind), ["", ""])


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_more_characters_than_vocabulary_is_refused(kind: str) -> None:
    with pytest.raises(InputError, match="vocabulary = 10 cannot hold the"):
        train_tokenizer(TokenizerConfig(kind=kind, vocabulary=10), TEXTS)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_pieces_are_learnt_from_the_beginning_of_an_endless_word(kind: str) -> None:
    config = TokenizerConfig.model_validate({"kind": kind, "vocabulary": 40})
    letters = random.Random(1).choices("abcdefgh", k=2 * LONGEST_WORD)
    word, spaced = "".join(letters), " ".join(letters)

    def learnt(text: str) -> str:
        return train_tokenizer(config, [f"he said {text}, and that", spaced]).to_json()

    assert learnt(word) == learnt(word[:LONGEST_WORD])
    assert learnt(word[:LONGEST_WORD]) != learnt(word[: LONGEST_WORD // 2])


def test_a_long_text_of_words_is_learnt_whole() -> None:
    text = " ".join(["so", "long,"] * LONGEST_WORD)
    assert [*without_endless_words([text, "a" * LONGEST_WORD])] == [text, "a" * LONGEST_WORD]
    assert [*without_endless_words(["a" * LONGEST_WORD + "b c"])] == ["a" * LONGEST_WORD + " c"]
