"""Tokenizers of strangers: what the library would take, and fail or never end with."""

import json
from typing import Any

import pytest

from transduce.core.errors import InputError
from transduce.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer
from transduce.data.tokenizers.tokenizer_check import pattern_problem

WORDS = {"<pad>": 0, "<s>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5, "ab": 6}
PLAIN: dict[str, Any] = {"type": "WordLevel", "vocab": WORDS, "unk_token": "<unk>"}
BPE = {"type": "BPE", "vocab": WORDS, "merges": [["a", "b"]], "unk_token": "<unk>"}


def written(**parts: Any) -> str:
    return json.dumps({"version": "1.0", "added_tokens": [], "model": PLAIN, **parts})


def replace(content: str, **pattern: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def split(regex: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def in_turn(*steps: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "normalizers": list(steps)}


BERT = {
    "type": "BertNormalizer",
    "lowercase": True,
    "strip_accents": None,
    **dict.fromkeys(("clean_text", "handle_chinese_chars"), True),
}
CTC = {"type": "CTC", "pad_token": "<pad>", "word_delimiter_token": "", "cleanup": True}
A_TEXT = {"Sequence": {"id": "A", "type_id": 0}}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"normalizer": in_turn(*[replace("aa", String="a")] * 30)}, "1.07e[+]09 times as long"),
        ({"normalizer": in_turn(*[in_turn(replace("aa", String="a"))] * 12)}, "4.1e[+]03 times as long"),
        ({"normalizer": replace("x" * 2000, String="a")}, "2e[+]03 times as long"),
        ({"normalizer": in_turn(*[replace("a", Regex="")] * 11)}, "2.05e[+]03 times as long"),
        ({"normalizer": in_turn(*[{"type": "ByteLevel"}] * 20)}, "times as long"),
        ({"normalizer": in_turn(*[{"type": "NFC"}] * 101)}, "102 steps; the limit is 100"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "////////"}}, "charsmap is damaged"),
        ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "BAAAAP////9h"}}, "it fails on a text"),
        ({"decoder": {"type": "Sequence", "decoders": [replace("aa", String="a")] * 30}}, "its decoder can make"),
        ({"decoder": {"type": "Sequence", "decoders": [CTC] * 30}}, "its decoder can make"),
        ({"pre_tokenizer": split("(a*)*b")}, 'its pre_tokenizer: the pattern "[(]a[*][)][*]b" repeats a part'),
        ({"pre_tokenizer": {"type": "FixedLength", "length": 0}}, "it fails on a text: chunk size"),
        (
            {
                "post_processor": {
                    "type": "TemplateProcessing",
                    "single": [A_TEXT] * 3,
                    "pair": [],
                    "special_tokens": {},
                }
            },
            "once",
        ),
        ({"model": {**BPE, "dropout": 0.5}}, "splits a text differently each time"),
        ({"model": {**BPE, "continuing_subword_prefix": "x" * 50}}, "cannot be read|it fails on a text"),
        ({"model": {**PLAIN, "unk_token": "none"}}, "it fails on a text"),
    ],
)
def test_what_would_never_end_or_fail_is_refused(parts: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said) as caught:
        Tokenizer.from_json(written(**parts), "tokenizer.json")
    assert str(caught.value).startswith("tokenizer.json: ")


def test_one_that_fills_the_memory_as_objects() -> None:
    with pytest.raises(InputError, match="too large"):
        Tokenizer.from_json("[" + "[]," * 3_000_000 + "[]]")


@pytest.mark.parametrize(
    "parts",
    [
        {"normalizer": in_turn({"type": "Prepend", "prepend": "▁"}, replace("▁", String=" "))},  # Llama 2
        {"normalizer": in_turn({"type": "NFKC"}, {"type": "Lowercase"}, replace(" ", Regex=r" {2,}"))},
        {"normalizer": BERT, "pre_tokenizer": {"type": "BertPreTokenizer"}},
        {"normalizer": in_turn(*[{"type": "NFC"}] * 20)},
        {"post_processor": {"type": "TemplateProcessing", "single": [A_TEXT], "pair": [], "special_tokens": {}}},
        {"model": {**BPE, "dropout": None}},
    ],
)
def test_what_is_usual_is_taken(parts: dict[str, Any]) -> None:
    assert Tokenizer.from_json(written(**parts)).size == 7


@pytest.mark.parametrize("kind", ["bpe", "unigram", "byte", "character", "whitespace"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_our_own_are_taken(kind: Any, lowercase: bool) -> None:
    config = TokenizerConfig(kind=kind, vocabulary=300, min_frequency=1, lowercase=lowercase)
    own = train_tokenizer(config, ["a b c", "it is as it is"])
    assert Tokenizer.from_json(own.to_json()).encode(["it is a"]) == own.encode(["it is a"])


GPT_2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
GPT_4 = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
    r"\s+(?!\S)|\s"
)
GPT_4O = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
    r"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)
CLIP = r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


@pytest.mark.parametrize(
    "pattern", [GPT_2, GPT_4, GPT_4O, LLAMA_3, CLIP, r"(?<! ) ++\z", r"[\p{Cc}&&[^\n]]", "(ab)+", "a{2}"]
)
def test_patterns_of_known_tokenizers_are_taken(pattern: str) -> None:
    assert pattern_problem(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "(a*)*b",
        "(a+)+",
        "((a|b?)c)*",
        "(?:a{2,}){3}",
        "(?:(?:a?))+",
        "a**",
        "a{5}{6}",
        "a{1001}",
        r"(a)\1",
        r"(?<x>a\g<x>?)",
    ]
    + ["(" * 40 + "a" + ")" * 40, "a" * 4001, "(?(1)a|b)", "(?~a)", "(*FAIL)", r"([\]a]+)+"],
)
def test_patterns_that_may_never_end_are_refused(pattern: str) -> None:
    assert pattern_problem(pattern) is not None
