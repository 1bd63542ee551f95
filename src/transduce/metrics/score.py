"""A number that says what it is: value, interval, signature. And the checks that every metric starts with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transduce.errors import InputError


@dataclass(frozen=True)
class Score:
    """One figure.

    Args:
        value: the figure itself, in the unit its metric uses (BLEU, chrF and exact match: 0 to 100).
        signature: everything another needs to compute the same figure.
        interval: the 95 % bootstrap interval, or None where there is none (fewer than two sentences).
        name: what people call it.
    """

    value: float
    signature: str
    interval: tuple[float, float] | None
    name: str

    def to_dict(self) -> dict[str, Any]:
        """As JSON wants it."""
        interval = None if self.interval is None else list(self.interval)
        return {"name": self.name, "value": self.value, "interval": interval, "signature": self.signature}

    def __str__(self) -> str:
        """`BLEU 41.3 [40.1, 42.6] nrefs:1|case:mixed|...`"""
        interval = "" if self.interval is None else " [{:.1f}, {:.1f}]".format(*self.interval)
        return f"{self.name} {self.value:.1f}{interval} {self.signature}"


def check_corpus(hypotheses: Sequence[str], references: Sequence[str]) -> None:
    """Every hypothesis needs its reference, and there must be some.

    Raises:
        InputError: none at all, or not equally many.
    """
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise InputError("hypotheses and references are lists of sentences; one of them is a single text.")
    if len(hypotheses) != len(references):
        raise InputError(f"{len(hypotheses)} hypotheses, but {len(references)} references: line n must answer line n.")
    if not hypotheses:
        raise InputError("there are no sentences to score: both lists are empty.")
