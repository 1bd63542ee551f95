"""Arguments of a model's methods, turned into lists: one text or many, pairs or two lists.

What can only be a mistake raises an error that explains it.
"""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

from transduce.core.errors import InputError
from transduce.core.printable import PROBLEMS
from transduce.core.tables import refuse_table

Pairs = Sequence[tuple[str, str]]
PAIRS = "pairs of source and target, as score([(source, target), ..]), or two lists, as score(sources, targets)"
SHOWN = 60  # characters of a wrong value


def text_of(given: Any, name: str = "text") -> str:
    """One text. Raises InputError for anything else."""
    texts, alone = texts_of(given, name)
    if not alone:
        raise InputError(f"{name}: expected one text; got {type(given).__name__}. Give one of its texts at a time.")
    return texts[0]


def texts_of(given: Any, name: str = "texts") -> tuple[list[str], bool]:
    """A list of texts, and whether it was one text alone.

    Args:
        given: a text, or texts in anything that has an order: a list, a tuple, a generator, an array, a column.

    Raises:
        InputError: it is something else, or holds something else.
    """
    if isinstance(given, str):
        _refuse_surrogates([given], [name])
        return [given], True
    listed = listed_of(given, name, 'a text, or a list of texts, as ["Two dogs run."]')
    wrong = [f"{name}[{place}]: {_not_a_text(each)}" for place, each in enumerate(listed) if not isinstance(each, str)]
    if wrong:
        raise InputError(_some(wrong))
    _refuse_surrogates(listed, [f"{name}[{place}]" for place in range(len(listed))])
    return listed, False


def pairs_of(sources: Any, targets: Any, reads: bool) -> tuple[list[tuple[str, str]], bool]:
    """(source, target) pairs, and whether it was one pair alone, from what `Pipeline.score` was given.

    Args:
        targets: None: `sources` holds pairs, or is one, or for a model without sources holds texts.
        reads: whether the model reads sources.

    Raises:
        InputError: it is something else; unequal numbers.
    """
    if targets is not None:
        return _two_lists(sources, targets, reads)
    if isinstance(sources, str):
        texts_of(sources)
        if reads:
            raise InputError("score: this model translates, so give a translation as well: score(text, translation).")
        return [("", sources)], True
    listed = listed_of(sources, "score", PAIRS)
    if reads and isinstance(sources, tuple) and len(listed) == 2 and all(isinstance(each, str) for each in listed):
        return _two_lists(listed[0], listed[1], reads)
    pairs, problems = [], []
    for place, each in enumerate(listed):
        if isinstance(each, str) and not reads:
            pairs.append(("", each))
        elif _is_pair(each):
            pairs.append((each[0], each[1]))
        else:
            wanted = "expected a pair (source, target)" if reads else "expected a text"
            problems.append(f"score[{place}]: {wanted}; got {_shown(each)}.")
    if problems and reads and all(isinstance(each, str) for each in listed):
        problems = ["score: expected pairs; got texts: score([(source, target), ..]) or score(sources, targets)."]
    if problems:
        raise InputError(_some(problems))
    for side, name in ((0, "source"), (1, "target")):
        _refuse_surrogates([pair[side] for pair in pairs], [f"score[{place}], {name}" for place in range(len(pairs))])
    return pairs, False


def _two_lists(sources: Any, targets: Any, reads: bool) -> tuple[list[tuple[str, str]], bool]:
    if isinstance(targets, int | float):
        raise InputError(f"score: give batch_size by name: score(pairs, batch_size={targets}).")
    if not reads:
        raise InputError("score: this model reads no sources; give it texts alone: score(texts).")
    (first, alone), (second, also_alone) = texts_of(sources, "sources"), texts_of(targets, "targets")
    if alone != also_alone or len(first) != len(second):
        raise InputError(
            f"score: {_counted(first, alone, 'source')} and {_counted(second, also_alone, 'target')}; the n-th target "
            "must belong to the n-th source."
        )
    return list(zip(first, second, strict=True)), alone


def _counted(texts: Sequence[str], alone: bool, name: str) -> str:
    return f"one {name} alone" if alone else f"a list of {len(texts):,} {name}{'s' * (len(texts) != 1)}"


def _is_pair(value: Any) -> bool:
    if isinstance(value, str | bytes | Mapping | set | frozenset) or not hasattr(value, "__len__") or len(value) != 2:
        return False
    return all(isinstance(each, str) for each in value)


def listed_of(given: Any, name: str, expected: str) -> list[Any]:
    """What is given in an order. Raises InputError, which says what is wanted, for a table and for what has none."""
    if isinstance(given, bytes | bytearray | memoryview):
        raise InputError(f'{name}: expected {expected}; got bytes: decode them: value.decode("utf-8").')
    refuse_table(given, name, expected)
    if isinstance(given, set | frozenset) or not isinstance(given, Iterable):
        order = " (which has no order)" if isinstance(given, set | frozenset) else ""
        raise InputError(f"{name}: expected {expected}; got {type(given).__name__}{order}: {_shown(given)}.")
    return list(given)


def _not_a_text(value: Any) -> str:
    if isinstance(value, bytes):
        return 'expected a text; got bytes: decode them: value.decode("utf-8").'
    hint = f" Give one of its values, as each[{next(iter(value))!r}]." if isinstance(value, Mapping) and value else ""
    return f"expected a text; got {type(value).__name__}: {_shown(value)}.{hint}"


def _refuse_surrogates(texts: Sequence[str], names: Sequence[str]) -> None:
    """Half a character of UTF-16, which no UTF-8 holds; it comes of bytes that were decoded wrongly."""
    problems = []
    for text, name in zip(texts, names, strict=True):
        if not text.isascii() and any("\ud800" <= char <= "\udfff" for char in text):
            problems.append(
                f"{name}: holds a lone surrogate, which is no character; this text was decoded wrongly: "
                f"{text[:SHOWN]!a}"
            )
    if problems:
        raise InputError(_some(problems))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}.."


def _some(problems: list[str]) -> list[str]:
    more = len(problems) - PROBLEMS
    return problems if more <= 0 else [*problems[:PROBLEMS], f"and {more:,} more."]


def paths_of(given: Any) -> list[str | PathLike[str]]:
    """The paths of models: one, or several in a list. Raises InputError for anything else."""
    listed = [given] if isinstance(given, str | PathLike) else list(given) if isinstance(given, Sequence) else None
    if listed is None or isinstance(given, bytes) or not all(isinstance(each, str | PathLike) for each in listed):
        raise InputError(f"load: expected the path of a run directory or of a model file; got {given!r}.")
    if not listed or "" in listed:
        raise InputError("load: expected the path of a model; got none.")
    return listed


def differing_target(name: str, first: str) -> str:
    """Why the model `name` is no member of an ensemble with `first`."""
    return (
        f"{name}: its target tokenizer is not that of {first}; the members of an ensemble must share it. "
        "Train them with one tokenizer: tokenizer.file, or the same data and settings."
    )
