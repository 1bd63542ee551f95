"""A score with its interval and signature, and the checks that every metric starts with."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transduce.core.errors import InputError

References = Sequence[str] | Sequence[Sequence[str]]  # for each hypothesis one reference or several


@dataclass(frozen=True)
class Score:
    """One score of one system over a whole test set.

    Args:
        value: the score itself, in the unit of its metric (BLEU, chrF and exact match: 0 to 100).
        signature: everything that is needed to compute the same score.
        interval: the 95 % bootstrap interval, or None where there is none (fewer than two sentences).
        name: what people call it.
        lower_is_better: as for error rates and perplexity.
        note: what a reader needs to know beyond the signature, in a sentence, or "".
    """

    value: float
    signature: str
    interval: tuple[float, float] | None
    name: str
    lower_is_better: bool = False
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As JSON wants it."""
        interval = None if self.interval is None else list(self.interval)
        told = {"name": self.name, "value": self.value, "interval": interval, "signature": self.signature}
        return {**told, "note": self.note} if self.note else told

    def __str__(self) -> str:
        """`BLEU 41.3 [40.1, 42.6] nrefs:1|case:mixed|...`, and the note behind it if there is one."""
        interval = "" if self.interval is None else " [{:.1f}, {:.1f}]".format(*self.interval)
        note = f" ({self.note})" if self.note else ""
        return f"{self.name} {self.value:.1f}{interval} {self.signature}{note}"


def checked_references(hypotheses: Sequence[str], references: References) -> list[list[str]]:
    """The references of each hypothesis, as lists: every hypothesis needs one at least, and there must be some.

    Raises:
        InputError: no sentences at all, not equally many, or a sentence without a reference.
    """
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise InputError("hypotheses and references must be lists of sentences; one of them is a single text.")
    if len(hypotheses) != len(references):
        raise InputError(f"{len(hypotheses)} hypotheses, but {len(references)} references: line n must answer line n.")
    if not hypotheses:
        raise InputError("there are no sentences to score: both lists are empty.")
    listed = [[each] if isinstance(each, str) else list(each) for each in references]
    without = [str(line) for line, several in enumerate(listed, start=1) if not several]
    if without:
        raise InputError(f"no reference for the hypotheses {', '.join(without)} (counted from 1).")
    return listed


def reference_count(references: list[list[str]]) -> str:
    """`1`, `2`, or `var` where sentences differ: what a signature says after `nrefs:`."""
    counts = {len(several) for several in references}
    return str(counts.pop()) if len(counts) == 1 else "var"


def decimals(signature: str) -> int:
    """How many digits a figure is shown with: two, but four where it lies between 0 and 1 or counts bits."""
    return 4 if any(each in signature for each in ("scale:0-1", "base:2", "unit:bit")) else 2
