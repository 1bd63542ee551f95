"""Model files as attackers would make them: with a valid checksum, and hostile in what they say. All by number.

    python tests/hostile_files.py 0 150

loads each, predicts one line and shows what it is, as `transduce info` does, in one process with little memory to
spare, and prints a JSON object a file.
"""

import contextlib
import hashlib
import io
import json
import os
import random
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

TEXT = "a b"
NAMES = ["<pad>", "<s>", "</s>", "<unk>", "a", "b", "c", "d", "▁a", "▁b", "▁", "ab"]
SPARE = 500 * 2**20  # bytes
KINDS = ["transformer", "rnn", "convolution", "ctc", "non_autoregressive", "ssru_transformer", "linear_transformer"]
HUGE = [0, -1, 2, 7, 999, 2**16, 10**6, 2**31 - 1, 2**31, 10**9, 2**40, 2**62, 2**63, 2**64, 10**18, 10**300]
ODD: list[Any] = [None, True, "", "x", [], {}, [[]], 1.5, -0.5, 1e308, "my_file:Model", "../secret", "\x00", "é" * 1000]
DTYPES = ["F16", "BF16", "F64", "I64", "I32", "I16", "I8", "U8", "BOOL", "F8_E4M3", "f32", ""]


@dataclass
class Parts:
    """A file before it is written: tables of its metadata, where `raw` does not give their text, and tensors."""

    config: dict[str, Any]
    tokenizers: dict[str, Any]
    tensors: dict[str, list[Any]]  # name -> dtype, shape, bytes
    tied: dict[str, str] = field(default_factory=dict)
    raw: dict[str, Any] = field(default_factory=dict)
    header: Callable[[dict[str, Any]], str] | None = None  # the header's text, of what it should be
    end: bytes = b""

    def to_bytes(self) -> bytes:
        """With a checksum over what the header says."""
        texts = {side: each if isinstance(each, str) else json.dumps(each) for side, each in self.tokenizers.items()}
        tables = {"config": self.config, "tokenizer": texts, "provenance": {}, "metrics": {}, "tied": self.tied}
        metadata: dict[str, Any] = {name: json.dumps(table) for name, table in tables.items()}
        metadata = {"format": "transduce-model", "format_version": "1", **metadata, **self.raw}
        metadata = {name: text for name, text in metadata.items() if text is not None}
        entries: dict[str, Any] = {}
        place, data, digests = 0, [], {}
        for name, (dtype, shape, content) in self.tensors.items():
            entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [place, place + len(content)]}
            digests[name] = [dtype, shape, hashlib.sha256(content).hexdigest()]
            data.append(content)
            place += len(content)
        canonical = {"sort_keys": True, "separators": (",", ":"), "ensure_ascii": False}
        content = json.dumps({"metadata": metadata, "tensors": digests}, **canonical)  # type: ignore[arg-type]
        checksum = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
        whole = {"__metadata__": {**metadata, "checksum": checksum}, **entries}
        encoded = (self.header(whole) if self.header else json.dumps(whole)).encode("utf-8", "surrogatepass")
        return len(encoded).to_bytes(8, "little") + encoded + b"".join(data) + self.end


@cache
def sound(kind: str) -> str:
    """A sound toy model of that kind, as JSON of its parts but the tensors' bytes."""
    import torch

    from text_columns import text_columns
    from transduce.core.model_file import lasting_tensors
    from transduce.data.tokenizers.tokenizer import Tokenizer
    from transduce.pipeline.outline import make_model, make_task
    from transduce.recipe.recipe import parse_recipe

    model: dict[str, Any] = {"kind": kind, "d_model": 8}
    if kind not in ("rnn", "rnn_decoder", "convolution"):
        model |= {"heads": 2, "feed_forward": 12}
    if kind == "rnn":
        model |= {"hidden": 12}
    language_model = kind.endswith("_decoder")
    model |= {"layers": 2} if language_model else {"encoder_layers": 2, "decoder_layers": 2}
    table: dict[str, Any] = {"name": "toy", "model": model, "data": {"train": [{"source": "a", "target": "b"}]}}
    if language_model:
        table |= {"task": {"kind": "language_modelling", "context": 16}, "data": {"train": [{"text": "a"}]}}
    recipe = parse_recipe(table, "test")
    tokenizer = Tokenizer.from_json(json.dumps(tokenizer_table()))
    task = make_task(recipe, text_columns(None if language_model else tokenizer, tokenizer))
    torch.manual_seed(3)
    tensors = lasting_tensors(make_model(recipe, task))
    described = {name: [list(each.shape), each.detach().flatten().tolist()] for name, each in tensors.items()}
    return json.dumps([recipe.to_table(), language_model, described])


