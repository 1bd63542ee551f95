"""Every kind of file that pairs come in."""

import zipfile
from pathlib import Path

import pytest
from pydantic import ValidationError

from transduce.core.errors import InputError
from transduce.data.corpus import TsvColumn, lines_of, read_pairs
from transduce.data.files import archived_names, fingerprint
from transduce.data.pairs.pair_files import PairFiles

PAIRS = [(1, "two dogs", "mbwa wawili"), (2, "a, b", 'c "d"')]


def of(folder: Path, **keys: object) -> list[tuple[int, str, str]]:
    return list(read_pairs(PairFiles.model_validate(keys), folder))


def test_csv_by_name_and_by_number(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,sw,en\n1,mbwa wawili,two dogs\n2,"c ""d""","a, b"\n', encoding="utf-8")
    wanted = [(2, *PAIRS[0][1:]), (3, *PAIRS[1][1:])]
    assert of(tmp_path, csv="a.csv", source_column="en", target_column="sw") == wanted
    assert of(tmp_path, csv="a.csv", source_column=2, target_column=1) == wanted


def test_jsonl_has_source_and_target_or_other_keys(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"source": "two dogs", "target": "mbwa wawili"}\n{"target": "c \\"d\\"", "source": "a, b"}\n', encoding="utf-8"
    )
    (tmp_path / "b.jsonl").write_text('{"en": "x", "sw": "y"}\n', encoding="utf-8")
    assert of(tmp_path, jsonl="a.jsonl") == PAIRS
    assert of(tmp_path, jsonl="b.jsonl", source_column="en", target_column="sw") == [(1, "x", "y")]


def test_lines_without_the_keys_are_named(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"source": "x", "target": "y"}\n{"source": "x"}\nno\n', encoding="utf-8")
    with pytest.raises(InputError, match=r'a\.jsonl, line 2: expected an object .*"target".*lines 2, 3 are wrong'):
        of(tmp_path, jsonl="a.jsonl")


