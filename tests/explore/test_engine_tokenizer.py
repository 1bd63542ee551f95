"""The tokenizers that the page computes itself, against those of Python."""

import gzip
import json
import os
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Error, Page
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Inner

from headless import blank_page
from transduce.data.columns.label import Label
from transduce.data.columns.tokens import Tokens
from transduce.data.tokenizers.text_ids import Tokenizer, printable_bytes
from transduce.data.tokenizers.tokenizer import TokenizerConfig, train_tokenizer

DATA = Path(os.environ.get("TRANSDUCE_DATA", Path(__file__).parents[2] / "../shared/data"))
ENGINE = [f"engine/{name}.js" for name in ("unsupported", "unicode", "patterns", "pieces", "tokenizer", "column")]
TRAINING = [
    "The quick brown fox jumps over the lazy dog; it's 12:30, isn't it?",
    "Zwei junge Männer gehen über die Straße, ÉCOLE élève, naïve café, Ångström.",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. ΟΔΥΣΣΕΥΣ ὀδυσσεύς",
    "我们每天学习。 你好，世界！ 今日はいい天気ですね。 한국어 문장도 있다.",
    "नमस्ते दुनिया ภาษาไทย שלום עולם مرحبا بالعالم Tiếng Việt İstanbul ﬁne",
    "a <unk> token, [tag] a|b;N;PL walk|V;PST 😀 👩‍👩‍👧 🇩🇪 x̌ q̣̇ ▁under▁score",
] * 3
ALPHABET = [
    *"aaaabcdeeE nNßıİiΣσςÅäÉé,.;:!?'\"()[]<>/|$+=^`~-_▁0¾²",
    *[" "] * 9,
    *["\n", "\t", "\r", "\x00", "\x7f", "\u0085", "\u00a0", "\u00ad", "\u2028", "\u2029", "\u200b", "\u200d", "\ufeff"],
    *["\u0300", "\u0301", "\u0316", "\u0323", "\u0327", "\u0308", "\u0345", "\u0344", "\u0f73", "\u1d165", "\u3099"],
    *[
        "\u1100",
        "\u1161",
        "\u11a8",
        "가",
        "각",
        "か",
        "が",
        "カ",
        "क",
        "\u093c",
        "क़",
        "ด",
        "ำ",
        "ש",
        "\u05c1",
        "ם",
        "ع",
        "\u0651",
    ],
    *[
        "中",
        "文",
        "，",
        "。",
        "！",
        "😀",
        "👩",
        "\U0001f3fd",
        "🇩",
        "𝒜",
        "ﬁ",
        "Å",
        "Ω",
        "ǆ",
        "ế",
        "ệ",
        "\U0001d15e",
        "丽",
    ],
    *[
        "<unk>",
        "</s>",
        "<s>",
        "<pad>",
        "<mask>",
        " <unk> ",
        "[tag]",
        ";N;PL",
        "|V",
        "the",
        "Straße",
        "ing ",
        "don't",
        "  ",
    ],
    *[
        "\u08d3",
        "\u1abf",
        "\U00011938",
        "\U00011935\U00011930",
        "\u2e52",
        "\u166d",
        "\u16e0",
        "\U00010ed0",
        "\ufffd",
        "\U0010ffff",
    ],
]
KNOWN = [
    *[
        "",
        " ",
        "   ",
        "\n",
        "▁",
        "▁▁ ▁",
        ".",
        "...",
        "(a",
        "(",
        " (a) ",
        "a  b",
        "  lead",
        "trail  ",
        "<unk>",
        "</s>",
        "a </s> b",
    ],
    *[
        "<pad><s></s><unk><mask>",
        "[tag][tag]",
        " [tag] ",
        "x[tag]y",
        "ab;N;PLc",
        "\u0301",
        "e\u0301",
        "\u0323\u0301",
        "o\u0302\u0323",
    ],
    *[
        "\u2028a\u2029",
        "a\x00b",
        "\u1e69\u0323",
        "\u01d5\u0316\u0301",
        "ΑΣ ΑΣΑ",
        "İI",
        "각\u11a8",
        "x" * 300,
        "aab eabea aaaaab ebab abe",
        "</s>x </sx <s>x <unk>x",
        "<|endoftext|> a",
        "\ufeffa",
        "\u0344\u0345",
    ],
]


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with blank_page(*ENGINE) as page:
        yield page