def parts_of(kind: str) -> Parts:
    """A sound model, to be spoilt."""
    config, language_model, described = json.loads(sound(kind))
    tensors = {n: ["F32", shape, struct.pack(f"<{len(x)}f", *x)] for n, (shape, x) in described.items()}
    return Parts(config, {"target" if language_model else "joint": tokenizer_table()}, tensors)


def tokenizer_table() -> dict[str, Any]:
    """A tokenizer.json of a few words."""
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": None,
        "decoder": None,
        "model": {"type": "WordLevel", "vocab": {name: i for i, name in enumerate(NAMES)}, "unk_token": "<unk>"},
    }


# ---- what is spoilt ----------------------------------------------------------------------------------------

Spoil = Callable[[random.Random, Parts], None]


def any_key(drawn: random.Random, table: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Some table in `table`, and a key of it."""
    while True:
        key = drawn.choice(sorted(table))
        if not isinstance(table[key], dict) or not table[key] or drawn.random() < 0.2:
            return table, key
        table = table[key]


def model_size(drawn: random.Random, parts: Parts) -> None:
    """A size of the model."""
    model = parts.config["model"]
    sizes = [key for key, value in model.items() if type(value) is int] + ["max_length", "key_value_heads", "kernel"]
    model[drawn.choice(sizes)] = drawn.choice(HUGE)
    if drawn.random() < 0.3:
        model["positions"] = drawn.choice(["learned", "rotary", "alibi", "shaw", "t5", "none"])


def several_sizes(drawn: random.Random, parts: Parts) -> None:
    """Specs that go together, so that settings are in order."""
    model = parts.config["model"]
    size = drawn.choice([64, 1024, 2**16, 2**20, 2**24, 2**30])
    for key in ("d_model", "hidden", "feed_forward"):
        if key in model and drawn.random() < 0.7:
            model[key] = size
    for key in ("encoder_layers", "decoder_layers", "layers"):
        if key in model and drawn.random() < 0.5:
            model[key] = drawn.choice([3, 40, 79, 10**4, 10**8])


def search_setting(drawn: random.Random, parts: Parts) -> None:
    """How outputs are searched."""
    search = parts.config["search"]
    for _ in range(drawn.randint(1, 3)):
        keys = [
            "beam",
            "nbest",
            "max_length_offset",
            "max_length_factor",
            "iterations",
            "lengths",
            "groups",
            "shortlist",
        ]
        search[drawn.choice([*keys, "min_length", "top_k", "seed", "no_repeat_ngram"])] = drawn.choice(HUGE)
    if drawn.random() < 0.5:
        search["method"] = drawn.choice(["beam", "greedy", "sample", "exhaustive", "mask_predict", "ctc"])


def any_setting(drawn: random.Random, parts: Parts) -> None:
    """Any setting of another kind, or gone, or one too many."""
    table, key = any_key(drawn, parts.config)
    way = drawn.random()
    if way < 0.15:
        del table[key]
    elif way < 0.25:
        table["no_such_key" * drawn.choice([1, 1000])] = 1
    else:
        table[key] = drawn.choice([*HUGE, *ODD])


def other_kind(drawn: random.Random, parts: Parts) -> None:
    """Another architecture than that of the weights."""
    parts.config["model"]["kind"] = drawn.choice([*KINDS, "rnn_decoder", "protocols", "__init__", "no_such"])


def raw_table(drawn: random.Random, parts: Parts) -> None:
    """A table's text that is no sound JSON, or too much of it."""
    name = drawn.choice(["config", "tokenizer", "provenance", "metrics", "tied", "format_version", "format"])
    deep = drawn.choice([60, 900, 5000, 10**5])
    texts = [
        "[" * deep + "]" * deep,
        '{"a":' * deep + "1" + "}" * deep,
        '{"a": ' + "9" * drawn.choice([30, 4000, 5000, 10**6]) + "}",
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 1e999}',
        '{"a": "\\ud800"}',
        '{"a": 1, "a": 2}',
        '{"a": [' + "[]," * drawn.choice([10**4, 10**6]) + "[]]}",
        '{"a": [' + "{}," * drawn.choice([10**4, 10**6]) + "{}]}",
        json.dumps({str(n): n for n in range(drawn.choice([10**3, 10**5]))}),
        '{"a": "' + "x" * 10**6 + '"}',
        "",
        "null",
        "{",
        '"text"',
        "[1]",
        "\ud800",
        "\x00",
    ]
    parts.raw[name] = drawn.choice([*texts, None])


