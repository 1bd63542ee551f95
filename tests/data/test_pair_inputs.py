"""Files of pairs where inputs are read: their columns are the recipe's, and targets may be missing."""

import gzip
import json
from pathlib import Path

import pytest

from transduce.core.errors import InputError
from transduce.data.pair_files import PairFiles
from transduce.data.pair_inputs import known_files, read_pair_inputs

TMX = (
    '<tmx version="1.4"><header/><body><tu><tuv xml:lang="en-US"><seg>dog</seg></tuv><tuv xml:lang="sw"><seg>mbwa'
    '</seg></tuv></tu><tu><tuv xml:lang="sw"><seg>paka</seg></tuv></tu></body></tmx>'
)
TWO_FILES = PairFiles(source="train.en", target="train.sw")
CSV = PairFiles(csv="train.csv", source_column="en", target_column="sw", pairs=None, weight=2.0, to="sw")
INFLECTED = PairFiles(tsv="train.tsv", source_column=(0, 2), target_column=1, source_separator="#")
OBJECTS = PairFiles(jsonl="train.jsonl", source_column="pair.en", target_column="pair.sw")


@pytest.mark.parametrize(
    ("name", "text", "known", "read"),
    [
        ("a.tsv", "dog\tmbwa\ta note\n", TWO_FILES, ("dog", ["mbwa"])),
        ("a.csv", "source,target\ndog,mbwa\n", TWO_FILES, ("dog", ["mbwa"])),
        ("a.csv", "en;sw\ndog;mbwa\n", TWO_FILES, ("dog", ["mbwa"])),
        ("a.csv", "text\ndog\n", TWO_FILES, ("dog", [])),
        ("a.csv", "SW,number,en-GB\nmbwa,1,dog\n", TWO_FILES, ("dog", ["mbwa"])),
        ("a.csv", "number,source\n1,dog\n", TWO_FILES, ("dog", [])),
        ("a.CSV", 'sw,en\nmbwa,"dog, or ""dog"""\n', CSV, ('dog, or "dog"', ["mbwa"])),
        ("a.csv", "number,en\n1,dog\n", CSV, ("dog", [])),
        ("a.jsonl", '{"source": "dog", "target": "mbwa"}\n', CSV, ("dog", ["mbwa"])),
        ("a.jsonl", '\n{"source": "dog"}\n', TWO_FILES, ("dog", [])),
        ("a.jsonl", '{"source": 1, "target": 2}\n', TWO_FILES, ("1", ["2"])),
        ("a.jsonl", '{"pair": {"en": "dog", "sw": "mbwa"}}\n', OBJECTS, ("dog", ["mbwa"])),
        ("a.jsonl", '{"pair": {"en": "dog"}}\n', OBJECTS, ("dog", [])),
        ("a.tsv", "go\twent\tPAST\n", INFLECTED, ("go#PAST", ["went"])),
        ("a.csv", "source,target\ndog,mbwa\n", INFLECTED, ("dog", ["mbwa"])),
        ("a.tsv", "go\tPAST\twent\n", PairFiles(csv="a.csv", source_column=(1, 0)), ("go | PAST", ["went"])),
        ("a.tmx", TMX, TWO_FILES, ("dog", ["mbwa"])),
        ("a.tmx", TMX, PairFiles(tmx="b.tmx", source_column="sw", target_column="en"), ("mbwa", ["dog"])),
        ("a.tmx", TMX, PairFiles(tmx="b.tmx", source_column="en", target_column="fr"), ("dog", [])),
    ],
)  # fmt: skip
def test_sources_and_targets_are_read(
    tmp_path: Path, name: str, text: str, known: PairFiles, read: tuple[str, list[str]]
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = read_pair_inputs(tmp_path / name, [known], ("en", "sw"))
    assert found is not None
    assert (found.texts[0], found.references[0]) == read


@pytest.mark.parametrize(
    ("name", "text", "known"),
    [
        ("a.txt", "dog\tmbwa\n", TWO_FILES),
        ("a.tsv", "dog\n", TWO_FILES),
        ("a.tsv", "go\tPAST\n", INFLECTED),
        ("a.tsv", "go\tPAST\n", PairFiles(csv="a.csv", source_column=(1, 0))),
        ("a.tsv", "", TWO_FILES),
    ],
)
def test_other_files_have_a_source_a_line(tmp_path: Path, name: str, text: str, known: PairFiles) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert read_pair_inputs(tmp_path / name, [known], ("en", "sw")) is None


@pytest.mark.parametrize(
    ("name", "text", "known", "told"),
    [
        ("a.tsv", "dog\tmbwa\n", TWO_FILES, "the first column was read as the source, the next as the target"),
        ("a.csv", "text\ndog\n", TWO_FILES, "the first column was read as the source; "),
        ("a.tsv", "go\tPAST\twent\n", PairFiles(csv="a.csv", source_column=(1, 0)), "the first 2 columns were read"),
        ("a.tsv", "go\twent\tPAST\n", INFLECTED, ""),
        ("a.csv", "source,target\ndog,mbwa\n", TWO_FILES, ""),
        ("a.jsonl", '{"source": "dog"}\n', TWO_FILES, ""),
    ],
)
def test_what_columns_were_read_is_told_where_nobody_said_it(
    tmp_path: Path, name: str, text: str, known: PairFiles, told: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = read_pair_inputs(tmp_path / name, [known], ("en", "sw"))
    assert found is not None
    assert bool(found.note) == bool(told)
    assert told in found.note


def test_the_file_of_the_same_name_says_the_columns(tmp_path: Path) -> None:
    (tmp_path / "test.tsv.gz").write_bytes(gzip.compress(b"dog||mbwa||x\n"))
    test = PairFiles(tsv="data/test.tsv.gz", source_column=1, target_column=0, separator="||")
    found = read_pair_inputs(tmp_path / "test.tsv.gz", [PairFiles(tsv="train.tsv"), test], ("", ""))
    assert found is not None
    assert (found.texts, found.references) == (["mbwa"], [["dog"]])


@pytest.mark.parametrize(
    ("name", "text", "known", "told"),
    [
        (
            "a.csv",
            "a,b,c\n1,2,3\n",
            TWO_FILES,
            "expected columns called source and target or en and sw; it has a, b, c",
        ),
        ("a.csv", "source,target\ndog,mbwa\n", CSV, "expected columns en; its header has source, target"),
        ("a.tsv", "dog\tmbwa\npaka\n", TWO_FILES, "expected 2 tab-separated columns"),
        ("a.jsonl", "dog\n", TWO_FILES, "line 1: expected an object"),
        ("a.tmx", TMX.replace("en-US", "fr"), TWO_FILES, "expected units in en and sw; it has fr, sw"),
        ("a.tmx", "<tmx>", TWO_FILES, "line 1"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, name: str, text: str, known: PairFiles, told: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=told):
        read_pair_inputs(tmp_path / name, [known], ("en", "sw"))
    with pytest.raises(InputError, match="no such file"):
        read_pair_inputs(tmp_path / f"no.{name}", [known], ("en", "sw"))


def test_the_languages_of_a_memory_must_be_known(tmp_path: Path) -> None:
    (tmp_path / "a.tmx").write_text(TMX, encoding="utf-8")
    with pytest.raises(
        InputError,
        match="expected units in the languages of the model, which its recipe does not say; it has en-US, sw",
    ):
        read_pair_inputs(tmp_path / "a.tmx", [TWO_FILES], ("", ""))


def test_the_entries_of_a_model_file_are_those_of_its_recipe() -> None:
    entries = {"train": [TWO_FILES, CSV], "validation": None, "test": {"one": INFLECTED}}
    data = json.loads(json.dumps(entries, default=lambda each: each.model_dump(mode="json", exclude_none=True)))
    assert known_files(data) == [INFLECTED, TWO_FILES, CSV]
    assert known_files({}) == []
    for wrong in ({"test": [1]}, {"train": 1}, {"train": "x"}, {"train": [{"text": "x"}]}):
        with pytest.raises(InputError, match="the model file: expected"):
            known_files(wrong)