@cache
def drawn(count: int) -> list[str]:
    """Texts of what is hard to read."""
    draw = random.Random(7)
    return ["".join(draw.choices(ALPHABET, k=draw.randint(1, 14))) for _ in range(count)]


def real(name: str, count: int) -> list[str]:
    path = DATA / name
    if not path.exists():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line, _ in zip(file, range(count), strict=False)]


@cache
def texts() -> list[str]:
    lines = [*real("multi30k/raw/val.de.gz", 300), *real("multi30k/raw/val.cs.gz", 100)]
    return [*KNOWN, *TRAINING[:6], *lines, *real("tatoeba_eng_cmn/cmn.txt.gz", 300), *drawn(2000)]


def learnt(kind: str, **more: Any) -> Callable[[], str]:
    table = {"kind": kind, "vocabulary": 420, "min_frequency": 1, **more}
    lines = [*TRAINING, *TRAINING[:6]] * 3
    return lambda: train_tokenizer(TokenizerConfig(**table), lines).to_json()


NO_ROLES: dict[str, str] = {}
SYMBOLS = r"\[tag\]|;N;PL|;N|\|V|e\u0301|  "
LEARNT: dict[str, Callable[[], str]] = {
    "bpe": learnt("bpe"),
    "bpe, lower case": learnt("bpe", lowercase=True),
    "bpe, NFD": learnt("bpe", normalization="NFD", lowercase=True),
    "bpe, symbols": learnt("bpe", symbols=SYMBOLS),
    "unigram": learnt("unigram"),
    "unigram, NFD": learnt("unigram", normalization="NFD"),
    "unigram, lower case, symbols": learnt("unigram", lowercase=True, symbols=SYMBOLS),
    "byte": learnt("byte"),
    "byte, lower case, symbols": learnt("byte", lowercase=True, symbols=SYMBOLS),
    "character": learnt("character"),
    "character, NFD": learnt("character", normalization="NFD", lowercase=True),
    "character, symbols": learnt("character", symbols=SYMBOLS),
    "whitespace": learnt("whitespace"),
    "whitespace, NFD": learnt("whitespace", normalization="NFD", lowercase=True),
    "bpe, names": lambda: Tokenizer.from_json(LEARNT["bpe"]()).with_added(["s>x", "</s", "<u", "th", "the"]).to_json(),
    "bpe, mask": lambda: Tokenizer.from_json(LEARNT["bpe"]()).with_mask().to_json(),
}


def gpt2_like() -> str:
    """Byte-level pairs whose words are cut as GPT-2 cuts them; no token for unknown ones, and none for padding."""
    letters = list(printable_bytes())
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "a"), ("i", "n"), ("in", "g"), ("Ã", "©"), ("Ġ", "Ġ")]
    vocabulary = [*letters, *("".join(pair) for pair in merges), "<|endoftext|>"]
    inner = Inner(models.BPE(vocab={token: index for index, token in enumerate(vocabulary)}, merges=merges))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True)
    inner.decoder = decoders.ByteLevel()
    inner.add_special_tokens([AddedToken("<|endoftext|>", normalized=False, special=True)])
    return str(inner.to_str())


def fused() -> str:
    """Unknown characters side by side are one; a word of the vocabulary is not cut; other patterns."""
    vocabulary = ["<pad>", "</s>", "<unk>", "▁", "a", "b", "e", "n", "aa", "ab", "▁a", "ea", "ean", "<unk>a"]
    merges = [("a", "a"), ("a", "b"), ("▁", "a"), ("e", "a"), ("<unk>", "a")]
    model = models.BPE(
        vocab={token: index for index, token in enumerate(vocabulary)},
        merges=merges,
        unk_token="<unk>",
        fuse_unk=True,
        ignore_merges=True,
    )
    inner = Inner(model)
    steps = [
        normalizers.Replace(Regex(" {2,}"), "▁"),
        normalizers.Replace(Regex("[a-c\u0301&&[^b]]++(?<=a)"), "a"),
        normalizers.Replace("ß", "ss"),
    ]
    inner.normalizer = normalizers.Sequence(steps)
    splits = [pre_tokenizers.Split(Regex(r"\s+"), "isolated"), pre_tokenizers.Metaspace(prepend_scheme="always")]
    inner.pre_tokenizer = pre_tokenizers.Sequence(splits)
    inner.decoder = decoders.Metaspace(prepend_scheme="always")
    inner.add_special_tokens(["<pad>", "</s>", "<unk>"])
    return str(inner.to_str())


