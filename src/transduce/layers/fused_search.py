"""What a beam search asks of a decoder that searches by itself, all steps in one call."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, Self

from torch import Tensor

Mean = Literal["probability", "log_probability"]  # how several are one, see `transduce.search.ensemble`
Found = tuple[list[int], list[float]]  # tokens and their log-probabilities


@dataclass(frozen=True, slots=True)
class BeamRequest:
    """How a beam is searched, in whole numbers; see `transduce.search`.

    limits: the most tokens of each sentence's outputs. prune: inf = nothing is pruned.
    length: (offset, unit, alpha): a score is log p / ((offset + L) / unit)^alpha.
    words: what each sentence may say, in rising order, nothing of it forbidden: all lists one behind the other and the
        place (B + 1,) where each begins, int64, the last being where all end; None = anything.
    """

    start: int
    end: int
    beam: int
    nbest: int
    forbidden: Sequence[int]
    limits: Sequence[int]
    prune: float
    length: tuple[float, float, float]
    words: tuple[Tensor, Tensor] | None = None


class FusedSearch(Protocol):
    """Decoders and what they read, of which the mean is searched (see `transduce.fused.beam_search`)."""

    @property
    def words(self) -> int:
        """Of the vocabulary, which is the same for all."""
        ...

    @property
    def members(self) -> int:
        """How many decoders there are."""
        ...

    def joined(self, others: Sequence[Self], mean: Mean) -> Self:
        """These and those as one."""
        ...

    def search(self, request: BeamRequest) -> tuple[list[list[Found]], float]:
        """What each sentence's beam found, in no order; and what a model gave that is no log-probability, or 0.

        A request with words is for one decoder.
        """
        ...
