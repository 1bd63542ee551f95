"""A text as one long stream of tokens, cut into rows for language modelling. Memory holds one row."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain


def sentences(lines: Iterable[Sequence[int]], end: int) -> Iterator[Sequence[int]]:
    """A stream of lines, each followed by `end`; one more before the first, to predict it from."""
    return chain([[end]], chain.from_iterable((line, [end]) for line in lines))


def running(lines: Iterable[Sequence[int]], end: int) -> Iterator[Sequence[int]]:
    """A stream of text that only begins with `end`; its lines hold their own newline tokens."""
    return chain([[end]], lines)


def windows(stream: Iterable[Sequence[int]], context: int) -> Iterator[list[int]]:
    """Rows of context + 1 ids, each beginning with the token that the one before ended with.

    A row's first token is only read, the others are predicted: every token of the stream but its very first
    is predicted exactly once. The last row may be shorter; one of a single token predicts nothing and is left
    out.
    """
    row: list[int] = []
    for piece in stream:
        taken = 0
        while len(row) + len(piece) - taken > context:
            more = context + 1 - len(row)
            row.extend(piece[taken : taken + more])
            taken += more
            yield row
            row = row[-1:]
        row.extend(piece[taken:])
    if len(row) >= 2:
        yield row
