"""The budget of each training of a comparison: time, target tokens, or floating-point operations."""

import math
import re
from typing import Literal, NamedTuple

from transduce.core.errors import InputError

Unit = Literal["minutes", "tokens", "flops"]

UNLIMITED = 10**9  # updates, where time ends the training
TIMES = {"s": 1 / 60, "m": 1.0, "min": 1.0, "h": 60.0}
PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
FORM = re.compile(
    r"(?P<number>\d+(\.\d*)?(e\+?\d+)?)\s*((?P<time>s|min|m|h)|(?P<prefix>[kKMGTPE]?)(?P<what>tok|flop)s?)"
)


class Budget(NamedTuple):
    """An amount of time, tokens or operations, and the text it was given as."""

    amount: float
    unit: Unit
    text: str


def parse_budget(text: str) -> Budget:
    """`20m`, `1.5h`, `90s` of training time; `5Mtok` target tokens; `1e15flop` or `1Pflop`.

    Raises:
        InputError: something else.
    """
    found = FORM.fullmatch(text.strip())
    if not found or not 0 < float(found["number"]) < math.inf:
        raise InputError(
            f'"{text}" is not a budget: expected time (20m, 1.5h), tokens (5Mtok) or operations (1e15flop).'
        )
    number = float(found["number"])
    if found["time"]:
        return Budget(number * TIMES[found["time"]], "minutes", text)
    return Budget(number * PREFIXES[found["prefix"]], "tokens" if found["what"] == "tok" else "flops", text)
