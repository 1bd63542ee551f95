"""Which pairs are worth training on. A pair is kept or dropped whole, and every drop is counted."""

from collections.abc import Sequence
from typing import Any

from pydantic import Field

from transduce.core.config import Config

LINES_NAMED = 5
REASONS = ("empty source", "empty target", "too long", "extreme ratio", "copy")


class FilterConfig(Config):
    """Limits on a pair, in tokens without start and end."""

    max_tokens: int = Field(default=256, ge=1)
    """The most tokens on either side."""
    max_ratio: float = Field(default=9.0, ge=1.0)
    """The most tokens of the longer side for one of the shorter."""
    ratio_from: int = Field(default=10, ge=0)
    """The ratio counts only where the longer side has more tokens than this: short phrases vary most."""
    drop_copies: bool = False
    """Drop pairs whose two sides are the same tokens; means something with a joint vocabulary only."""


NO_LIMITS = FilterConfig(max_tokens=1_000_000, max_ratio=1_000_000)  # of held-out examples, whatever their size


def reason_to_drop(config: FilterConfig, source: Sequence[Any], target: Sequence[Any]) -> str | None:
    """The first of `REASONS` that holds for the pair, or None: keep it."""
    if not len(source):
        return "empty source"
    if not len(target):
        return "empty target"
    shorter, longer = sorted((len(source), len(target)))
    if longer > config.max_tokens:
        return "too long"
    if longer > config.ratio_from and longer > config.max_ratio * shorter:
        return "extreme ratio"
    if config.drop_copies and source == target:
        return "copy"
    return None


class Dropped:
    """Counts the pairs that were kept and, by reason, the ones that were not, with the first line numbers."""

    def __init__(self) -> None:
        self.kept = 0
        self.counts: dict[str, int] = {}
        self.lines: dict[str, list[int]] = {}

    @property
    def total(self) -> int:
        """The pairs that were not kept."""
        return sum(self.counts.values())

    def add(self, reason: str | None, line: int) -> None:
        """One pair, from the line numbered `line` (from 1); reason None = kept."""
        if reason is None:
            self.kept += 1
            return
        self.counts[reason] = self.counts.get(reason, 0) + 1
        first = self.lines.setdefault(reason, [])
        if len(first) < LINES_NAMED:
            first.append(line)

    def report(self, units: str = "pairs") -> str:
        """One sentence for people: how many of how many, why, and where to look."""
        if not self.total:
            return f"All {self.kept:,} {units} kept."
        parts = (f"{count:,} {reason}{self._where(reason)}" for reason, count in self.counts.items())
        return f"Dropped {self.total:,} of {self.kept + self.total:,} {units}: {'; '.join(parts)}."

    def _where(self, reason: str) -> str:
        named, count = self.lines.get(reason), self.counts[reason]
        if named is None:
            return ""
        more = ", …" if count > len(named) else ""
        return f" (line{'s' if count > 1 else ''} {', '.join(map(str, named))}{more})"

    def to_dict(self) -> dict[str, Any]:
        """For a store's metadata, in the order of `REASONS`."""
        seen = [reason for reason in REASONS if reason in self.counts]
        return {
            "kept": self.kept,
            "counts": {reason: self.counts[reason] for reason in seen},
            "lines": {reason: self.lines[reason] for reason in seen},
        }

    @classmethod
    def of_all(cls, parts: "Sequence[Dropped]") -> "Dropped":
        """Of several files; their lines, which are counted in each file, are named for one alone."""
        if len(parts) == 1:
            return parts[0]
        whole = cls()
        for part in parts:
            whole.kept += part.kept
            for reason, count in part.counts.items():
                whole.counts[reason] = whole.counts.get(reason, 0) + count
        return whole

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Dropped":
        dropped = cls()
        dropped.kept, dropped.counts, dropped.lines = (
            values["kept"],
            dict(values["counts"]),
            dict(values["lines"]),
        )
        return dropped
