"""Parquet, as Hugging Face has its data sets; `translation.en` is the field `en` of a column of objects.

pyarrow reads it, which Transduce needs for its stores already.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.core.printable import listed
from transduce.data.files import archive_of, existing_file
from transduce.data.formats.base import Format, Key, Row, named_lines, places_of
from transduce.data.limits import RATIO, REPETITIVE

ROWS = 1000  # that are read at once


class Parquet(Format):
    """Its columns have names and types; a row is counted from 1."""

    def columns(self, path: Path) -> list[str]:
        """Their names. Raises InputError where the file is none of Parquet."""
        with _opened(path) as file:
            return _names(file)

    def about(self, path: Path) -> int:
        """As its end says."""
        with _opened(path) as file:
            return int(file.metadata.num_rows)

    def rows(self, path: Path, keys: Sequence[Key], optional: Collection[Key] = ()) -> Iterator[Row]:
        """As `Format.rows`. Raises InputError for cells that are neither text nor a number, and for empty ones."""
        with _opened(path) as file:
            names = _names(file)
            chosen = [names[place] for place in _places(path, names, keys)]
            wrong = list[int]()
            for number, cells in enumerate(_cells(path, file, chosen), 1):
                texts = [_text(cell) for cell in cells]
                if None in texts:
                    wrong.append(number)
                elif not wrong:
                    yield number, [str(text) for text in texts]
        if wrong:
            what = f"text or a number in {' and '.join(chosen)}"
            raise InputError(
                f"{path}: expected {what} in every row; {len(wrong):,} have something else, or nothing "
                f"({named_lines(wrong).replace('line', 'row')})."
            )


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    import pyarrow
    import pyarrow.parquet

    path = existing_file(path)
    if archive := archive_of(path):
        raise InputError(f"{path}: a Parquet file cannot be read within {archive.name}. Unpack it first.")
    try:
        with pyarrow.parquet.ParquetFile(path, pre_buffer=False) as file:
            _check_size(path, file)
            yield file
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"{path}: expected a Parquet file; it cannot be read: {error}.") from error


def _check_size(path: Path, file: Any) -> None:
    """Raises InputError for a group of rows, which is read at once, that unpacks to far more than any text."""
    groups = (file.metadata.row_group(each).total_byte_size for each in range(file.metadata.num_row_groups))
    if max(groups, default=0) > max(REPETITIVE, RATIO * path.stat().st_size):
        raise InputError(f"{path}: unpacks to more than {RATIO} times its size, which no text does.")


def _names(file: Any) -> list[str]:
    """Of columns, and of the fields of those that hold objects."""
    found = list[str]()
    for field in file.schema_arrow:
        inner = [field.type.field(each).name for each in range(field.type.num_fields)] if _is_struct(field) else []
        found += [f"{field.name}.{each}" for each in inner] or [field.name]
    return found


def _is_struct(field: Any) -> bool:
    import pyarrow

    return bool(pyarrow.types.is_struct(field.type))


def _places(path: Path, names: Sequence[str], keys: Sequence[Key]) -> list[int]:
    if far := [key for key in keys if isinstance(key, int) and key >= len(names)]:
        raise InputError(f"{path}: expected column {far[0]}, counted from 0; it has {len(names)}: {listed(names)}.")
    return places_of(path, names, keys)


def _cells(path: Path, file: Any, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    columns = [*dict.fromkeys(name if name in file.schema_arrow.names else name.rpartition(".")[0] for name in names)]
    for batch in file.iter_batches(batch_size=ROWS, columns=columns):
        flat = {**dict(zip(batch.schema.names, batch.columns, strict=True)), **_fields(batch)}
        yield from zip(*(flat[name].to_pylist() for name in names), strict=True)


def _fields(batch: Any) -> dict[str, Any]:
    found = dict[str, Any]()
    for field, column in zip(batch.schema, batch.columns, strict=True):
        if _is_struct(field):
            inner = [field.type.field(each).name for each in range(field.type.num_fields)]
            found |= {f"{field.name}.{name}": each for name, each in zip(inner, column.flatten(), strict=True)}
    return found


def _text(cell: Any) -> str | None:
    """As it is written; None: it is neither text nor a number."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return str(cell) if isinstance(cell, str | int | float) else None
