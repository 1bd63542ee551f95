"""Keys of a recipe given on the command line: `training.updates=2000`."""

from collections.abc import Iterable
from typing import Any

from transduce.core.bounded_toml import toml_table
from transduce.core.errors import InputError

Table = dict[str, Any]


def apply_overrides(table: Table, overrides: Iterable[str]) -> Table:
    """`table` with `a.b=value` applied. A value is parsed as TOML, or taken as text if it is not TOML.

    Raises:
        InputError: an override has no `=`, or refers to a key within a value that is not a section.
    """
    problems = []
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            problems.append(f'"{override}": expected key=value, as in training.updates=2000.')
            continue
        try:
            set_key(table, key.strip(), _value(value))
        except InputError as error:
            problems += [f'"{override}": {problem}' for problem in error.problems]
    if problems:
        raise InputError(problems)
    return table


def set_key(table: Table, key: str, value: Any) -> None:
    """Set the dotted key; in a list of tables, that of each table.

    Raises:
        InputError: the key refers to one within a value that is not a section.
    """
    *sections, last = key.split(".")
    places: list[Any] = [table]
    for number, section in enumerate(sections, 1):
        inner = [place.setdefault(section, {}) for place in places]
        places = [each for one in inner for each in (one if isinstance(one, list) and one else [one])]
        if not all(isinstance(each, dict) for each in places):
            raise InputError(f"{'.'.join(sections[:number])} is not a section.")
    for place in places:
        place[last] = value


def _value(text: str) -> Any:
    try:
        return toml_table(f"value = {text}")["value"]
    except (ValueError, RecursionError):  # numbers of 5,000 digits, brackets in brackets
        return text