def raw_number_in_config(drawn: random.Random, parts: Parts) -> None:
    """A number of very many digits where a number belongs."""
    table, key = any_key(drawn, parts.config)
    table[key] = "HERE"
    digits = drawn.choice(
        ["9" * 21, "9" * 4000, "9" * 4299, "1" * 10**5, "1e400", "-1e400", "1" + "0" * 400 + ".5", "NaN"]
    )
    parts.raw["config"] = json.dumps(parts.config).replace('"HERE"', digits)


def normalizer(drawn: random.Random, parts: Parts) -> None:
    """Text without bound, and the time it takes."""
    steps = drawn.choice([1, 10, 25, 60, 200])
    one: list[dict[str, Any]] = [
        {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * drawn.choice([2, 10, 1000, 10**4])},
        {"type": "Replace", "pattern": {"Regex": drawn.choice([".", "", "a*", "\\b"])}, "content": "aa"},
        {"type": "Prepend", "prepend": "a" * drawn.choice([1, 10, 10**5])},
        {"type": "ByteLevel"},
        {"type": "NFKD"},
        {
            "type": "Precompiled",
            "precompiled_charsmap": drawn.choice(["////////", "BAAAAP////9h", "", "AAAA", "BAAAAAAAAABh"]),
        },
        {"type": "Strip", "strip_left": True, "strip_right": True},
        {"type": "no_such"},
    ]
    step = drawn.choice(one)
    table = {"type": "Sequence", "normalizers": [step] * steps}
    for _ in range(drawn.choice([0, 0, 3, 50, 130])):
        table = {"type": "Sequence", "normalizers": [table] * drawn.choice([1, 1, 1])}
    of_tokenizer(parts)["normalizer"] = table


def of_tokenizer(parts: Parts) -> dict[str, Any]:
    """The table of its tokenizer."""
    found: dict[str, Any] = next(iter(parts.tokenizers.values()))
    return found


PATTERNS = [
    "(a*)*b",
    "(((a|b| )*)*)*c",
    "(a?){30}a{30}",
    "(?<x>a|\\g<x>b\\g<x>)",
    "(a)\\1",
    "((a{1000}){1000}){1000}",
    "a{99999}",
    "((",
    "(" * 3000 + "a" + ")" * 3000,
    "a" * 10**5,
    "(?:" * 25 + "a" + ")*" * 25,
    "\\",
    "[",
    "[[[[",
    "",
    "\\p{L}+",
    "(?=a)",
    "(*FAIL)",
    "(?{1})",
    "\\x{110000}",
    "|".join(["a*"] * 500),
    "a*" * 300 + "c",
]


def pre_tokenizer(drawn: random.Random, parts: Parts) -> None:
    """Patterns without an end, parts of length 0, bytes of bytes of bytes."""
    split = {"type": "Split", "pattern": {"Regex": drawn.choice(PATTERNS)}, "behavior": "Isolated", "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": drawn.random() < 0.5}
    space = {"type": "Metaspace", "replacement": "a", "prepend_scheme": "always", "split": True}
    one = drawn.choice(
        [split, split, split, level, space, {"type": "FixedLength", "length": drawn.choice([0, 1, 2**63])}]
    )
    many = {"type": "Sequence", "pretokenizers": [one] * drawn.choice([1, 3, 30, 150])}
    of_tokenizer(parts)["pre_tokenizer"] = drawn.choice([one, many])


def decoder(drawn: random.Random, parts: Parts) -> None:
    """Outputs without bound."""
    one: list[dict[str, Any]] = [
        {
            "type": "Replace",
            "pattern": {"String": drawn.choice(["a", "", " "])},
            "content": "a" * drawn.choice([2, 10**5]),
        },
        {"type": "Strip", "content": "a", "start": 2**40, "stop": 2**63},
        {"type": "WordPiece", "prefix": "", "cleanup": True},
        {"type": "ByteFallback"},
        {"type": "Metaspace", "replacement": "a", "prepend_scheme": "first", "split": True},
        {"type": "CTC", "pad_token": "", "word_delimiter_token": "", "cleanup": True},
    ]
    many = {"type": "Sequence", "decoders": [drawn.choice(one)] * drawn.choice([1, 20, 60, 150])}
    of_tokenizer(parts)["decoder"] = drawn.choice([drawn.choice(one), many])