@pytest.mark.parametrize("value", ['{"text": "x"}', '["x"]', "null", "NaN"])
def test_what_is_neither_text_nor_a_number_is_refused(value: str, tmp_path: Path) -> None:
    """Python's spelling of an object is no text to learn from."""
    (tmp_path / "a.jsonl").write_text(f'{{"source": {value}, "target": "y"}}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"line 1: expected an object .* of texts"):
        of(tmp_path, jsonl="a.jsonl")


@pytest.mark.parametrize("value", ["1.50", "7E2", "1e400", "true", "10000000000000000000001"])
def test_numbers_stay_as_they_are_written(value: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(f'{{"source": {value}, "target": "y"}}\n', encoding="utf-8")
    assert of(tmp_path, jsonl="a.jsonl") == [(1, value, "y")]


def test_other_keys_are_named_and_may_be_those_of_an_object_in_an_object(tmp_path: Path) -> None:
    lines = ['{"id": 7, "translation": {"en": "x", "sw": "y"}}', "", '{"translation": {"en": "a", "sw": 3}}', ""]
    (tmp_path / "a.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"It has texts in translation\.en, translation\.sw: name the columns"):
        of(tmp_path, jsonl="a.jsonl")
    found = of(tmp_path, jsonl="a.jsonl", source_column="translation.en", target_column="translation.sw")
    assert found == [(1, "x", "y"), (3, "a", "3")]


@pytest.mark.parametrize("between", [";", "\t"])
def test_csv_with_other_separators(between: str, tmp_path: Path) -> None:
    rows = [("source", "target"), ("two, three", "mbwa"), (f'"a{between}b"', "c")]
    (tmp_path / "a.csv").write_text("".join(f"{between.join(row)}\n" for row in rows), encoding="utf-8")
    wanted = [(2, "two, three", "mbwa"), (3, f"a{between}b", "c")]
    assert of(tmp_path, csv="a.csv", source_column="source", target_column="target") == wanted


def test_several_columns_are_one_source(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("walk\twalked\tV;PST\n", encoding="utf-8")
    assert of(tmp_path, tsv="a.tsv", source_column=[0, 2]) == [(1, "walk | V;PST", "walked")]
    assert of(tmp_path, tsv="a.tsv", source_column=[0, 2], source_separator="+") == [(1, "walk+V;PST", "walked")]


def test_files_in_a_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "en-sw.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("X.en-sw.en", "two dogs\na, b\n")
        archive.writestr("X.en-sw.sw", 'mbwa wawili\nc "d"\n')
    (tmp_path / "plain").write_text("two dogs\na, b\n", encoding="utf-8")
    assert of(tmp_path, source="en-sw.zip/X.en-sw.en", target="en-sw.zip/X.en-sw.sw") == PAIRS
    assert fingerprint(tmp_path / "en-sw.zip" / "X.en-sw.en") == fingerprint(tmp_path / "plain")
    assert archived_names(tmp_path / "en-sw.zip") == ["X.en-sw.en", "X.en-sw.sw"]
    with pytest.raises(InputError, match=r'holds no such file. Did you mean "X\.en-sw\.en"'):
        of(tmp_path, source="en-sw.zip/X.en-sw.em", target="en-sw.zip/X.en-sw.sw")


@pytest.mark.parametrize(
    "keys", [{"source": "a.en", "target": "a.sw"}, {"tsv": "a.tsv"}, {"csv": "a.csv"}, {"jsonl": "a.jsonl"}]
)
def test_line_ends_of_windows_are_no_part_of_a_text(keys: dict[str, str], tmp_path: Path) -> None:
    """Else no output would ever be the same as its reference."""
    (tmp_path / "a.en").write_bytes(b"two dogs\r\na\rb\r\n")
    (tmp_path / "a.sw").write_bytes(b"mbwa\r\nx\r\n")
    (tmp_path / "a.tsv").write_bytes(b"two dogs\tmbwa\r\na\rb\tx\r\n")
    (tmp_path / "a.csv").write_bytes(b'source,target\r\ntwo dogs,mbwa\r\n"a\rb",x\r\n')
    (tmp_path / "a.jsonl").write_bytes(
        b'{"source": "two dogs", "target": "mbwa"}\r\n{"source": "a\\rb", "target": "x"}\r\n'
    )
    assert [pair for _, *pair in of(tmp_path, **keys)] == [["two dogs", "mbwa"], ["a\rb", "x"]]
    assert lines_of(tmp_path / "a.sw") == lines_of(TsvColumn(tmp_path / "a.tsv", 1)) == ["mbwa", "x"]


def test_what_is_no_zip_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"no")
    with pytest.raises(InputError, match=r"expected a \.zip, but it cannot be read"):
        archived_names(tmp_path / "a.zip")


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ({"source": "a"}, "name either source and target"),
        ({"tsv": "a", "csv": "b"}, "name either source and target"),
        ({"source": "a", "target": "b", "source_column": "en"}, "two files have no columns; got .en."),
        ({"source": "a", "target": "b", "format": "tsv"}, "format: two files have no columns"),
        ({"file": "a.csv", "separator": ";"}, "separator: csv has its own"),
        ({"file": "a", "format": "cvs"}, r"there is no \"cvs\".* Did you mean \"csv\""),
        ({"tsv": "a", "source_column": -1}, "counted from 0; got -1"),
        ({"jsonl": "a", "source_column": [0, 1]}, "expected their names"),
        ({"jsonl": "a", "source_column": 1, "target_column": 0}, "expected their names"),
        ({"jsonl": "a", "source_column": "en", "target_column": 0}, "expected their names"),
    ],
)
def test_files_that_are_none_are_refused(keys: dict[str, object], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        PairFiles.model_validate(keys)


def test_a_cell_may_be_long(tmp_path: Path) -> None:
    text = "word " * 40_000  # more than Python's own limit of 131,072 characters
    (tmp_path / "a.csv").write_text(f"source,target\n{text},x\n", encoding="utf-8")
    assert of(tmp_path, csv="a.csv") == [(2, text, "x")]


def test_csv_with_bare_carriage_returns_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"source,target\ra,b\rc,d\r")
    with pytest.raises(InputError, match=r"a\.csv, line 1: .*bare carriage return.*tr "):
        of(tmp_path, csv="a.csv")


def csv_of_rows(folder: Path, rows: dict[int, str]) -> None:
    """600 rows, of which some are others; row n is line n + 1."""
    lines = [rows.get(number, f"words {number},maneno {number}") for number in range(1, 601)]
    (folder / "a.csv").write_text("".join(f"{line}\n" for line in ["source,target", *lines]), encoding="utf-8")


@pytest.mark.parametrize(
    ("rows", "line", "last"),
    [
        ({100: '"Yes, he said,ndiyo', 450: '"No, he said,hapana'}, 101, 451),  # begin and begin
        ({100: '"Yes,ndiyo', 450: 'he said no",hapana'}, 101, 451),  # begin and end: well formed, but holds rows
        ({100: '"Yes,ndiyo', 101: '"No,hapana'}, 101, 102),
        ({580: '"Yes,ndiyo'}, 581, 601),  # closed by nothing
    ],
)
def test_a_quote_that_nothing_closes_swallows_no_rows(
    rows: dict[int, str], line: int, last: int, tmp_path: Path
) -> None:
    csv_of_rows(tmp_path, rows)
    with pytest.raises(InputError, match=rf"a\.csv, line {line}: a cell begins with a quote .* up to line {last}\."):
        of(tmp_path, csv="a.csv")


def test_a_cell_may_have_lines(tmp_path: Path) -> None:
    """Paragraphs are no rows, though some have commas."""
    text = "\n".join(["Dear all", "", "first, second", "", "one, two, three", "Yours"])
    (tmp_path / "a.csv").write_text(f'source,target\n"{text}",letter\na,b\n', encoding="utf-8")
    assert of(tmp_path, csv="a.csv") == [(7, text, "letter"), (8, "a", "b")]


def test_half_characters_of_json_are_refused(tmp_path: Path) -> None:
    whole = '{"source": "\\ud83d\\ude00 caf\\u00e9", "target": "b"}'
    (tmp_path / "a.jsonl").write_text(f"{whole}\n", encoding="utf-8")
    assert of(tmp_path, jsonl="a.jsonl") == [(1, "😀 café", "b")]
    (tmp_path / "b.jsonl").write_text(f'{whole}\n{{"source": "x \\ud83d", "target": "y"}}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"b\.jsonl, line 2: expected text; got half a character"):
        of(tmp_path, jsonl="b.jsonl")
