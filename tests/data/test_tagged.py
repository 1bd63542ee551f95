"""Files of words with labels: every format, labels in one scheme, and what is wrong said by file and line."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import pytest

from transduce.core.errors import InputError
from transduce.data.structures.word_units import unit_bounds, units_of
from transduce.data.tagged import TaggedFile, TaggedTexts, check_labels, going_on, read_tagged, unseen_labels

SENTENCE = [("EU", "B-ORG"), ("rejects", "O"), ("German", "B-MISC"), ("call", "O")]
WANTED = [("EU rejects German call", "B-ORG O B-MISC O"), ("Peter Blackburn", "B-PER I-PER")]


def pairs(texts: TaggedTexts) -> list[tuple[str, str]]:
    return [(words, labels) for _, words, labels in texts.examples]


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder


def read(folder: Path, name: str, text: str, unit: Any = "word", scheme: Any = None, **keys: Any) -> TaggedTexts:
    return read_tagged(TaggedFile(file=name, **keys), written(folder, name, text), unit, scheme)


CONLL = "EU\tB-ORG\nrejects\tO\nGerman\tB-MISC\ncall\tO\n\nPeter\tB-PER\nBlackburn\tI-PER\n"
CONLL2003 = """-DOCSTART- -X- O O

EU NNP I-NP B-ORG
rejects VBZ I-VP O
German JJ I-NP B-MISC
call NN I-NP O

Peter NNP I-NP B-PER
Blackburn NNP I-NP I-PER

