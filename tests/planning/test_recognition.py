"""Files of other people's shapes under names that say nothing: what they are taken for, or refused with commands."""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from transduce.core.errors import InputError
from transduce.data.pairs.inputs import Named
from transduce.planning.recognition import KINDS, kind_of

N = 60
WORDS = ["the", "film", "is", "and", "acting", "plot", "with", "scene", "end", "music", "very", "rather", "so"]
TAGS = ["DET", "NOUN", "AUX", "CCONJ", *["NOUN"] * 2, "ADP", *["NOUN"] * 3, *["ADV"] * 3]
UPOS = dict(zip(WORDS, TAGS, strict=True))
RANDOM = random.Random(1)
TEXTS = [[*RANDOM.choices(WORDS, k=6), f"w{n}"] for n in range(N)]
OTHERS = [" ".join(RANDOM.choices(WORDS, k=7)) + f" {n}" for n in range(N)]
PERSON = ["Mark", "Watney", "of", "NASA", "waits"]
BIO, BIOES, IOB1 = ("B-PER I-PER O B-ORG O", "B-PER E-PER O S-ORG O", "I-PER I-PER O I-ORG O")


def column_lines(texts: Sequence[Sequence[Sequence[str]]], between: str = "\t") -> str:
    """Words with their columns a line, an empty line behind each text."""
    return "".join("".join(f"{between.join(cells)}\n" for cells in text) + "\n" for text in texts)


def named_people(labels: str = BIO, between: str = "\t", columns: int = 2) -> str:
    rows = [[word, *["NN"] * (columns - 2), label] for word, label in zip(PERSON, labels.split(), strict=True)]
    return column_lines([rows] * 30, between)