def ties() -> str:
    """Cuts of equal likelihood, of which the library takes one."""
    pieces = [("</s>", 0.0), ("<unk>", 0.0), *((piece, -1.0) for piece in ("a", "b", "e")), ("Σ", -11.0)]
    pieces += [(piece, -2.0) for piece in ("aa", "ab", "ba", "ea", "be", "eb", "aaa", "<unk>a")]
    inner = Inner(models.Unigram(pieces, 1, False))
    inner.decoder = decoders.Fuse()
    return str(inner.to_str())


ALL = {**LEARNT, "like GPT-2": gpt2_like, "fused": fused, "ties": ties}

READ = """(asked) => {
  const [json, texts, roles] = JSON.parse(asked);
  const tokenizer = Transduce.engine.tokenizer(json).withRoles(roles);
  const { size, pad, start, end, unknown, mask } = tokenizer;
  const read = (text) => {
    const ids = tokenizer.encode(text);
    return [ids, tokenizer.offsets(text), tokenizer.decode(ids), tokenizer.tokens(ids)];
  };
  return JSON.stringify([[size, pad, start, end, unknown, mask], texts.map(read)]);
}"""  # as JSON, which is ten times as quick as lists of Playwright's


def check(page: Page, text: str, texts: list[str], roles: dict[str, str] = NO_ROLES) -> None:
    """The page's tokenizer does with all texts what Python's does."""
    python = Tokenizer.from_json(text).with_roles(roles)
    special, found = json.loads(page.evaluate(READ, json.dumps([text, texts, roles])))
    assert special == [getattr(python, role) for role in ("size", "pad", "start", "end", "unknown", "mask")]
    wanted = [
        [ids, [list(each) for each in python.offsets(text)], python.decode(ids), python.tokens(ids)]
        for text, ids in zip(texts, python.encode(texts), strict=True)
    ]
    wrong = [each for each in zip(texts, found, wanted, strict=True) if each[1] != each[2]]
    assert not wrong, f"{len(wrong)} of {len(texts)} differ; the first: {min(wrong, key=lambda each: len(each[0]))}"


@pytest.mark.parametrize("name", ALL)
def test_texts_become_the_tokens_that_python_finds(page: Page, name: str) -> None:
    check(page, ALL[name](), texts())


def test_words_that_spell_special_tokens_are_text_without_an_unknown_token_too(page: Page) -> None:
    check(page, LEARNT["whitespace"](), [*KNOWN, "a </s> <pad> <unk> ▁"], {"unknown": ""})
    check(page, LEARNT["character"](), KNOWN, {"pad": "", "start": "</s>", "end": "<s>"})


@pytest.mark.parametrize("name", ["bpe", "unigram", "byte", "character", "like GPT-2"])
def test_long_texts_take_no_time_by_their_square(page: Page, name: str) -> None:
    long = ["the" * 5_000, "ab" * 5_000 + " " * 20_000 + "c", "\u0301" * 5_000, "\u2603" * 5_000 + " " * 20_000]
    check(page, ALL[name](), long)


FEW = ((0x3400, 0xA000), (0xAC20, 0xD790), (0xD800, 0xF900), (0x12400, 0x16000), (0x17000, 0x1BC00), (0x20000, 0x2F800))
"""Ranges of ideographs, syllables, cuneiform, and what is no character: all alike."""
SIGNS = [chr(place) for place in range(0x2FA20) if not any(first <= place < last for first, last in FEW)]
EDGES = [chr(place) for first, last in FEW for place in (first, last - 1) if not 0xD800 <= place < 0xE000]


