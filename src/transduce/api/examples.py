"""Examples that a program holds: pairs, mappings, a table. None of the libraries that make such tables is imported."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.core.printable import PROBLEMS
from transduce.core.tables import columns_of, is_arrow

KEYS = (("source", "target"), ("text", "label"))  # of a mapping: input and answer, by the first of these that it has
ABSENT = object()
SHOWN = 60  # characters of a wrong text in a message
EXPECTED = "expected pairs (source, target), mappings with these keys, or a table with these columns"
BATCH = 1_000  # rows of a table of pyarrow that become Python's at once

Columns = tuple[str, str] | None
Answered = tuple[str, list[str]]  # an input, and its correct answers


def chosen_columns(given: Any, name: str, columns: Columns, known: Sequence[tuple[str, str]] = KEYS) -> Columns:
    """Input and answer of a table: the columns that were asked for, else by their names. Of others, `columns`.

    Raises:
        InputError: the table lacks them, or nothing says which they are; what to write.
    """
    names = columns_of(given)
    if names is None:
        return columns
    if found := next((pair for pair in ([columns] if columns else known) if _has(names, pair)), None):
        return found
    has = f"a table with the columns {', '.join(map(str, names)) or 'none'}"
    if columns:
        raise InputError(f"{name}: expected the columns {columns[0]} and {columns[1]}; got {has}.")
    raise InputError(f"{name}: got {has}; say which are the input and the answer: {_hint(names)}.")


def read_examples(
    given: Any, name: str, columns: Columns, problems: list[str], known: Sequence[tuple[str, str]] = KEYS
) -> Iterator[Answered]:
    """Each example that is sound, in order; what is wrong with the others is added to `problems` when all are read.

    Args:
        given: pairs or mappings in anything that has an order, a generator too; a table of pandas, polars or pyarrow.
        name: what messages call it.
        columns: keys of input and answer in a mapping, `translation.en` for one within another; None = the first of
            `known` that it has.
    """
    count = wrong = 0
    try:
        columns = chosen_columns(given, name, columns, known)
        for each in _listed(given, name):
            try:
                found = _example(each, [columns] if columns else known)
            except ValueError as error:
                wrong += 1
                if wrong <= PROBLEMS:
                    problems.append(f"{name}[{count}]: {error}")
            else:
                yield found
            count += 1
    except InputError as error:
        problems += error.problems
        return
    if wrong > PROBLEMS:
        problems.append(f"{name}: {wrong - PROBLEMS:,} more of its {count:,} examples like these.")
    if not count:
        problems.append(f"{name}: expected at least one example; got none.")


def write_examples(path: Path, given: Any, name: str, columns: Columns, problems: list[str]) -> None:
    """As `read_examples`, as lines {"source": .., "target": ..} of JSON, one by one; several answers are a problem.

    Where columns are named, the keys of the lines are their names.
    """
    keys = written_keys(columns)
    with path.open("wb") as file:
        for place, (source, answers) in enumerate(read_examples(given, name, columns, problems)):
            if len(answers) > 1:
                problems.append(f"{name}[{place}]: expected one answer; got {len(answers)}.")
            file.write(line_of(source, answers[0], keys))


def written_keys(columns: Columns) -> tuple[str, str]:
    """The keys under which examples are written: the names of their columns, where these are names."""
    return columns if columns and all(isinstance(each, str) for each in columns) else KEYS[0]


def line_of(source: str, answer: "str | list[str]", keys: tuple[str, str] = KEYS[0]) -> bytes:
    """One example as a line of a .jsonl."""
    return json.dumps({keys[0]: source, keys[1]: answer}, ensure_ascii=False).encode() + b"\n"


def _has(names: Sequence[Any], pair: Sequence[Any]) -> bool:
    """`translation.en` may be the key en in the column translation."""
    return all(key in names or (isinstance(key, str) and key.partition(".")[0] in names) for key in pair)


def _hint(names: Sequence[Any]) -> str:
    return f"columns={tuple(names[:2])!r}, for example" if len(names) > 1 else "it needs two columns"


def _listed(given: Any, name: str) -> Iterable[Any]:
    if is_arrow(given):
        batches = given.to_batches(BATCH) if hasattr(given, "to_batches") else [given]
        return (row for batch in batches for row in batch.to_pylist())
    if hasattr(given, "itertuples") and hasattr(given, "columns"):  # pandas, whose iteration gives names of columns
        names = list(given.columns)
        return (dict(zip(names, row, strict=True)) for row in given.itertuples(index=False, name=None))
    if hasattr(given, "iter_rows") and hasattr(given, "columns"):  # polars, likewise
        return given.iter_rows(named=True)
    if isinstance(given, str | bytes | bytearray | Mapping | set | frozenset) or not isinstance(given, Iterable):
        raise InputError(f"{name}: {EXPECTED}; got {type(given).__name__}: {_shown(given)}.")
    return given


def _example(example: Any, pairs: Sequence[tuple[str, str]]) -> Answered:
    """By the first pair of keys that a mapping has. Raises ValueError that says what is wrong."""
    if isinstance(example, Mapping):
        found = ([_at(example, key) for key in pair] for pair in pairs)
        both = next((values for values in found if not any(value is ABSENT for value in values)), None)
        if both is None:
            wanted = " or ".join(f'"{one}" and "{other}"' for one, other in pairs)
            hint = f" Say which are meant: {_hint([*example])}." if len(pairs) > 1 and len(example) > 1 else ""
            raise ValueError(f"expected the keys {wanted}; got {', '.join(map(str, example)) or 'none'}.{hint}")
        source, answer = both
    elif isinstance(example, Sequence) and not isinstance(example, str | bytes) and len(example) == 2:
        source, answer = example
    else:
        raise ValueError(f"expected a pair (source, target); got {type(example).__name__}: {_shown(example)}.")
    several = list(answer) if isinstance(answer, list | tuple) else [answer]
    if not several:
        raise ValueError("expected an answer; got none.")
    return _text(source, "source"), [_text(one, "target") for one in several]


def _at(mapping: Mapping[Any, Any], key: str) -> Any:
    """The value of a key; `translation.en` is the key en of the mapping at translation."""
    if key in mapping:
        return mapping[key]
    outer, _, inner = key.partition(".")
    below = mapping.get(outer) if inner else None
    return _at(below, inner) if isinstance(below, Mapping) else ABSENT


def _text(value: Any, side: str) -> str:
    """A text; of a number that stands for a label, its digits."""
    if not isinstance(value, bool) and isinstance(value, Integral):
        return str(int(value))
    if not isinstance(value, str):
        raise ValueError(f"{side}: expected a text; got {type(value).__name__}: {_shown(value)}.")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{side}: holds a lone surrogate, which is no character; this text was decoded wrongly: {value[:SHOWN]!a}."
        ) from None
    return str(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}.."
