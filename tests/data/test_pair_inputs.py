"""Files of pairs where inputs are read: their columns are the recipe's, and targets may be missing."""

import gzip
import json
import os
import zipfile
from pathlib import Path

import pytest

from transduce.core.errors import InputError
from transduce.data.pairs.known_columns import AskedColumns, Known, known_of, read_asked, read_pair_inputs
from transduce.data.pairs.pair_files import PairFiles

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
        ("a.csv", "English,Swahili\ndog,mbwa\n", TWO_FILES, ("dog", ["mbwa"])),
        ("a.csv", "sw,English\nmbwa,dog\n", TWO_FILES, ("dog", ["mbwa"])),
        ("a.csv", "target,english text\nmbwa,dog\n", TWO_FILES, ("dog", ["mbwa"])),
        ("a.csv", "lemma,tags\ngo,PAST\n", INFLECTED, ("go#PAST", [])),
        ("a.jsonl", '{"en": "dog", "sw": "mbwa"}\n', TWO_FILES, ("dog", ["mbwa"])),
        ("a.jsonl", '{"source": "dog", "target": null}\n{"source": "cat", "target": "paka"}\n', TWO_FILES, ("dog", [])),
        ("a.jsonl", '{"pair": {"en": "dog", "sw": "mbwa"}}\n{"pair": {"en": "cat"}}\n', OBJECTS, ("dog", ["mbwa"])),
        ("a.tsv", "a title\n", PairFiles(tsv="b.tsv", source_column=0, target_column=2), None),
        ("a.tsv", "1\tdog\n", PairFiles(tsv="b.tsv", source_column=1, target_column=2), ("dog", [])),
        ("a.csv", "source,target\ndog, \n", TWO_FILES, ("dog", [" "])),
        ("a.tmx", TMX, TWO_FILES, ("dog", ["mbwa"])),
        ("a.tmx", TMX, PairFiles(tmx="b.tmx", source_column="sw", target_column="en"), ("mbwa", ["dog"])),
        ("a.tmx", TMX, PairFiles(tmx="b.tmx", source_column="en", target_column="fr"), ("dog", [])),
    ],
)  # fmt: skip
def test_sources_and_targets_are_read(
    tmp_path: Path, name: str, text: str, known: PairFiles, read: tuple[str, list[str]] | None
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = read_pair_inputs(tmp_path / name, Known([known], tmp_path, ("en", "sw")))
    assert (found and (found.texts[0], found.references[0])) == read


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
    assert read_pair_inputs(tmp_path / name, Known([known], tmp_path, ("en", "sw"))) is None


@pytest.mark.parametrize(
    ("name", "text", "known", "told"),
    [
        ("a.tsv", "dog\tmbwa\n", TWO_FILES, "the first column was read as the source, the next as the target"),
        ("a.csv", "text\ndog\n", TWO_FILES, "the first column was read as the source (text)"),
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
    found = read_pair_inputs(tmp_path / name, Known([known], tmp_path, ("en", "sw")))
    assert found is not None
    assert bool(found.note) == bool(told)
    assert told in found.note


@pytest.mark.parametrize(
    ("name", "text", "asked", "read"),
    [
        ("a.csv", "n,en,sw,fr\n1,dog,mbwa,chien\n", AskedColumns(("en",), "fr"), ("dog", ["chien"])),
        ("a.csv", "n,en,sw,fr\n1,dog,mbwa,chien\n", AskedColumns(("fr",)), ("chien", ["mbwa"])),
        ("a.csv", "n,x,y\n1,dog,mbwa\n", AskedColumns(("x",)), ("dog", [])),
        ("a.csv", "x,y\ndog,mbwa\n", AskedColumns(("y",)), ("mbwa", ["dog"])),
        ("a.csv", "x,y\ndog,mbwa\n", AskedColumns((), "x"), ("mbwa", ["dog"])),
        ("a.csv", "n,x,y\n1,dog,mbwa\n", AskedColumns((2,), 1), ("mbwa", ["dog"])),
        ("a.jsonl", '{"x": "dog", "y": "mbwa", "z": "t"}\n', AskedColumns(("x", "z"), "y"), ("dog | t", ["mbwa"])),
        ("a.jsonl", '{"pair": {"x": "dog", "y": "mbwa"}}\n', AskedColumns(("pair.y",), "pair.x"), ("mbwa", ["dog"])),
        ("a.tsv", "1\tdog\tmbwa\n", AskedColumns((1,), 2), ("dog", ["mbwa"])),
        ("a.tsv", "1\tdog\tmbwa\n", AskedColumns((1,)), ("dog", [])),
        ("a.tsv", "dog\tmbwa\n", AskedColumns((1,)), ("mbwa", ["dog"])),
    ],
)
def test_columns_that_are_named_are_read(
    tmp_path: Path, name: str, text: str, asked: AskedColumns, read: tuple[str, list[str]]
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = read_pair_inputs(tmp_path / name, Known([CSV, OBJECTS], tmp_path, ("en", "sw"), asked))
    assert found is not None
    assert (found.texts[0], found.references[0], found.note) == (*read, "")


def test_wrong_columns_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("n,x,y\n1,dog,mbwa\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("dog\n", encoding="utf-8")
    config = {"task": {"kind": "translation"}, "data": {}}
    for name, asked, told in [
        ("a.csv", AskedColumns(("z",)), "expected columns z; it has n, x, y"),
        ("a.csv", AskedColumns((), "x"), "which column is the source. Name it with --source-column; it has n, x, y"),
        ("a.txt", AskedColumns(("x",)), "expected a file with columns"),
    ]:
        with pytest.raises(InputError, match=told):
            read_asked(tmp_path / name, config, asked)
    with pytest.raises(InputError, match="the model's task is classification"):
        read_asked(tmp_path / "a.csv", {"task": {"kind": "classification"}}, AskedColumns(("x",)))


def test_the_only_two_keys_are_source_and_target(tmp_path: Path) -> None:
    """As two columns of a .csv; which was which, is told unless their names say it."""
    (tmp_path / "a.jsonl").write_text('{"x": "dog", "y": "mbwa"}\n', encoding="utf-8")
    found = read_pair_inputs(tmp_path / "a.jsonl", Known([TWO_FILES], tmp_path, ("en", "sw")))
    assert found is not None
    assert (found.texts, found.references) == (["dog"], [["mbwa"]])
    assert "the first column was read as the source, the next as the target (x, y)" in found.note


def test_the_file_of_the_same_name_says_the_columns(tmp_path: Path) -> None:
    (tmp_path / "test.tsv.gz").write_bytes(gzip.compress(b"dog||mbwa||x\n"))
    test = PairFiles(tsv="data/test.tsv.gz", source_column=1, target_column=0, separator="||")
    found = read_pair_inputs(tmp_path / "test.tsv.gz", Known([PairFiles(tsv="train.tsv"), test], tmp_path, ("", "")))
    assert found is not None
    assert (found.texts, found.references) == (["mbwa"], [["dog"]])


@pytest.mark.parametrize(
    ("name", "text", "known", "told"),
    [
        (
            "a.csv",
            "a,b,c\n1,2,3\n",
            TWO_FILES,
            "expected the source in column source or en; it has a, b, c",
        ),
        ("a.csv", "source,target\ndog,mbwa\n", CSV, "expected columns en; its header has source, target"),
        ("a.tsv", "a title\ndog\tmbwa\n", TWO_FILES, "expected 2 tab-separated columns"),
        ("a.jsonl", "dog\n", TWO_FILES, "line 1: expected an object"),
        ("a.tmx", TMX.replace("en-US", "fr"), TWO_FILES, "expected the source in column en; it has fr, sw"),
        ("a.tmx", "<tmx>", TWO_FILES, "line 1"),
    ],
)
def test_what_cannot_be_read_is_refused(tmp_path: Path, name: str, text: str, known: PairFiles, told: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=told):
        read_pair_inputs(tmp_path / name, Known([known], tmp_path, ("en", "sw")))
    with pytest.raises(InputError, match="no such file"):
        read_pair_inputs(tmp_path / f"no.{name}", Known([known], tmp_path, ("en", "sw")))


def test_the_very_file_of_the_recipe_is_read_as_there(tmp_path: Path) -> None:
    entries = [PairFiles(csv=f"{folder}/test.csv", target_column=column) for folder, column in (("p", 1), ("q", 2))]
    for folder in ("p", "q", "r"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "test.csv").write_text("en,fr,de\ndog,chien,Hund\n", encoding="utf-8")
    known = Known(entries, tmp_path, ("", ""))
    for folder, target in (("p", ["chien"]), ("q", ["Hund"]), ("r", [])):
        found = read_pair_inputs(tmp_path / folder / "test.csv", known)
        assert found is not None
        assert (found.texts, found.references) == (["dog"], [target])
    assert found.missing.startswith("the recipe has several columns of targets: 1, 2.")
    twice = Known([PairFiles(csv="a.csv", source_column=each) for each in (0, 1)], tmp_path, ("", ""))
    with pytest.raises(InputError, match="the recipe reads such files in several ways"):
        read_pair_inputs(tmp_path / "r" / "test.csv", twice)
    fits = Known(
        [PairFiles(csv="a.csv", source_column="x"), PairFiles(csv="b.csv", source_column="de")], tmp_path, ("", "")
    )
    assert (found := read_pair_inputs(tmp_path / "r" / "test.csv", fits)) is not None
    assert found.texts == ["Hund"]


def test_why_there_are_no_targets_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("source,translation,note\ndog,mbwa,x\n", encoding="utf-8")
    found = read_pair_inputs(tmp_path / "a.csv", Known([TWO_FILES], tmp_path, ("en", "sw")))
    assert found is not None
    assert found.missing == "expected the target in column target; it has source, translation, note."


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_pipes_and_names_that_are_no_text_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(InputError, match="got a pipe"):
        read_pair_inputs(tmp_path / "a.csv", Known([TWO_FILES], tmp_path, ("", "")))
    with pytest.raises(InputError, match="its name is not UTF-8"):
        read_pair_inputs(tmp_path / "\udcff.csv", Known([TWO_FILES], tmp_path, ("", "")))


def test_a_memory_in_an_archive_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("in/a.tmx", TMX)
    found = read_pair_inputs(tmp_path / "a.zip" / "in" / "a.tmx", Known([TWO_FILES], tmp_path, ("en", "sw")))
    assert found is not None
    assert found.texts == ["dog", ""]
    assert found.references == [["mbwa"], ["paka"]]


def test_the_languages_of_a_memory_must_be_known(tmp_path: Path) -> None:
    (tmp_path / "a.tmx").write_text(TMX, encoding="utf-8")
    with pytest.raises(
        InputError,
        match="the source in the language that the model reads, which its recipe does not say; it has en-US, sw",
    ):
        read_pair_inputs(tmp_path / "a.tmx", Known([TWO_FILES], tmp_path, ("", "")))


def test_the_entries_of_a_model_file_are_those_of_its_recipe() -> None:
    entries = {"train": [TWO_FILES, CSV], "validation": None, "test": {"one": INFLECTED}}
    data = json.loads(json.dumps(entries, default=lambda each: each.model_dump(mode="json", exclude_none=True)))
    known = known_of({"data": {**data, "root": "x"}, "task": {"source": "en", "target": "sw"}})
    assert known == Known([INFLECTED, TWO_FILES, CSV], Path("x"), ("en", "sw"))
    assert known_of({}) == Known([], Path(), ("", ""))
    for wrong in ({"test": [1]}, {"train": 1}, {"train": "x"}, {"train": [{"text": "x"}]}):
        with pytest.raises(InputError, match="the model file: expected"):
            known_of({"data": wrong})