@pytest.mark.parametrize("form", ["NFC", "NFD", "Lowercase"])
def test_characters_are_composed_as_the_library_composes_them(page: Page, form: str) -> None:
    """Each behind a mark of the highest class and before one of the lowest, which shows its own class."""
    library = getattr(normalizers, form)()
    asked = [f"\u0345{char}\u0334" for char in (*SIGNS, *EDGES)]
    asked += {library.normalize_str(char) for char in SIGNS}  # what composes again
    found = page.evaluate(
        """(asked) => {
          const [form, texts] = JSON.parse(asked), E = Transduce.engine;
          const written = (piece) => (form === "Lowercase" ? E.lowercased(piece) : E.normalized(piece, form));
          return JSON.stringify(texts.map((text) => written(E.piece(text)).chars.join("")));
        }""",
        json.dumps([form, asked]),
    )
    wanted = [library.normalize_str(text) for text in asked]
    assert [each for each in zip(asked, json.loads(found), wanted, strict=True) if each[1] != each[2]] == []


@pytest.mark.parametrize("around", ["一{}一", "1 {}"])
def test_words_are_cut_at_the_librarys_signs(page: Page, around: str) -> None:
    """Whatever the browser's version of Unicode says of them."""
    asked = [around.format(char) for char in (*SIGNS, *EDGES)]
    found = page.evaluate(
        """(asked) => {
          const E = Transduce.engine, texts = JSON.parse(asked);
          const places = (text, pattern) => E.found(E.piece(text), pattern);
          return JSON.stringify(texts.map((text) => [places(text, E.PUNCTUATION), places(text, E.BYTE_LEVEL_WORDS)]));
        }""",
        json.dumps(asked),
    )
    signs, words = pre_tokenizers.Punctuation("removed"), pre_tokenizers.ByteLevel(add_prefix_space=False)
    wrong = []
    for text, (punctuation, cut) in zip(asked, json.loads(found), strict=True):
        kept = "".join(char for i, char in enumerate(text) if [i, i + 1] not in punctuation)
        wanted = "".join(piece for piece, _ in signs.pre_tokenize_str(text))
        if kept != wanted or cut != [list(place) for _, place in words.pre_tokenize_str(text)]:
            wrong.append((text, punctuation, cut))
    assert wrong == []


def altered(**parts: Any) -> str:
    return json.dumps({**json.loads(LEARNT["bpe"]()), **parts})


def of_model(**parts: Any) -> str:
    return altered(model={**json.loads(LEARNT["bpe"]())["model"], **parts})


def replacing(pattern: str) -> str:
    return altered(normalizer={"type": "Replace", "pattern": {"Regex": pattern}, "content": " "})


def adding(**token: Any) -> str:
    inner = Inner.from_str(LEARNT["bpe"]())
    inner.add_tokens([AddedToken("new", **{"normalized": False, **token})])
    return str(inner.to_str())


