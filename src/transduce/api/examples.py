"""Examples that a program holds: pairs, mappings, a table. None of the libraries that make such tables is imported."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError

KEYS = (("source", "target"), ("text", "label"))  # of a mapping: input and answer, by the first of these that it has
ABSENT = object()
NAMED, SHOWN = 10, 60  # wrong examples that a message names; characters of each
EXPECTED = "expected pairs (source, target), mappings with these keys, or a table with these columns"

Columns = tuple[str, str] | None
Answered = tuple[str, list[str]]  # an input, and its correct answers


def read_examples(given: Any, name: str, columns: Columns, problems: list[str]) -> Iterator[Answered]:
    """Each example that is sound, in order; what is wrong with the others is added to `problems` when all are read.

    Args:
        given: pairs or mappings in anything that has an order, a generator too; a table of pandas or polars.
        name: what messages call it.
        columns: keys of input and answer in a mapping, `translation.en` for one within another; None = the first of
            `KEYS` that it has.
    """
    count = wrong = 0
    try:
        for each in _listed(given, name):
            try:
                found = _example(each, columns)
            except ValueError as error:
                wrong += 1
                if wrong <= NAMED:
                    problems.append(f"{name}[{count}]: {error}")
            else:
                yield found
            count += 1
    except InputError as error:
        problems += error.problems
        return
    if wrong > NAMED:
        problems.append(f"{name}: {wrong - NAMED:,} more of its {count:,} examples like these.")
    if not count:
        problems.append(f"{name}: expected at least one example; got none.")


def write_examples(path: Path, given: Any, name: str, columns: Columns, problems: list[str]) -> None:
    """As `read_examples`, as lines {"source": .., "target": ..} of JSON, one by one; several answers are a problem."""
    with path.open("wb") as file:
        for place, (source, answers) in enumerate(read_examples(given, name, columns, problems)):
            if len(answers) > 1:
                problems.append(f"{name}[{place}]: expected one answer; got {len(answers)}.")
            file.write(line_of(source, answers[0]))


def line_of(source: str, answer: "str | list[str]") -> bytes:
    """One example as a line of a .jsonl."""
    return json.dumps({"source": source, "target": answer}, ensure_ascii=False).encode() + b"\n"


def _listed(given: Any, name: str) -> Iterable[Any]:
    if hasattr(given, "itertuples") and hasattr(given, "columns"):  # pandas, whose iteration gives names of columns
        names = list(given.columns)
        return (dict(zip(names, row, strict=True)) for row in given.itertuples(index=False, name=None))
    if hasattr(given, "iter_rows") and hasattr(given, "columns"):  # polars, likewise
        rows: Iterable[Any] = given.iter_rows(named=True)
        return rows
    if isinstance(given, str | bytes | bytearray | Mapping | set | frozenset) or not isinstance(given, Iterable):
        raise InputError(f"{name}: {EXPECTED}; got {type(given).__name__}: {_shown(given)}.")
    return given


def _example(each: Any, columns: Columns) -> Answered:
    """Raises ValueError that says what is wrong."""
    if isinstance(each, Mapping):
        pairs = [columns] if columns else KEYS
        found = ([_at(each, key) for key in pair] for pair in pairs)
        both = next((values for values in found if not any(value is ABSENT for value in values)), None)
        if both is None:
            wanted = " or ".join(f'"{one}" and "{other}"' for one, other in pairs)
            raise ValueError(f"expected the keys {wanted}; got {', '.join(map(str, each)) or 'none'}.")
        source, answer = both
    elif isinstance(each, Sequence) and not isinstance(each, str | bytes) and len(each) == 2:
        source, answer = each
    else:
        raise ValueError(f"expected a pair (source, target); got {type(each).__name__}: {_shown(each)}.")
    several = list(answer) if isinstance(answer, list | tuple) else [answer]
    if not several:
        raise ValueError("expected an answer; got none.")
    return _text(source, "source"), [_text(one, "target") for one in several]


def _at(each: Mapping[Any, Any], key: str) -> Any:
    """The value of a key; `translation.en` is the key en of the mapping at translation."""
    if key in each:
        return each[key]
    outer, _, inner = key.partition(".")
    below = each.get(outer) if inner else None
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
