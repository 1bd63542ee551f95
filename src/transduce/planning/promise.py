"""How long a training takes: what is promised before, and what it took."""

import math
import re
from typing import Any, NamedTuple

from transduce.core.errors import InputError
from transduce.planning.speed import Speed

UNITS = {"s": 1 / 60, "sec": 1 / 60, "m": 1.0, "min": 1.0, "h": 60.0, "d": 1440.0}
PART = re.compile(r"(\d+(?:\.\d+)?)\s*(d|h|min|m|sec|s)")


class Promise(NamedTuple):
    """Seconds of a whole training."""

    start: float
    updates: float
    validations: float
    tests: float

    @property
    def total(self) -> float:
        """All of it."""
        return sum(self)

    def sentence(self) -> str:
        """For people."""
        parts = f"{in_words(self.validations)} of them for validations, {in_words(self.tests)} for the tests"
        return f"This will take about {in_words(self.total)}: {parts}."


def promise(speed: Speed, updates: int, validate_every: int) -> Promise:
    """For so many updates."""
    validations = math.ceil(updates / validate_every)
    return Promise(speed.start, updates * speed.update, validations * speed.validation, speed.tests)


def taken(report: dict[str, Any], promised: float) -> dict[str, Any]:
    """For report.json: what was promised, and what it took over all resumes."""
    took = report["training"]["seconds"] + report.get("finishing_seconds", 0.0)
    return {"promised_seconds": round(promised, 1), "took_seconds": round(took, 1)}


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
