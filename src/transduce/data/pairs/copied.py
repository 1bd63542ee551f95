"""How much of the targets stands in their sources already: in a summary, a correction, a related language."""

from collections.abc import Iterable

COPIED = 0.2  # share from which a model does well to copy, and a source is worth something as its own translation


def copied(pairs: Iterable[tuple[str, str]]) -> float:
    """The share of target words that stand in their source; 0 without words."""
    found = total = 0
    for source, target in pairs:
        there = set(source.split())
        words = target.split()
        found, total = found + sum(word in there for word in words), total + len(words)
    return found / max(total, 1)
