"""Which rows go together: those of like lengths, as shorter ones are padded."""

from collections.abc import Iterable, Iterator, Sequence

from transduce.core.errors import InputError

PADDED = 65_536  # tokens of a batch at most, with its padding: 64 rows of 1,024


def check_batch_size(size: int) -> None:
    """Raises InputError where a batch would hold nothing."""
    if size < 1:
        raise InputError(f"batch_size = {size}: expected at least 1.")


def by_length(lengths: Iterable[int], size: int, longest_first: bool = False) -> Iterator[list[int]]:
    """The places of rows of these lengths in batches, the shortest first.

    A batch has `size` rows, or fewer where padding would make more than `PADDED` tokens of them; a row that is longer
    by itself is alone. Raises InputError where a batch would hold nothing.
    """
    check_batch_size(size)
    known = list(lengths)
    return _cut(sorted(range(len(known)), key=known.__getitem__, reverse=longest_first), known, size)


def _cut(order: Sequence[int], lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    batch: list[int] = []
    for place in order:
        longest = max(lengths[each] for each in (place, *batch[:1]))
        if batch and (len(batch) == size or (len(batch) + 1) * longest > PADDED):
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
