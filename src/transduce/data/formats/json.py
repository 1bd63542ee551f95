"""A JSON array of objects, or an object that holds one: [{"source": .., "target": ..}, ..], {"data": [..]}."""

from collections.abc import Iterator
from json import dumps
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.data.files import read_whole
from transduce.data.formats.jsonl import Jsonl, JsonLine, parsed


class Json(Jsonl):
    """Read as a whole, as an array cannot be read in parts; the number of a row is its object's, from 1."""

    row_per_line = False

    def objects(self, path: Path) -> Iterator[JsonLine]:
        """Each of the array. Raises InputError where the file is no JSON, or holds no array or several."""
        try:
            found = parsed(read_whole(path).decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            raise InputError(
                f"{path}: expected JSON; it cannot be read: {error}. For an object a line: .jsonl."
            ) from None
        for number, each in enumerate(_array(path, found), 1):
            yield JsonLine(number, each, dumps(each))

    def about(self, path: Path) -> int:
        """The length of the array."""
        return sum(1 for _ in self.objects(path))


def _array(path: Path, found: Any) -> list[Any]:
    arrays = [found] if isinstance(found, list) else [each for each in _values(found) if isinstance(each, list)]
    if len(arrays) != 1:
        raise InputError(
            f'{path}: expected an array of objects, [{{"source": .., "target": ..}}, ..], or an object that holds one; '
            f"it holds {len(arrays) or 'no'} array{'s' if arrays else ''}."
        )
    return arrays[0]


def _values(found: Any) -> list[Any]:
    return [*found.values()] if isinstance(found, dict) else []
