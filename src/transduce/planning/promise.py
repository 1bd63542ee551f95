"""How long a training takes: what is promised before, and what it took."""

import math
import re
import time
from typing import Any, NamedTuple

from transduce.core.errors import InputError
from transduce.planning.speed import Speed

UNITS = {"s": 1 / 60, "sec": 1 / 60, "m": 1.0, "min": 1.0, "h": 60.0, "d": 1440.0}
PART = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|min|m|sec|s)")


class Promise(NamedTuple):
    """Seconds of a whole training, from the moment that it was asked for.

    start: what comes right before the first update. planning: what was over when the promise was made; 0 in notes of
        earlier versions.
    """

    start: float
    updates: float
    validations: float
    tests: float
    planning: float = 0.0

    @property
    def total(self) -> float:
        return sum(self)

    def sentence(self) -> str:
        parts = {"planning": self.planning, "validations": self.validations, "the tests": self.tests}
        told = ", ".join(f"{in_words(seconds)} for {part}" for part, seconds in parts.items() if seconds)
        return f"This will take about {in_words(self.total)} from start to end: {told}, the rest for training."


def promise(speed: Speed, updates: int, validate_every: int, planning: float = 0.0) -> Promise:
    """For so many updates, after so many seconds of planning."""
    validations = math.ceil(updates / validate_every)
    return Promise(speed.start, updates * speed.update, validations * speed.validation, speed.tests, planning)


def elapsed(report: dict[str, Any], promised: Promise, since: float | None = None) -> dict[str, Any]:
    """For report.json: what was promised, and what it took from start to end.

    since: the start, by `time.monotonic`; None: it was in an earlier process, so what was done since is added up.
    """
    took = promised.planning + worked(report) if since is None else time.monotonic() - since
    return {"promised_seconds": round(promised.total, 1), "took_seconds": round(took, 1)}


def worked(report: dict[str, Any]) -> float:
    """Seconds of training and tests, over all resumes."""
    return report["training"]["seconds"] + report.get("finishing_seconds", 0.0)


def in_words(seconds: float) -> str:
    """As a person would say it."""
    if seconds < 120:
        return f"{max(1, round(seconds))} second{'s' if round(seconds) > 1 else ''}"
    if seconds < 5400:
        return f"{round(seconds / 60)} minutes"
    return f"{seconds / 3600:.1f} hours"


def parse_minutes(text: str) -> float:
    """`2h`, `90m`, `45 min`, `1h30m`, `1.5h`, `90s` in minutes.

    Raises:
        InputError: something else, or no time at all.
    """
    left, minutes = text.strip().lower(), 0.0
    while left:
        found = PART.match(left)
        if not found:
            break
        minutes += float(found[1]) * UNITS[found[2]]
        left = left[found.end() :].strip()
    if left or not 0 < minutes < math.inf:
        raise InputError(f'--time {text}: expected a time such as 2h, 90m or 1h30m; got "{text}".')
    return minutes
