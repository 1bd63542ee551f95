"""Rows of a .csv: what does not fit its header is an error that names the line, never a cell elsewhere."""

from pathlib import Path

import pytest

from transduce.core.errors import InputError
from transduce.data.formats import csv as rows
from transduce.data.formats.csv import Csv
from transduce.data.labelled import LabelledFile, read_labelled


def written(folder: Path, *lines: str) -> Path:
    (folder / "a.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "a.csv"


def test_a_row_with_more_cells_than_the_header_makes_no_new_label(tmp_path: Path) -> None:
    written(tmp_path, "text,label", "good film,pos", "good, I say,pos", '"good, I say",pos', "so, so,neg")
    with pytest.raises(InputError, match=r"a\.csv: expected 2 cells in every row, .*; 2 have more \(lines 3, 5\)"):
        [*read_labelled(LabelledFile(file="a.csv", text="text", label="label"), tmp_path)]


def test_empty_cells_at_the_end_of_a_row_are_none(tmp_path: Path) -> None:
    path = written(tmp_path, "text,label", "good film,pos,,", "bad film,neg")
    assert [row for _, row in Csv().rows(path, ["text", "label"])] == [["good film", "pos"], ["bad film", "neg"]]


def test_a_column_that_is_there_twice_is_refused_if_it_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, "text,label,,,text", "a,b,c,d,e")
    with pytest.raises(InputError, match=r"a\.csv, line 1: the column text is there twice"):
        Csv().rows(path, ["text", "label"])
    assert [*Csv().rows(path, ["label"])] == [(2, ["b"])]
    assert [*Csv().rows(path, [0, 4])] == [(2, ["a", "e"])]


def test_a_quote_that_nothing_closes_is_found_without_reading_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "ROW_LINES", 10)
    path = written(tmp_path, "text,label", '"good film,pos', *(["", "x"] * 10))
    with pytest.raises(InputError, match=r"a\.csv, line 2: a cell begins with a quote"):
        [*Csv().rows(path, ["text", "label"])]
