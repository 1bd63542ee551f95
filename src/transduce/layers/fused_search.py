"""The interface between beam search and decoders that run a whole search in one call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, Self

from transduce.kernels.native.arrays import Array

Mean = Literal["probability", "log_probability"]  # how an ensemble is averaged, see `transduce.search.ensemble`
Stopping = Literal["slots", "heuristic", "complete", "never"]
Found = tuple[list[int], list[float], float]  # tokens, their log-probabilities, the score


@dataclass(frozen=True, slots=True)
class BeamRequest:
    """The settings of a beam search; see `transduce.search`.

    start, end: token ids.
    beam: number of slots.
    nbest: number of hypotheses to return for each sentence.
    forbidden: token ids that are never generated.
    limits: the maximum number of tokens of each sentence's outputs.
    prune: the largest allowed difference to the best hypothesis, in nats; inf = no pruning.
    length: (offset, unit, alpha): a score is log p / ((offset + L) / unit)^alpha.
    words: the token ids that each sentence may generate, ascending and without forbidden ones: the concatenated lists,
        and the offsets (B + 1,) of each list, both int64; None = any token.
    prefixes: the token ids that each sentence's outputs begin with; () = none of any.
    stopping, at_limit: what ended hypotheses do to the beam, and what those do that reach their limit; see
        `transduce.search.set_aside`. "slots" finds them in no order, the others the best first.
    """

    start: int
    end: int
    beam: int
    nbest: int
    forbidden: Sequence[int]
    limits: Sequence[int]
    prune: float
    length: tuple[float, float, float]
    words: tuple[Array, Array] | None = None
    prefixes: Sequence[Sequence[int]] = ()
    stopping: Stopping = "slots"
    at_limit: Literal["stop", "end"] = "stop"


class FusedSearch(Protocol):
    """One or more decoders with their sources, whose mean is searched (see `transduce.fused.stack`)."""

    @property
    def words(self) -> int:
        """The size of the vocabulary, which is the same for all decoders."""
        ...

    @property
    def members(self) -> int:
        """The number of decoders."""
        ...

    @property
    def takes_lists(self) -> bool:
        """Whether a request may have `words`: there is one decoder, and nothing is copied."""
        ...

    def joined(self, others: Sequence[Self], mean: Mean) -> Self:
        """An ensemble of these decoders and the others."""
        ...

    def search(self, request: BeamRequest) -> tuple[list[list[Found]], float]:
        """The hypotheses of each sentence; and 0, or an invalid log-probability that a model returned.

        A request with `words` needs `takes_lists`.
        """
        ...
