"""Every error that Transduce raises on purpose, and the exit code each one becomes.

| exit code | meaning | error |
|---|---|---|
| 1 | failed | `TransduceError` |
| 2 | wrong input | `InputError` |
| 130 | interrupted | `Interrupted` |
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


class TransduceError(Exception):
    """Something went wrong; the message says what was wanted, what came and what to do."""

    exit_code = 1


class InputError(TransduceError):
    """The caller's file, recipe, key or argument is wrong. Carries all problems found, not only the first.

    Args:
        problems: one message or several, each naming the place (file, line, key) and the remedy.
    """

    exit_code = 2

    def __init__(self, problems: str | Iterable[str]) -> None:
        self.problems = [problems] if isinstance(problems, str) else list(problems)
        super().__init__("\n".join(self.problems))


class Interrupted(TransduceError):
    """The user asked to stop; what was done so far is saved."""

    exit_code = 130


def every(
    make: Callable[[Item], Made], items: Iterable[Item], called: str = "", max_problems: int | None = None
) -> list[Made]:
    """What `make` makes of each item.

    Args:
        called: what messages call an item, before its number from 1, where there are several; "" = they name it.
        max_problems: how many problems are named; the others are counted. None = all are named.

    Raises:
        InputError: all that is wrong with any of them.
    """
    listed, made, problems = list(items), list[Made](), list[str]()
    for number, item in enumerate(listed, 1):
        try:
            made.append(make(item))
        except InputError as error:
            where = f"{called} {number}: " if called and len(listed) > 1 else ""
            problems += [f"{where}{problem}" for problem in error.problems]
    if max_problems is not None and len(problems) > max_problems:
        lines = f"{called}s " if called else ""
        problems = [*problems[:max_problems], f"{len(problems) - max_problems:,} more {lines}like these."]
    if problems:
        raise InputError(problems)
    return made
