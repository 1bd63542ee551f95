"""Texts meant to hurt: runs that old patterns took the square of, half characters, what a foreign tokenizer dies of."""

import json
import re
import unicodedata
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex
from tokenizers import Tokenizer as Inner
from tokenizers.normalizers import Replace

from transduce.core.errors import InputError, TransduceError
from transduce.data.tokenizers.patterns import linear, once_a_run
from transduce.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer

TEXTS = ["Two dogs run, a man walks.", "Zwei große Hunde laufen über die Straße.", "你好，世界。"] * 3
OLD = r" +\z"  # how model files of before say "spaces at the end"
LONG = 100_000
RUNS = [
    " ",
    "\t",
    "\0",
    "\r\n",
    "\u2028",
    "\u00a0",
    "\u0301",
    "\u0327\u0301",
    "\u200b",
    "👩\u200d",
    "▁",
    ".",
    "a",
    "中",
    " a",
]
RUN = st.builds(str.__mul__, st.sampled_from([*RUNS, "x", "é", "ﬁ", "İ", "</s>"]), st.integers(0, 40))
RUNNY = st.lists(RUN, max_size=8).map("".join)


@cache
def trained(kind: str) -> Tokenizer:
    return train_tokenizer(TokenizerConfig(kind=kind, vocabulary=300), TEXTS)


def with_pattern(kind: str, wanted: str) -> str:
    """The tokenizer's file with this pattern for spaces at the end, as files of before have it."""
    table = json.loads(trained(kind).to_json())
    table["normalizer"]["normalizers"][-1]["pattern"]["Regex"] = wanted
    return json.dumps(table)


@cache
def of_before(kind: str) -> Inner:
    """The library's own, with the old pattern."""
    inner = Inner.from_str(with_pattern(kind, OLD))
    inner.encode_special_tokens = True
    return inner


def policy(text: str) -> str:
    """NFC, control characters -> space, at most one space in front, none behind: what the docs promise, in Python."""
    plain = re.sub("[\u2028\u2029]", " ", unicodedata.normalize("NFC", text))
    plain = "".join(" " if unicodedata.category(each) == "Cc" else each for each in plain)
    front = " " if plain.startswith(" ") else ""
    return (front + plain.lstrip(" ")).rstrip(" ")


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@given(text=RUNNY)
@settings(max_examples=200, deadline=None)
def test_the_ids_are_those_of_the_old_pattern(kind: str, text: str) -> None:
    old = of_before(kind).encode(text, add_special_tokens=False)
    assert trained(kind).encode([text]) == [old.ids]
    assert trained(kind).offsets(text) == old.offsets


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@given(text=RUNNY)
@settings(max_examples=100, deadline=None)
def test_the_text_policy_is_the_one_in_the_docs(kind: str, text: str) -> None:
    assert trained(kind)._inner.normalizer.normalize_str(text) == policy(text)


@pytest.mark.parametrize("pattern", [r" +\z", r" +$", r"\s+$", r"\s+\z", r"\s+\Z", "a+$", "[ab]+$", r"[^b]+\z"])
@given(text=st.text(st.sampled_from("ab \n\t"), max_size=12))
@settings(max_examples=150, deadline=None)
def test_a_pattern_that_is_tried_once_a_run_finds_the_same(pattern: str, text: str) -> None:
    assert once_a_run(pattern) != pattern
    plain, mended = (Replace(Regex(each), "#").normalize_str(text) for each in (pattern, once_a_run(pattern)))
    assert plain == mended


@pytest.mark.parametrize("pattern", [r" +\z|x", r"\A +", "ab+$", r"(a)+\z", r"\X+\z", " +", r"(?<! ) ++\z"])
def test_other_patterns_stay(pattern: str) -> None:
    assert once_a_run(pattern) == pattern


def test_a_file_of_before_reads_as_one_of_now() -> None:
    again = Tokenizer.from_json(with_pattern("bpe", OLD))
    assert again.to_json() == trained("bpe").to_json()
    assert linear(trained("bpe").to_json()) == trained("bpe").to_json()


@pytest.mark.parametrize("wanted", [OLD, r"\s+$"])
def test_a_long_run_of_anything_is_read_from_any_file(wanted: str) -> None:
    """By the patterns of before each inner run of white space took a minute."""
    tokenizer = Tokenizer.from_json(with_pattern("unigram", wanted))
    for unit in RUNS:
        (ids,) = tokenizer.encode(["x" + unit * (LONG // len(unit)) + "x"])
        assert len(ids) <= LONG + 3, unit


@pytest.mark.parametrize("kind", ["bpe", "unigram", "byte", "character", "whitespace"])
def test_half_a_character_is_said_to_be_one(kind: str) -> None:
    tokenizer = trained(kind)
    asked: list[Any] = [
        lambda: tokenizer.encode(["fine", "a\ud800"]),
        lambda: tokenizer.offsets("\udfff"),
        lambda: tokenizer.ids(["\ud800"]),
    ]
    for ask in asked:
        with pytest.raises(InputError, match="half of a character"):
            ask()
    with pytest.raises(InputError, match=r"^text 2: its character 2 is U\+D800"):
        tokenizer.encode(["fine", "a\ud800"])


def test_a_tokenizer_that_panics_is_an_error_like_others() -> None:
    table = json.loads(trained("bpe").to_json())
    table["normalizer"]["normalizers"].append(
        {"type": "Replace", "pattern": {"Regex": r"a*a*a*a*a*a*a*a*\z"}, "content": ""}
    )
    panicking = Tokenizer.from_json(json.dumps(table))
    with pytest.raises(TransduceError, match="tokenizer failed"):
        panicking.encode(["a" * 40 + "b"])
    assert panicking.encode(["b"]) == trained("bpe").encode(["b"])