def tokenizer_model(drawn: random.Random, parts: Parts) -> None:
    """A vocabulary that is too large, has holes, or none of what is needed; numbers that are none."""
    table = of_tokenizer(parts)
    vocab = {name: i for i, name in enumerate(NAMES)}
    bpe = {"type": "BPE", "vocab": vocab, "merges": [["a", "b"]], "unk_token": "<unk>"}
    scores = [[name, drawn.choice([0.0, -1.0, 1e308, -1e308])] for name in NAMES]
    models: list[dict[str, Any]] = [
        {**table["model"], "vocab": {**vocab, "x": drawn.choice([12, 50, 10**6, 2**31, 2**32 - 1, 2**32, -1])}},
        {**table["model"], "vocab": {**vocab, **{f"w{n}": n + 12 for n in range(drawn.choice([100, 10**5]))}}},
        {**table["model"], "vocab": dict.fromkeys(NAMES, 0)},
        {**table["model"], "vocab": {}},
        {**table["model"], "unk_token": "none"},
        {**bpe, "dropout": drawn.choice([0.5, 1.0, 5.0, -1.0])},
        {**bpe, "continuing_subword_prefix": "x" * drawn.choice([1, 2, 5000])},
        {**bpe, "end_of_word_suffix": "x" * drawn.choice([1, 10**5])},
        {**bpe, "merges": [["a", "b"]] * drawn.choice([2, 10**5])},
        {**bpe, "merges": [["a", "nowhere"]]},
        {**bpe, "byte_fallback": True, "fuse_unk": True, "ignore_merges": True},
        {"type": "Unigram", "unk_id": drawn.choice([0, 3, 99, None, 2**40]), "vocab": scores},
        {"type": "Unigram", "unk_id": 0, "vocab": []},
        {
            "type": "WordPiece",
            "vocab": vocab,
            "unk_token": "<unk>",
            "continuing_subword_prefix": "",
            "max_input_chars_per_word": 0,
        },
        {"type": "no_such"},
        {},
    ]
    table["model"] = drawn.choice(models)


def tokenizer_else(drawn: random.Random, parts: Parts) -> None:
    """Added tokens, templates, padding; the sides."""
    table = of_tokenizer(parts)
    text = {"Sequence": {"id": drawn.choice(["A", "A", "B"]), "type_id": 0}}
    template = {
        "type": "TemplateProcessing",
        "single": [text] * drawn.choice([1, 2, 1000]),
        "pair": [],
        "special_tokens": {},
    }
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), drawn.random() < 0.5)
    added = {
        "id": drawn.choice([12, 5, 10**6, 2**32 - 1]),
        "content": drawn.choice(["", " ", "a", "x" * 10**5, "</s>"]),
        **flags,
    }
    way = drawn.randrange(9)
    if way == 0:
        table["added_tokens"] = [added] * (drawn.choice([1, 2]) if len(added["content"]) > 10 else 10**4)
    elif way == 1:
        table["post_processor"] = drawn.choice([template, {"type": "Sequence", "processors": [template] * 40}])
    elif way == 2:
        strategy = {"Fixed": drawn.choice([10, 10**12])}
        named = {"pad_to_multiple_of": 2**40, "pad_id": 0, "pad_type_id": 0, "pad_token": "x"}
        table["padding"] = {"strategy": strategy, "direction": "Right", **named}
    elif way == 3:
        table["truncation"] = {"max_length": 0, "strategy": "LongestFirst", "stride": 5, "direction": "Right"}
    elif way == 4:
        parts.tokenizers = drawn.choice([{}, {"source": table}, {"other": table}, {"joint": table, "source": table}])
    elif way == 5:
        parts.tokenizers = {side: drawn.choice(["", "{}", "[]", "null", "x" * 10**5]) for side in parts.tokenizers}
    elif way == 6:
        deep = drawn.choice([100, 1000, 10**5])
        parts.tokenizers = dict.fromkeys(parts.tokenizers, "[" * deep + "]" * deep)
    elif way == 7:
        many = drawn.choice([10**5, 10**6])
        parts.tokenizers = dict.fromkeys(parts.tokenizers, '{"a": [' + "[]," * many + "[]]}")
    else:
        table[drawn.choice(sorted(table))] = drawn.choice(ODD)


