"""Constraints on an output: phrases that must or must not appear, and a prefix.

They are given as text, for one input or for all. Here they become what search uses: tokens and character automata.
"""

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.core.registry import suggest
from transduce.core.tables import refuse_table
from transduce.data.files import read_lines
from transduce.data.tokenizers.patterns import SURROGATE
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.search.constraint import Constraint
from transduce.search.phrases import Phrases, held, kind, plain
from transduce.search.token_text import Spelling

Must = str | tuple[str, ...]  # a phrase, or alternatives of which one is enough
KEYS = ["must", "must_not", "prefix"]


@dataclass(frozen=True, slots=True)
class Constraints:
    """The constraints on one output. `transduce.search.phrases` defines when a phrase appears.

    must: each entry is a set of alternatives; an entry given n times must appear in n places.
    prefix: the output's first tokens are those of this text; its last word may be gone on with.
    """

    must: tuple[tuple[str, ...], ...] = ()
    must_not: tuple[str, ...] = ()
    prefix: str = ""

    def __bool__(self) -> bool:
        return bool(self.must or self.must_not or self.prefix)


def merged(constraints: Sequence[Constraints], more: Sequence[Constraints]) -> list[Constraints]:
    """The constraints of both lists together, output by output.

    Raises:
        InputError: they are of different numbers of outputs, or both have a prefix for one.
    """
    if len(constraints) != len(more):
        raise InputError(f"constraints: got {len(more)} for {len(constraints)} inputs; give one for each.")
    problems = [
        f'line {number}: got two prefixes, "{one.prefix}" and "{other.prefix}"; give one.'
        for number, (one, other) in enumerate(zip(constraints, more, strict=True), 1)
        if one.prefix and other.prefix
    ]
    if problems:
        raise InputError(problems)
    return [
        Constraints(one.must + other.must, one.must_not + other.must_not, one.prefix or other.prefix)
        for one, other in zip(constraints, more, strict=True)
    ]


def constraints_of_each(
    count: int,
    must: Sequence[Must] | Sequence[list[Must]] = (),
    must_not: Sequence[str] | Sequence[list[str]] = (),
    prefix: str | Sequence[str] = "",
) -> list[Constraints]:
    """The constraints on each of `count` texts, from one list of phrases for all or a list of lists, one for each text.

    A single text in place of a list is one phrase.

    Raises:
        InputError: something is no phrase, or there are not as many lists as texts.
    """
    problems: list[str] = []
    phrases = {"must": _lists(must, "must", count, problems), "must_not": _lists(must_not, "must_not", count, problems)}
    refuse_table(prefix, "prefix", "a text, or a list of texts")
    prefixes = [prefix] * count if isinstance(prefix, str) else list(prefix)
    if len(prefixes) != count:
        problems.append(f"prefix: {len(prefixes)} texts for {count} inputs; give one for all, or one for each.")
    halves = dict.fromkeys(each for each in prefixes if SURROGATE.search(each))
    problems += [f"prefix: {each!r} holds half of a character (a lone surrogate), which is no text." for each in halves]
    if problems:
        raise InputError(problems)
    return [
        Constraints(
            tuple(each if isinstance(each, tuple) else (each,) for each in phrases["must"][place]),
            tuple(phrases["must_not"][place]),
            prefixes[place],
        )
        for place in range(count)
    ]


def _lists(given: Any, name: str, count: int, problems: list[str]) -> list[list[Any]]:
    refuse_table(given, name, "phrases, or a list of phrases for each text")
    if isinstance(given, str):
        given = [given]
    of_each = [isinstance(each, list) for each in given]
    if not any(of_each):
        lists = [list(given)] * count
    elif all(of_each) and len(given) == count:
        lists = [list(each) for each in given]
    else:
        problems.append(
            f"{name}: expected one list of phrases for all inputs, or {count} lists, one for each; got "
            f"{sum(of_each)} lists and {len(of_each) - sum(of_each)} phrases."
        )
        return [[]] * count
    for phrase in {repr(each): each for phrases in lists for each in phrases}.values():
        if not _is_phrase(phrase, name == "must"):
            problems.append(f"{name}: {phrase!r} is not a phrase; expected text that begins with a whole character.")
    return lists


def _is_phrase(value: Any, alternatives: bool) -> bool:
    if alternatives and isinstance(value, tuple):
        return len(value) > 0 and all(_is_phrase(each, False) for each in value)
    if not isinstance(value, str) or SURROGATE.search(value):
        return False
    return plain(value) != "" and kind(plain(value)[0]) != "mark"