"""
CONLLU = "# text = EU rejects\n1-2\tEUr\t_\t_\t_\t_\t_\t_\t_\t_\n" + "".join(
    f"{number}\t{word}\t_\t{label}\tX{number}\t_\t0\troot\t_\t_\n" for number, (word, label) in enumerate(SENTENCE, 1)
)
CONLLU += "4.1\tempty\t_\tO\t_\t_\t_\t_\t_\t_\n\n1\tPeter\t_\tB-PER\t_\t_\t0\troot\t_\t_\n"
CONLLU += "2\tBlackburn\t_\tI-PER\t_\t_\t0\troot\t_\t_\n"
OBJECTS = [
    {"tokens": [word for word, _ in SENTENCE], "ner_tags": [label for _, label in SENTENCE]},
    {"text": "Peter Blackburn", "spans": [{"start": 0, "end": 15, "label": "PER"}]},
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("train.conll", CONLL),
        ("train.bio", CONLL.replace("\n\n", "\n\t\n")),  # an "empty" line with a tab
        ("train.txt", CONLL2003),
        ("train.iob", CONLL2003.replace("\n", "\r\n")),
        ("train.conllu", CONLLU),
        ("train.jsonl", "".join(json.dumps(each) + "\n" for each in OBJECTS)),
    ],
)
def test_every_format_holds_the_same_texts(tmp_path: Path, name: str, text: str) -> None:
    texts = read(tmp_path, name, text)
    assert pairs(texts) == WANTED
    assert texts.notes == []


def test_words_and_labels_may_stand_in_texts(tmp_path: Path) -> None:
    lines = [json.dumps({"source": words, "target": labels, "w": "a", "l": "X"}) + "\n" for words, labels in WANTED]
    assert pairs(read(tmp_path, "a.jsonl", "".join(lines))) == WANTED
    assert pairs(read(tmp_path, "a.jsonl", "".join(lines), word="w", label="l")) == [("a", "X")] * 2


def test_packed_files_and_other_columns(tmp_path: Path) -> None:
    (tmp_path / "train.conll.gz").write_bytes(gzip.compress(CONLL2003.encode()))
    texts = read_tagged(TaggedFile(file="train.conll.gz", word=0, label=1), tmp_path)
    assert pairs(texts)[0] == ("EU rejects German call", "NNP VBZ JJ NN")
    found = read(tmp_path, "a.conllu", CONLLU, label="xpos")
    assert pairs(found)[0] == ("EU rejects German call", "X1 X2 X3 X4")
    assert [line for line, _, _ in found.examples] == [3, 9]


@pytest.mark.parametrize(
    ("labels", "scheme", "wanted", "told"),
    [
        ("I-X O I-X B-X", None, "B-X O B-X B-X", "IOB1 labels became BIO."),
        ("O I-X B-Y", None, "O B-X B-Y", "1 span begins with a label inside, as I- behind O, .*first: line 2"),
        ("B-X L-X U-Y", None, "B-X E-X S-Y", "BILOU labels became BIOES."),
        ("B-X I-X O", "bioes", "B-X E-X O", "BIO labels became BIOES."),
        ("B-X E-X S-Y", "bio", "B-X I-X B-Y", "BIOES labels became BIO."),
        ("B-X I-X", "none", "B-X I-X", None),
        ("NOUN VERB", None, "NOUN VERB", None),
    ],
)
def test_labels_are_of_one_scheme(tmp_path: Path, labels: str, scheme: Any, wanted: str, told: str | None) -> None:
    text = "".join(f"w\t{label}\n" for label in labels.split())
    texts = read(tmp_path, "a.conll", text, scheme=scheme)
    assert pairs(texts)[0][1] == wanted
    assert len(texts.notes) == (told is not None)
    assert told is None or re.search(told, texts.notes[0])


def test_spaces_in_words_become_one_character(tmp_path: Path) -> None:
    texts = read(tmp_path, "a.conllu", "1\t10 000\t_\tNUM\t_\t_\t_\t_\t_\t_\n2\tmen\t_\tNOUN\t_\t_\t_\t_\t_\t_\n")
    assert pairs(texts) == [("10\u00a0000 men", "NUM NOUN")]
    assert texts.notes == [f"{tmp_path / 'a.conllu'}: 1 word had spaces inside, which became U+00A0."]
    [(words, labels)] = pairs(read(tmp_path, "a.jsonl", '{"tokens": ["a", "", "b"], "tags": [1, 2, 1]}\n'))
    assert (len(words.split(" ")), labels) == (3, "1 2 1")


def test_segmented_text_is_labelled_by_characters(tmp_path: Path) -> None:
    texts = read(tmp_path, "a.txt", "我 喜欢 计算机 。\n\n", "character", "bmes", segmented=True)
    assert pairs(texts) == [("我 喜 欢 计 算 机 。", "S B E B M E S")]


def test_a_unit_cuts_words_whose_labels_go_on(tmp_path: Path) -> None:
    texts = read(tmp_path, "a.conll", "U.S.\tB-LOC\nnow\tO\n", "split")
    assert pairs(texts) == [("U . S . now", "B-LOC I-LOC I-LOC I-LOC O")]
    assert texts.notes == [f"{tmp_path / 'a.conll'}: 1 word was cut into parts, which have its label."]
    assert going_on("S-X", 3) == ["B-X", "I-X", "E-X"]
    assert going_on("M", 2) == ["M", "M"]
    assert going_on("U-X", 2) == ["B-X", "L-X"]
    assert going_on("NOUN", 2) == ["NOUN", "NOUN"]


def test_spans_that_cut_words_are_widened(tmp_path: Path) -> None:
    texts = read(tmp_path, "a.jsonl", '{"text": "in Berlin, now", "label": [[3, 9, "LOC"]]}\n')
    assert pairs(texts) == [("in Berlin, now", "O B-LOC O")]
    assert texts.notes == [f"{tmp_path / 'a.jsonl'}: 1 span cut a word and became all of it."]
    assert pairs(read(tmp_path, "a.jsonl", '{"text": "in Berlin, now", "label": [[3, 9, "LOC"]]}\n', "split")) == [
        ("in Berlin , now", "O B-LOC O O")
    ]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.conll", "a\tO\nEU\nb\tO\n", r'a\.conll, line 2: expected a word and its label; got "EU"'),
        ("a.conllu", "1\tEU\n", r'a\.conllu, line 1: expected the ten tab-separated columns of CoNLL-U; got "1\tEU"'),
        (
            "a.jsonl",
            '{"tokens": ["a", "b"], "tags": ["O"]}\n',
            "line 1: expected a label for each token; got 2 tokens and 1",
        ),
        ("a.jsonl", '{"words": "a"}\n', r'line 1: expected an object with "tokens" and "ner_tags"'),
        ("a.jsonl", "\nno\n", r'line 2: expected an object with "tokens"'),
        (
            "a.jsonl",
            '{"text": "New York City", "spans": [[0, 8, "LOC"], [4, 13, "ORG"]]}\n',
            r'line 1: expected spans that share no word; "New York" \(LOC\) and "York City" \(ORG\) do',
        ),
        ("a.jsonl", '{"text": "New", "spans": [[0, 8, "LOC"]]}\n', r"expected spans as .* within 3 characters"),
        ("a.jsonl", '{"text": "a  b", "spans": [[1, 2, "LOC"]]}\n', r"expected words in the span \[1, 2"),
        ("a.jsonl", '{"text": "New", "spans": [[0, %s, "LOC"]]}\n' % ("9" * 5000), "expected spans as .* within 3"),
        ("a.jsonl", '{"text": "New", "spans": [[0, 3, "\\ud83d"]]}\n', "line 1: expected text; got half a character"),
        ("a.jsonl", '{"tokens": ["\\ud83d"], "tags": ["O"]}\n', "line 1: expected text; got half a character"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read(tmp_path, name, text)


def test_a_scheme_that_labels_are_not_of_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'line 1: expected labels of the scheme bio, such as B-PER or O; got "NOUN"'):
        read(tmp_path, "a.conll", "a\tNOUN\n", scheme="bio")


def test_many_wrong_lines_are_counted(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        read(tmp_path, "a.conll", "EU\n" * 30)
    assert len(raised.value.problems) == 11
    assert raised.value.problems[-1].endswith("20 more lines like these.")


def test_keys_that_are_not_read_are_refused() -> None:
    for keys in ({"segmented": True, "label": 3}, {"file": "a.jsonl", "word": 1}, {"label": "upos"}):
        with pytest.raises(ValueError, match="label"):
            TaggedFile(**{"file": "a.conll", **keys})


def test_labels_that_training_never_had_are_told() -> None:
    texts = TaggedTexts([(1, "a b c", "X Y Y")], [])
    assert unseen_labels(["X"], texts.labels) == (
        '2 words have a label that training never had, and will be missed: "Y".'
    )
    assert unseen_labels(["X", "Y"], texts.labels) == ""


def test_lines_with_other_numbers_of_columns_need_columns_that_are_named(tmp_path: Path) -> None:
    text = "EU B-ORG\nNew York B-LOC\ncall O\n"
    with pytest.raises(InputError, match='line 2: expected 2 columns, as in line 1; got "New York B-LOC"'):
        read(tmp_path, "a.conll", text)
    assert pairs(read(tmp_path, "a.conll", text, label=-1)) == [("EU New call", "B-ORG B-LOC O")]
    with pytest.raises(InputError, match='line 1: expected 3 columns; got "EU B-ORG"'):
        read(tmp_path, "a.conll", text, label=-3)


@pytest.mark.parametrize(
    ("text", "unit", "wanted"),
    [
        ("  Don't stop, U.S.\tnow ", "word", ["Don't", "stop,", "U.S.", "now"]),
        ("Don't stop, now", "split", ["Don", "'", "t", "stop", ",", "now"]),
        ("नमस्ते, दुनिया", "split", ["नमस्ते", ",", "दुनिया"]),
        ("我 爱\u3000你", "character", ["我", "爱", "你"]),
        ("10\u00a0000 men", "word", ["10\u00a0000", "men"]),
        ("", "word", []),
    ],
)
def test_units_of_text(text: str, unit: str, wanted: list[str]) -> None:
    assert units_of(text, unit) == wanted
    assert [text[start:end] for start, end in unit_bounds(text, unit)] == wanted
    assert units_of(" ".join(wanted), unit) == wanted


def test_a_column_of_other_things_than_labels_is_refused() -> None:
    lemmas = [f"lemma{number}" for number in range(5_001)]
    with pytest.raises(InputError, match=r'5,000 different labels; got 5,001, such as "lemma0", .* Name the column'):
        check_labels(Path("a.conll"), lemmas)
    check_labels(Path("a.conll"), lemmas[1:])
    with pytest.raises(InputError, match="at most 1,000 different labels; got 1,002"):
        check_labels(Path("a.conll"), [f"{letter}-{number}" for number in range(501) for letter in "BI"])
