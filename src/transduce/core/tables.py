"""Tables that a program holds, of pandas, polars, pyarrow or Hugging Face; none of these libraries is imported."""

from collections.abc import Mapping
from typing import Any

from transduce.core.errors import InputError
from transduce.core.printable import NAMED, listed


def columns_of(given: Any) -> list[Any] | None:
    """The names of a table's columns; None for what is no table."""
    if is_arrow(given):
        return list(given.schema.names)
    names = getattr(given, "columns", getattr(given, "column_names", None))
    return None if names is None or isinstance(given, Mapping) else list(names)


def is_arrow(given: Any) -> bool:
    """Whether it is a table of pyarrow."""
    return type(given).__module__.partition(".")[0] == "pyarrow" and hasattr(given, "schema")


def refuse_table(given: Any, name: str, expected: str) -> None:
    """Raises InputError for a table or a mapping where texts are expected: iterating it gives the names of its columns.

    Args:
        name: of what is given, in the message.
        expected: what is expected there.
    """
    names = list(given) if isinstance(given, Mapping) else columns_of(given)
    if names is None:
        return
    kind = type(given).__name__
    what = f"{kind} with the {'keys' if isinstance(given, Mapping) else 'columns'} {listed(names, NAMED) or 'none'}"
    column = f"[{names[0] if names else 'english'!r}]" + (".to_pylist()" if is_arrow(given) else "")
    raise InputError(f"{name}: expected {expected}; got {what}. Pass one of its columns, such as table{column}.")
