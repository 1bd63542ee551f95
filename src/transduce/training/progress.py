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
    world: processes that train together; 0 in checkpoints of earlier versions, which were of one.
    start: metrics of the model to start from, before the first update, where training.kept asks for them.
    unlogged: nats, tokens and seconds of the updates since the last line of the log, which the next one counts, too.
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
    world: int = 0
    unlogged: dict[str, float] = field(default_factory=dict)
    start: dict[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Any) -> Self:
        """What `to_dict` gave.

        Raises:
            ValueError: it did not give this; which key is wrong.
        """
        kinds = {name: type(value) for name, value in asdict(cls()).items()}
        if not isinstance(values, dict):
            raise ValueError("no progress: expected a table")
        if wrong := [name for name, value in values.items() if not _is(value, kinds.get(name))]:
            raise ValueError(f"no progress: {', '.join(map(str, wrong[:20]))} cannot be read")
        found = cls(**values)
        if found.best and not _is(found.best.get("update"), float):
            raise ValueError("no progress: best names no update")
        return found


def _is(value: Any, kind: type | None) -> bool:
    """Whether it is a counter, a time, a table of figures or a list of pairs of counters."""
    if kind is dict:
        return isinstance(value, dict) and all(isinstance(each, int | float) for each in value.values())
    if kind is list:
        pairs = isinstance(value, list) and all(isinstance(each, list) and len(each) == 2 for each in value)
        return pairs and all(_is(number, int) for each in value for number in each)
    return type(value) in ((int,) if kind is int else (int, float) if kind is float else ()) and 0 <= value < 2**53
