"""A small vocabulary that writes text in many ways, and slow definitions of what constraints mean, for the tests."""

import math
import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache

from tiny_steps import END, START, next_log_probabilities, outputs

from transduce.core.padded import Padded
from transduce.models.protocols import Steps
from transduce.search.constraint import Constraint
from transduce.search.hypothesis import Hypothesis
from transduce.search.length import LengthRule
from transduce.search.phrases import Phrases
from transduce.search.token_text import Spelling


class Toy:
    """Tokens 0 and 1 start and end; the others are `pieces`."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = [b"", b"", *(piece.encode() for piece in pieces)]
        self.spelling = Spelling(self.pieces)

    def __str__(self) -> str:
        return "toy"

    @property
    def size(self) -> int:
        return len(self.pieces)

    def decode(self, tokens: Sequence[int]) -> str:
        return b"".join(self.pieces[token] for token in tokens).decode("utf-8", "replace")

    def encode(self, text: str) -> list[int]:
        """The fewest tokens, of equally many the first, that write the text, with a space in front or without."""

        @cache
        def write(rest: bytes) -> tuple[int, ...] | None:
            if not rest:
                return ()
            ways = [
                (token, *tail)
                for token, piece in enumerate(self.pieces)
                if piece and rest.startswith(piece) and (tail := write(rest[len(piece) :])) is not None
            ]
            return min(ways, key=lambda way: (len(way), way), default=None)

        found = [way for way in (write(f" {text}".encode()), write(text.encode())) if way is not None]
        assert found, f"{text!r} cannot be written"
        return list(min(found, key=len))

    def constraint(self, must: Sequence[str | Sequence[str]] = (), must_not: Sequence[str] = ()) -> Constraint:
        sets = tuple((each,) if isinstance(each, str) else tuple(each) for each in must)
        return Constraint(Phrases(sets, tuple(must_not)), self.spelling, self.encode)


def stands(phrase: str, text: str) -> bool:
    """By a regular expression, for texts of letters of spaced scripts, marks, spaces and signs."""
    letters = r"[^\W_]|[̀-ͯ]"
    normal = [re.sub(r"\s+", " ", unicodedata.normalize("NFD", each)).strip() for each in (phrase, text)]
    before = f"(?<!{letters[:6]})(?<![̀-ͯ])" if re.match(letters, normal[0]) else ""
    after = f"(?!{letters})" if re.match(letters, normal[0][-1]) else "(?![̀-ͯ])"
    return re.search(before + re.escape(normal[0]) + after, normal[1]) is not None


def best_outputs(
    model: Steps,
    source: Padded | None,
    vocabulary: int,
    limit: int,
    allowed: Callable[[tuple[int, ...]], bool],
    rule: LengthRule,
    penalty: Callable[[tuple[int, ...]], float] = lambda tokens: 0.0,
) -> list[tuple[float, tuple[int, ...]]]:
    """Of all outputs that end, those that are allowed, with their scores, best first."""
    found = []
    for tokens in outputs(vocabulary, limit):
        if tokens[-1] != END or START in tokens or not allowed(tokens[:-1]):
            continue
        total = math.fsum(next_log_probabilities(model, source, tokens[:t])[token] for t, token in enumerate(tokens))
        found.append((rule.normalised(total, len(tokens)) + penalty(tokens), tokens))
    return sorted(found, key=lambda pair: (-pair[0], len(pair[1]), pair[1]))


def ended(found: Sequence[Hypothesis]) -> list[tuple[int, ...]]:
    return [each.tokens for each in found if each.ended]
