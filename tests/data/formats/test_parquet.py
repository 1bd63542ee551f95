"""Parquet: columns by name, objects in columns, and what is no table of texts."""

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from transduce.core.errors import InputError
from transduce.data.formats.parquet import Parquet


def written(folder: Path, columns: dict[str, list[Any]], **options: Any) -> Path:
    pyarrow.parquet.write_table(pyarrow.table(columns), folder / "a.parquet", **options)
    return folder / "a.parquet"


def test_fields_of_objects_are_columns(tmp_path: Path) -> None:
    """As the data sets for translation of Hugging Face."""
    pairs = [{"en": "a cat", "sw": "paka"}, {"en": "a dog", "sw": "mbwa"}]
    path = written(tmp_path, {"id": [7, 8], "translation": pairs})
    assert Parquet().columns(path) == ["id", "translation.en", "translation.sw"]
    rows = [*Parquet().rows(path, ["translation.sw", "id", "translation.en"])]
    assert rows == [(1, ["paka", "7", "a cat"]), (2, ["mbwa", "8", "a dog"])]


def test_many_groups_of_rows_are_read_in_their_order(tmp_path: Path) -> None:
    path = written(tmp_path, {"n": [*range(3500)], "text": [f"t{n}" for n in range(3500)]}, row_group_size=700)
    assert [*Parquet().rows(path, [1])] == [(n + 1, [f"t{n}"]) for n in range(3500)]


@pytest.mark.parametrize("cells", [["x", None, "y", None], [["x"], ["y"], [], ["z"]]])
def test_cells_without_text_are_refused_by_number(cells: list[Any], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"a\.parquet: expected text or a number in t in every row; . have something"):
        [*Parquet().rows(written(tmp_path, {"t": cells}), ["t"])]


def test_columns_that_are_not_there_are_told(tmp_path: Path) -> None:
    path = written(tmp_path, {"en": ["x"], "sw": ["y"]})
    with pytest.raises(InputError, match="expected columns de; its header has en, sw"):
        [*Parquet().rows(path, ["de"])]
    with pytest.raises(InputError, match="expected column 2, counted from 0; it has 2: en, sw"):
        [*Parquet().rows(path, [0, 2])]


def test_what_is_no_parquet_is_told(tmp_path: Path) -> None:
    whole = written(tmp_path, {"en": ["x" * 1000]}).read_bytes()
    for content in (b"", b"PAR1", whole[: len(whole) // 2], b"no" * 500):
        (tmp_path / "b.parquet").write_bytes(content)
        with pytest.raises(InputError, match=r"b\.parquet: expected a Parquet file; it cannot be read"):
            Parquet().columns(tmp_path / "b.parquet")


def test_a_small_file_that_unpacks_to_a_large_one_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, {"t": ["a" * 1000] * 100_000}, use_dictionary=False, compression="zstd")
    assert path.stat().st_size < 300_000
    with pytest.raises(InputError, match="unpacks to more than 200 times its size"):
        [*Parquet().rows(path, ["t"])]
