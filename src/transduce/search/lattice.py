"""The candidates that a beam search considered at each step, recorded for display.

Shapes: N live hypotheses, C candidates of each, M selected candidates.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

START = -1  # the parent of the first step's candidates


@dataclass(frozen=True, slots=True)
class Candidate:
    """A token that could continue a hypothesis.

    parent: index of the hypothesis among the candidates of the previous step; -1 at the start.
    log_probability: the token's log-probability.
    total: the log-probability of the hypothesis including the token.
    kept: whether it took a slot of the beam.
    finished: whether it ended, with the end token or at the limit.
    text: the text of the token, once `spelled` has filled it in.
    """

    token: int
    parent: int
    log_probability: float
    total: float
    kept: bool
    finished: bool
    text: str = ""


@dataclass(frozen=True, slots=True)
class Lattice:
    """The candidates of one sentence, step by step: the most likely ones of each hypothesis, in slot order."""

    steps: list[list[Candidate]] = field(default_factory=list)

    def path(self, step: int, place: int) -> list[int]:
        """The tokens of the hypothesis that ends with candidate `place` of `step`."""
        tokens: list[int] = []
        while place != START:
            candidate = self.steps[step][place]
            tokens.append(candidate.token)
            step, place = step - 1, candidate.parent
        return tokens[::-1]

    def spelled(self, spell: Callable[[Sequence[int]], Sequence[str]]) -> "Lattice":
        """A copy with the texts of the tokens."""
        return Lattice(
            [
                [replace(each, text=text) for each, text in zip(step, spell([c.token for c in step]), strict=True)]
                for step in self.steps
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        names = Candidate.__slots__
        return {"steps": [[{name: getattr(each, name) for name in names} for each in step] for step in self.steps]}


class Lattices:
    """The lattices of a batch's rows, filled during search. A sentence that has stopped gets no further steps."""

    def __init__(self, rows: int) -> None:
        self.found = [Lattice() for _ in range(rows)]
        self._place: list[int] = []

    def note(
        self,
        sentence_N: "Tensor",
        total_N: "Tensor",
        value_NC: "Tensor",
        token_NC: "Tensor",
        selected: "tuple[Tensor, Tensor]",
        finished_M: "Tensor",
        going: "Tensor",
    ) -> None:
        """Record one step: live hypotheses with their candidates, the (parent, column) selected, and which continue."""
        place_N = self._place or [START] * len(sentence_N)
        fates = dict(zip(zip(*(part.tolist() for part in selected), strict=True), finished_M.tolist(), strict=True))
        steps: dict[int, list[Candidate]] = {}
        place: dict[tuple[int, int], int] = {}
        rows = zip(sentence_N.tolist(), total_N.tolist(), value_NC.tolist(), token_NC.tolist(), strict=True)
        for number, (sentence, total, values, tokens) in enumerate(rows):
            step = steps.setdefault(sentence, [])
            for column, (value, token) in enumerate(zip(values, tokens, strict=True)):
                if value == float("-inf"):
                    continue
                place[number, column] = len(step)
                key = (number, column)
                step.append(
                    Candidate(token, place_N[number], value, total + value, key in fates, fates.get(key, False))
                )
        for sentence, step in steps.items():
            self.found[sentence].steps.append(step)
        self._place = [place[key] for key in zip(*(part[going].tolist() for part in selected), strict=True)]