def read_constraints(path: Path, count: int) -> list[Constraints]:
    """Read the constraints on `count` inputs from a file with a JSON object on each line; {} is no constraint.

        {"must": ["New York", ["colour", "color"]], "must_not": ["he"], "prefix": "In the"}

    A list within `must` holds alternatives.

    Raises:
        InputError: a line is no such object, or there are more or fewer than inputs; all such lines are named.
    """
    wanted, problems = [], []
    for number, line in enumerate(read_lines(path), 1):
        try:
            wanted.append(_parsed(line))
        except InputError as error:
            problems += [f"{path}, line {number}: {problem}" for problem in error.problems]
    if not problems and len(wanted) != count:
        problems.append(f"{path} has {len(wanted):,} lines for {count:,} inputs: line n must belong to line n.")
    if problems:
        raise InputError(problems)
    return wanted


def _parsed(line: str) -> Constraints:
    try:
        table = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}.") from None
    if not isinstance(table, dict):
        raise InputError(f"expected an object with keys among {', '.join(KEYS)}; got: {line[:200]}")
    unknown = [f'unknown key "{key}".{suggest(key, KEYS)}' for key in table if key not in KEYS]
    lists = {key: table.get(key, []) for key in ("must", "must_not")}
    prefix = table.get("prefix", "")
    wrong = [f"{key}: expected a list of phrases." for key, value in lists.items() if not isinstance(value, list)]
    wrong += [] if isinstance(prefix, str) else ["prefix: expected text."]
    if unknown or wrong:
        raise InputError(unknown + wrong)
    must = [tuple(each) if isinstance(each, list) else each for each in lists["must"]]
    (wanted,) = constraints_of_each(1, [must], [lists["must_not"]], prefix)
    return wanted


class ConstraintCompiler:
    """Compiles constraints for one tokenizer. Equal constraints share their automata."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        self.spelling = Spelling(tokenizer.spellings())
        self._constraints: dict[Phrases, Constraint] = {}

    def prefix(self, constraints: Constraints) -> list[int]:
        """The tokens of the prefix.

        Raises:
            InputError: it has characters or words that the tokenizer does not know.
        """
        ids = self._encode(constraints.prefix)
        if self.tokenizer.unknown in ids:
            raise InputError(f'the prefix "{constraints.prefix}" {self._known_parts(ids)}.')
        return ids

    def constraint(self, constraints: Constraints) -> Constraint | None:
        """The phrases; None where there are none.

        Raises:
            InputError: what must appear cannot be written with these tokens, or holds what must not appear.
        """
        phrases = self.phrases(constraints)
        if not phrases:
            return None
        if phrases not in self._constraints:
            self._constraints[phrases] = Constraint(phrases, self.spelling, self._encode)
        return self._constraints[phrases]

    def phrases(self, constraints: Constraints) -> Phrases:
        """As the tokenizer writes them: in lower case, if it does so with all texts."""
        must_not = tuple(dict.fromkeys(self._written(phrase) or plain(phrase) for phrase in constraints.must_not))
        problems, must = [], []
        for given in constraints.must:
            names = " / ".join(f'"{phrase}"' for phrase in given)
            written = [text for phrase in given if (text := self._written(phrase)) is not None]
            free = tuple(dict.fromkeys(text for text in written if not held(Phrases(must_not=must_not), text)))
            if not written:
                problems.append(f"{names} must appear, but {self._known_parts(self._encode(given[0]))}.")
            elif not free:
                wrong = held(Phrases(must_not=must_not), written[0])
                problems.append(f'{names} must appear, but contains "{wrong[0]}", which must not appear.')
            must.append(free)
        if problems:
            raise InputError(problems)
        return Phrases(tuple(must), must_not)

    def writes(self, phrase: str) -> bool:
        """Whether the tokens can write it."""
        return self._written(phrase) is not None

    def _written(self, phrase: str) -> str | None:
        """The phrase as the tokens write it; None where they cannot."""
        ids = self._encode(phrase)
        text = plain(self.tokenizer.decode(ids))
        again = self._encode(unicodedata.normalize("NFC", text))
        return None if not text or self.tokenizer.unknown in (*ids, *again) else text

    def _encode(self, text: str) -> list[int]:
        return self.tokenizer.encode([text])[0]

    def _known_parts(self, ids: Sequence[int]) -> str:
        return f'cannot be written with the tokens of this model, which read it as "{self.tokenizer.decode(ids)}"'