REFUSED: dict[str, Callable[[], str]] = {
    "tokenizer.normalizer: NFKC": lambda: altered(normalizer={"type": "NFKC"}),
    "tokenizer.normalizer: Replace: the pattern": lambda: replacing("a|b"),
    'pattern "a\\*"': lambda: replacing("a*"),
    'pattern "\\^a"': lambda: replacing("^a"),
    'pattern "."': lambda: replacing("."),
    "places without characters": lambda: replacing(r"\A"),
    "tokenizer.pre_tokenizer: BertPreTokenizer": lambda: altered(pre_tokenizer={"type": "BertPreTokenizer"}),
    "MergedWithNext": lambda: altered(pre_tokenizer={"type": "Punctuation", "behavior": "MergedWithNext"}),
    "invert": lambda: altered(
        pre_tokenizer={"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": True}
    ),
    "tokenizer.decoder: WordPiece": lambda: altered(decoder={"type": "WordPiece", "prefix": "##", "cleanup": True}),
    "tokenizer.post_processor: ByteLevel": lambda: altered(
        post_processor={"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True}
    ),
    "tokenizer.model: WordPiece": lambda: of_model(type="WordPiece"),
    "tokenizer.model: byte_fallback": lambda: of_model(byte_fallback=True),
    "tokenizer.model: dropout": lambda: of_model(dropout=0.1),
    "suffixes": lambda: of_model(end_of_word_suffix="</w>"),
    "unknown characters": lambda: of_model(unk_token=None),
    "tokenizer.added_tokens: .new.": lambda: adding(single_word=True),
    "other ways than by its spelling": lambda: adding(normalized=True),
    "no end token": lambda: altered(
        model={"type": "WordLevel", "vocab": {"a": 0, "<unk>": 1}, "unk_token": "<unk>"}, added_tokens=[]
    ),
    "cannot be read": lambda: "{",
}


@pytest.mark.parametrize("problem", REFUSED)
def test_what_would_be_read_otherwise_is_refused(page: Page, problem: str) -> None:
    found = page.evaluate(
        """(json) => {
          try {
            Transduce.engine.tokenizer(json);
          } catch (problem) {
            return [problem instanceof Transduce.engine.Unsupported, problem.message];
          }
        }""",
        REFUSED[problem](),
    )
    assert found is not None
    assert found[0]
    assert re.search(problem, found[1]), found[1]


def test_lone_surrogates_and_unknown_names_are_refused(page: Page) -> None:
    page.evaluate("(json) => { window.bpe = Transduce.engine.tokenizer(json); }", LEARNT["bpe"]())
    with pytest.raises(Error, match="unit 2 of the text is half of a character"):
        page.evaluate("bpe.encode('a\\ud800b')")
    with pytest.raises(Error, match='"nobody" is not a token'):
        page.evaluate("bpe.ids(['nobody'])")
    with pytest.raises(Error, match='"nobody" is not a token'):
        page.evaluate("bpe.withRoles({ end: 'nobody' })")


COLUMNS: list[dict[str, Any]] = [
    {},
    {"starts": True},
    {"ends": True},
    {"starts": True, "ends": True},
    {"stream": True},
    {"stream": True, "starts": True},
    {"starts": True, "ends": True, "before": ("[tag]", "|V")},
    {"before": ("[tag]", "|V"), "after": ("</s>", "[tag]")},
    {"ends": True, "never": (), "never_first": ("</s>", "[tag]", "</s>")},
    {"ends": True, "never": ("|V", "</s>", "<s>", "|V"), "between": ("</s>", "</s>")},
]


@pytest.mark.parametrize("positions", [None, 1, 4, 9])
@pytest.mark.parametrize("settings", COLUMNS, ids=str)
def test_columns_stand_around_a_text_as_in_python(page: Page, settings: dict[str, Any], positions: int | None) -> None:
    text = LEARNT["bpe, symbols"]()
    for roles in ({}, {"start": "[tag]", "pad": ""}):
        python = Tokens(Tokenizer.from_json(text).with_roles(roles), **settings, positions=positions)
        rows = [python.tokenizer.encode([each])[0] for each in ("", "a", TRAINING[0])]
        found = page.evaluate(
            """([json, table, rows, positions]) => {
              const column = Transduce.engine.column(table, Transduce.engine.tokenizer(json), positions);
              const { start, end, forced, forbidden, forbiddenFirst, separator } = column;
              const around = [rows.map(column.closed), rows.map(column.framed)];
              return [start, end, forced, forbidden, forbiddenFirst, separator, ...around];
            }""",
            [text, {"kind": python.kind, **python.to_dict()}, rows, positions],
        )
        arrays = [np.asarray(row, np.int32) for row in rows]
        framed = [python.collate_texts([row]).values[0].tolist() for row in arrays]
        told = [python.start, python.end, python.opening, python.unwritten, python.unwritten_first, python.separator]
        assert found == [*told, [python.closed(row) for row in rows], framed]


def test_other_columns(page: Page) -> None:
    labels = Label(("good", "bad"))
    table = {"kind": labels.kind, **labels.to_dict()}
    assert page.evaluate("(table) => Transduce.engine.column(table)", table) == {"labels": ["good", "bad"]}
    with pytest.raises(Error, match="the kind frames is not known here"):
        page.evaluate("Transduce.engine.column({ kind: 'frames' })")
