"""Where a training is: everything a resumed run must know besides tensors."""

from dataclasses import asdict, dataclass, field
from typing import Any, Self


@dataclass
class Progress:
    """Counters after `update` updates.

    update: updates done.
    epoch, batch: the next batch to read is number `batch` of epoch `epoch`, both from 0.
    tokens: target tokens trained on.
    seconds: time spent training and validating, summed over resumes.
    best: metrics of the best validation so far, with its "update"; empty before the first.
    stale: validations since the best one.
    in_pieces: batches that were trained on in pieces, for want of memory.
    planned: the training.updates that the learning rate followed; 0 in checkpoints of earlier versions.
    raised: [update, planned until then] for each time that the training went on with more of them.
    """

    update: int = 0
    epoch: int = 0
    batch: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best: dict[str, float] = field(default_factory=dict)
    stale: int = 0
    in_pieces: int = 0
    planned: int = 0
    raised: list[list[int]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """What `to_dict` gave."""
        return cls(**values)