def tensor(drawn: random.Random, parts: Parts) -> None:
    """A tensor of another type or shape, one too many, or one missing."""
    name = drawn.choice(sorted(parts.tensors))
    dtype, shape, content = parts.tensors[name]
    way = drawn.randrange(8)
    if way == 0:
        widths = {"F16": 2, "BF16": 2, "F64": 8, "I64": 8, "I32": 4, "I16": 2}
        other = drawn.choice(DTYPES)
        numbers = len(content) // 4
        parts.tensors[name] = [other, shape, bytes(numbers * widths.get(other, 1))]
    elif way == 1:
        parts.tensors[name] = [dtype, shape[::-1], content]
    elif way == 2:
        parts.tensors[name] = [dtype, drawn.choice([[*shape, 1], [1] * 70 + shape, [len(content) // 4]]), content]
    elif way == 3:
        parts.tensors[name] = [dtype, drawn.choice([[2**62, 0], [0], [10**4000, 0], [0] * 1000]), b""]
    elif way == 4:
        del parts.tensors[name]
    elif way == 5:
        extra = drawn.choice(["x", "x" * 10**5, "../x", "\x00", "", "__metadata__", "encoder", "shortlist.frequent"])
        parts.tensors[extra] = [dtype, shape, content]
    elif way == 6:
        for number in range(drawn.choice([10, 3000, 10**5])):
            parts.tensors[f"extra.{number}"] = ["F32", [0], b""]
    else:
        parts.tensors[name] = [dtype, [10**4000, *shape], content]


def numbers(drawn: random.Random, parts: Parts) -> None:
    """Weights that are no numbers, or very large ones, or any bits."""
    for name in drawn.sample(sorted(parts.tensors), drawn.choice([1, 3, len(parts.tensors)])):
        dtype, shape, content = parts.tensors[name]
        wrong = drawn.choice([float("nan"), float("inf"), -float("inf"), 3e38, -3e38, 1e-45, 1e20, 0.0])
        if drawn.random() < 0.3:
            content = drawn.randbytes(len(content))
        elif drawn.random() < 0.5:
            content = struct.pack("<f", wrong) * (len(content) // 4)
        else:
            place = drawn.randrange(max(1, len(content) // 4)) * 4
            content = content[:place] + struct.pack("<f", wrong) + content[place + 4 :]
        parts.tensors[name] = [dtype, shape, content]


def lexicon(drawn: random.Random, parts: Parts) -> None:
    """A table of translations that points beyond the vocabulary."""
    rows, columns = drawn.choice([(len(NAMES), 2), (3, 2), (0, 0), (10**5, 1)]), drawn.choice([0, 4, 10**5])
    low, high = drawn.choice([(-1, 11), (-5, 5), (0, 2**31 - 1)])
    some = [drawn.randint(low, high) for _ in range(rows[0] * rows[1])]
    parts.tensors["shortlist.candidates"] = ["I32", list(rows), struct.pack(f"<{len(some)}i", *some)]
    few = [drawn.randint(low, high) for _ in range(columns)]
    parts.tensors["shortlist.frequent"] = ["I32", [columns], struct.pack(f"<{columns}i", *few)]
    parts.config["search"]["shortlist"] = drawn.choice([1, 2, 10**9])


def tied(drawn: random.Random, parts: Parts) -> None:
    """Weights that are another's, which is not there, or theirs."""
    names = sorted(parts.tensors)
    ways = [{names[0]: "nowhere"}, {names[0]: names[1]}, {"x": "y", "y": "x"}, {"x" * 10**5: names[0]}]
    ways.append({f"t{number}": names[0] for number in range(drawn.choice([10, 10**4, 10**5]))})
    parts.tied = drawn.choice(ways)


def header(drawn: random.Random, parts: Parts) -> None:
    """What surrounds it all."""
    many = drawn.choice([10**4, 10**6])

    def spoilt(whole: dict[str, Any]) -> str:
        text = json.dumps(whole)
        digits = drawn.choice([4000, 5000, 10**6])
        ways: list[Callable[[], str]] = [
            lambda: text.replace('"shape": [', '"shape": [' + "9" * digits + ", ", 1),
            lambda: text.replace('"shape": [', '"shape": [' + "1, " * many, 1),
            lambda: text.replace('"data_offsets": [', '"data_offsets": [-', 1),
            lambda: text.replace('"data_offsets": [0', '"data_offsets": [' + "9" * 4000, 1),
            lambda: text[:-1] + ', "x": [' + "[]," * many + "[]]}",
            lambda: text[:-1] + ', "x": ' + "[" * many + "}",
            lambda: text[:-1] + ', "\\ud800": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}',
            lambda: text[:-1] + "".join(f', "x{n}": 0' for n in range(many // 10)) + "}",
            lambda: text[: len(text) // 2],
            lambda: text + " " * many,
            lambda: text + "{}",
            lambda: text.replace('"__metadata__": {', '"__metadata__": {"more": "' + "x" * many + '", ', 1),
            lambda: text.replace('"__metadata__": {', '"__metadata__": {"more": "\\ud800", ', 1),
            lambda: text.replace('"__metadata__": {', '"__metadata__": {"more": {"a": 1}, ', 1),
            lambda: text.replace('"__metadata__": {', '"__metadata__": [{', 1),
            lambda: "[" * many,
            lambda: '"' + "x" * many,
            lambda: " " * many,
        ]
        return drawn.choice(ways)()

    parts.header = spoilt


def ending(drawn: random.Random, parts: Parts) -> None:
    """More bytes than tensors."""
    parts.end = drawn.randbytes(drawn.choice([1, 8, 10**5]))


SPOILS: list[Spoil] = [
    model_size,
    model_size,
    several_sizes,
    search_setting,
    any_setting,
    other_kind,
    raw_table,
    raw_number_in_config,
    normalizer,
    pre_tokenizer,
    decoder,
    tokenizer_model,
    tokenizer_else,
    tensor,
    tensor,
    numbers,
    lexicon,
    tied,
    header,
    ending,
]


def hostile(number: int) -> tuple[str, bytes]:
    """File `number`: what was spoilt, and its bytes."""
    drawn = random.Random(number)
    parts = parts_of(drawn.choice([*KINDS, "transformer", "transformer_decoder", "rnn_decoder"]))
    first = SPOILS[number % len(SPOILS)]
    spoils = [first, drawn.choice(SPOILS)] if drawn.random() < 0.25 else [first]
    done = []
    for spoil in spoils:
        with contextlib.suppress(IndexError, StopIteration, TypeError, KeyError, AttributeError, ValueError):
            spoil(drawn, parts)  # what the one before it spoilt may not be there for it
            done.append(spoil.__name__)
    return " + ".join(done), parts.to_bytes()


# ---- what becomes of it ------------------------------------------------------------------------------------


def outcome(path: Path) -> str:
    """What loading, predicting and showing it come to: "right", "refused: .." or "failed: .."."""
    import transduce
    from transduce.cli.info import info
    from transduce.core.errors import TransduceError

    try:
        with contextlib.redirect_stdout(io.StringIO()):
            info(path)
    except TransduceError:
        pass
    except BaseException as error:
        return f"failed: info: {type(error).__name__}: {str(error)[:200]}"
    try:
        (first,) = transduce.load(path).predict([TEXT])
        (second,) = transduce.load(path).predict([TEXT])
    except TransduceError as error:
        return f"refused: {str(error)[:200]}"
    except BaseException as error:
        return f"failed: {type(error).__name__}: {str(error)[:200]}"
    sound = first.log_probability <= 1e-3 and (first.text, first.score) == (second.text, second.score)
    return "right" if sound else f"failed: it says {first} and {second}"


def outcomes(files: dict[Path, str]) -> Iterator[dict[str, Any]]:
    """Of files, each with what was spoilt, in this process."""
    for path, what in files.items():
        begun = time.perf_counter()
        found = outcome(path)
        yield {"file": path.name, "what": what, "seconds": time.perf_counter() - begun, "outcome": found}


def written(folder: Path, numbers: range) -> dict[Path, str]:
    """Files by path, each with what was spoilt."""
    files = {}
    for number in numbers:
        what, content = hostile(number)
        (folder / str(number)).write_bytes(content)
        files[folder / str(number)] = what
    return files


def prepare() -> None:
    """What needs no files: all that is imported, and the sound models."""
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import torch

    import transduce.cli.info
    import transduce.pipeline.pipeline  # noqa: F401

    torch.set_num_threads(1)
    for kind in [*KINDS, "transformer_decoder", "rnn_decoder"]:
        sound(kind)


def limit_memory() -> None:
    """From here on, little more memory than there is in use; nothing where the system has no such limit."""
    if sys.platform != "linux":
        return
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + SPARE
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


if __name__ == "__main__":
    prepare()
    with tempfile.TemporaryDirectory() as folder:
        first, count = map(int, sys.argv[1:])
        files = written(Path(folder), range(first, first + count))
        limit_memory()
        for each in outcomes(files):
            print(json.dumps(each), flush=True)
