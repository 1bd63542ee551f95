"""Every error that Transduce raises on purpose, and the exit code each one becomes.

| exit code | meaning | error |
|---|---|---|
| 1 | failed | `TransduceError` |
| 2 | wrong input | `InputError` |
| 130 | interrupted | `Interrupted` |
"""

from collections.abc import Iterable


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