def objects(*rows: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def lines(*rows: Sequence[str], between: str = "\t") -> str:
    return "".join(f"{between.join(row)}\n" for row in rows)


def asked(number: int, **more: Any) -> dict[str, Any]:
    return {"id": number, "question": f"Where is {number}?", "context": f"He is in B{number}, they say.", **more}


def squad(count: int) -> str:
    """Questions on texts as in SQuAD's files."""
    paragraphs = [
        {
            "context": f"He is in B{n}.",
            "qas": [{"id": str(n), "question": "Where?", "answers": [{"text": f"B{n}", "answer_start": 9}]}],
        }
        for n in range(count)
    ]
    return json.dumps({"version": "1.1", "data": [{"title": "", "paragraphs": paragraphs}]})


def tagged_object(**more: Any) -> dict[str, Any]:
    return {"tokens": PERSON, "ner_tags": BIO.split(), **more}


def texts_with(*columns: Sequence[str], header: Sequence[str] = (), between: str = "\t") -> str:
    rows = [[" ".join(text), *(column[n % len(column)] for column in columns)] for n, text in enumerate(TEXTS)]
    return lines(*([header] if header else []), *rows, between=between)


PARTS_OF_SPEECH = [[[word, UPOS.get(word, "X")] for word in text] for text in TEXTS]
CONLLU = [
    [[str(n + 1), word, word, UPOS.get(word, "X"), "_", "_", "0", "dep", "_", "_"] for n, word in enumerate(text)]
    for text in TEXTS
]
RECOGNISED: dict[str, tuple[str, str, str]] = {
    "words and BIO with tabs": ("data1.txt", named_people(), "tagging"),
    "words and BIO with spaces": ("data1.tsv", named_people(between=" "), "tagging"),
    "words and BIOES": ("x.txt", named_people(BIOES), "tagging"),
    "IOB1": ("x.tsv", named_people(IOB1), "tagging"),
    "four columns of CoNLL-2003": (
        "data.txt", "-DOCSTART- -X- O O\n\n" + named_people(between=" ", columns=4), "tagging"),
    "no suffix": ("data", named_people(), "tagging"),
    "parts of speech": ("data2.tsv", column_lines(PARTS_OF_SPEECH), "tagging"),
    "CoNLL-U by another name": ("x.txt", "# newdoc\n" + column_lines(CONLLU), "tagging"),
    "CoNLL-U": ("x.conllu", column_lines(CONLLU), "tagging"),
    "characters": ("z.txt", column_lines([[[each, "BE"[n % 2]] for n, each in enumerate("我们喜欢")]] * 9), "tagging"),
    "tokens and labels": ("x.jsonl", objects(*[tagged_object(id=n) for n in range(N)]), "tagging"),
    "tokens and numbers": ("x.jsonl", objects(*[{"words": PERSON, "tags": [1, 2, 0, 3, 0]}] * 5), "tagging"),
    "spans": ("x.jsonl", objects(*[{"text": "Mark waits", "spans": [[0, 4, "PER"]]}] * 5), "tagging"),
    "spans of doccano": ("x.jsonl", objects(*[{"text": "Mark waits", "label": [[0, 4, "PER"]]}] * 5), "tagging"),
    "spans of Prodigy": (
        "x.ndjson", objects(*[{"text": "Mark", "spans": [{"start": 0, "end": 4, "label": "P"}]}] * 5), "tagging"),
    "SQuAD": ("x.json", squad(N), "extractive_qa"),
    "questions with places": (
        "x.jsonl", objects(*[asked(n, answers={"text": [f"B{n}"], "answer_start": [7]}) for n in range(N)]),
        "extractive_qa"),
    "questions with lists": (
        "q.jsonl", objects(*[asked(n, answers=[{"text": f"B{n}"}] * (n % 3)) for n in range(N)]), "extractive_qa"),
    "questions with texts": (
        "q.ndjson", objects(*[asked(n, answer=f"B{n}") for n in range(N)]), "extractive_qa"),
    "answers that are elsewhere": (
        "q.jsonl", objects(*[asked(n, answer=f"no {n}") for n in range(N)]), "translation"),
    "questions with yes and no": (
        "q.jsonl", objects(*[asked(n, answer=["yes", "no"][n % 2]) for n in range(N)]), "classification"),
    "questions and sentences": (
        "data5.tsv", texts_with(OTHERS, ["0", "1"], header=["question", "sentence", "label"]), "classification"),
    "claims and evidence": (
        "y.jsonl", objects(*[{"claim": f"a {n}", "evidence": f"b {n}", "label": "ab"[n % 2]} for n in range(N)]),
        "classification"),
    "intents": ("y.json", json.dumps([{"q": f"how {n}", "intent": "ab"[n % 2]} for n in range(N)]), "classification"),
    "semicolons": ("y.csv", texts_with(["bad", "good"], header=["Text", "Category"], between=";"), "classification"),
    "stars": ("y.csv", texts_with(["1", "2", "5"], header=["review", "stars"], between=","), "classification"),
    "inflection": (
        "y.tsv", lines(*([f"lemma{n // 3}", f"form{n}", ["N;SG", "N;PL"][n % 2]] for n in range(N))), "translation"),
    "translations with their domains": (
        "y.tsv", texts_with([f"das ist der Satz Nummer {n} hier" for n in range(N)], ["news", "law"]), "translation"),
    "bars": ("y.txt", texts_with(OTHERS, between=" ||| "), "translation"),
    "sums": ("y.tsv", lines(*([f"{n} + 1", str(n + 1)] for n in range(N))), "translation"),
    "languages": ("y.csv", texts_with(["bad", "good"], header=["en", "sw"], between=","), "translation"),
    "source and target": (
        "y.jsonl", objects(*[{"source": f"a b {n}", "target": "X Y"} for n in range(N)]), "translation"),
    "columns of numbers": (
        "y.tsv", "\n\n".join(lines(*([str(n), str(n * k)] for n in range(5))) for k in range(9)), "translation"),
    "pairs with empty lines": ("x.tsv", "\n\n".join(f"w{n}\tm{n}" for n in range(N)), "translation"),
    "pairs": ("data1.tsv", texts_with(OTHERS), "translation"),
    "pairs as objects": ("x.jsonl", objects(*[{"a": f"x {n}", "b": f"y {n}"} for n in range(N)]), "translation"),
    "words and phones": ("x.txt", lines(*([f"w{n}", f"w {n}"] for n in range(N))), "translation"),
    "reviews": ("data.csv", texts_with(["bad", "good"], header=["a", "b"], between=","), "classification"),
    "reviews without a header": ("data3.tsv", texts_with(["bad", "good"]), "classification"),
    "benign and malignant": ("data3.tsv", texts_with(["B", "M"]), "classification"),
    "labels of two texts": (
        "data4.tsv", texts_with(OTHERS, ["yes", "no"], header=["sentence1", "sentence2", "label"]), "classification"),
}  # fmt: skip
REFUSED: dict[str, tuple[str, str, set[str]]] = {
    "words, each another one, of few kinds": (
        "x.tsv", column_lines([[[f"w{n}{k}", "AB"[n % 2]] for k in range(3)] for n in range(N)]),
        {"tagging", "classification"}),
    "tags and a label": (
        "x.jsonl", objects(*[tagged_object(text=f"so {n}", label="ab"[n % 2]) for n in range(N)]),
        {"tagging", "classification"}),
    "spans and a label": (
        "x.jsonl", objects(*[{"text": f"M {n}", "entities": [[0, 1, "P"]], "label": "ab"[n % 2]} for n in range(N)]),
        {"tagging", "classification"}),
    "answers of few kinds that stand in their texts": (
        "q.jsonl", objects(*[asked(n, answer=["He", "they"][n % 2]) for n in range(N)]),
        {"extractive_qa", "classification"}),
    "questions and a label": (
        "q.jsonl", objects(*[asked(n, answer=f"B{n}", label="ab"[n % 2]) for n in range(N)]),
        {"extractive_qa", "classification"}),
    "pairs of texts in one language with few labels": (
        "x.tsv", texts_with(OTHERS, ["yes", "no"]), {"classification", "translation"}),
    "columns of numbers of few kinds": (
        "x.csv", texts_with(OTHERS, ["1", "2"], header=["a", "b", "c"], between=","),
        {"classification", "translation"}),
    "most labels are different": (
        "x.csv", texts_with(OTHERS, header=["text", "label"], between=","), {"classification", "translation"}),
    "two texts and a label": (
        "x.csv", texts_with(["a", "b"], [f"{each} too" for each in OTHERS], header=["p", "class", "q"], between=","),
        {"classification", "translation"}),
}  # fmt: skip


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, encoding="utf-8")
    return folder / name


@pytest.mark.parametrize("name", RECOGNISED)
def test_shapes_are_recognised(tmp_path: Path, name: str) -> None:
    file, text, kind = RECOGNISED[name]
    path = written(tmp_path, file, text)
    assert kind_of(Named(path)) == kind
    assert {kind_of(Named(path, task=each)) for each in KINDS} == {*KINDS}


@pytest.mark.parametrize("name", REFUSED)
def test_what_may_be_several_is_refused_with_their_commands(tmp_path: Path, name: str) -> None:
    file, text, kinds = REFUSED[name]
    path = written(tmp_path, file, text)
    with pytest.raises(InputError, match="Say which: ") as error:
        kind_of(Named(path))
    assert {kind for kind in KINDS if f"transduce train {path} --task {kind}" in str(error.value)} == kinds
