"""Draw held-out parts from labelled texts: so many of each label, and the same text on one side.

Hashes of the texts decide which examples are held out, not their order or a seed. Each label gives in proportion to its
examples (largest remainders), and keeps one at least. Texts that are the same but for case and white space stay
together, under the label that most of them have. Empty texts are not drawn.

Both versions of `HoldOut` draw the same here. The whole draw takes time and memory that are linear in the examples.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path

import numpy as np

from transduce.core.errors import InputError
from transduce.data.files import fingerprint
from transduce.data.hold_out import TEST, TRAIN, VALIDATION, DrawnParts, HoldOut
from transduce.data.labelled import LabelledFile, read_labelled
from transduce.data.pairs.pair_groups import Parts, same_text, text_hash

Example = tuple[int | None, str]  # hash of its text, None = empty; its label
Group = tuple[int, int]  # hash of a text, examples that have it


@dataclass(frozen=True)
class ExampleSplit(DrawnParts):
    """Where each example belongs. what: the examples are. how: they were drawn, in words."""

    what: str
    how: str

    def report(self) -> str:
        """How many are held out, in a sentence."""
        return f"Held out of {sum(map(len, self.parts)):,} {self.what}: {self.held_out}, {self.how}."


def split_labelled(
    files: Sequence[LabelledFile], root: Path, amounts: HoldOut, labels: Mapping[str, str] | None = None
) -> ExampleSplit:
    """Where each example of the files belongs. What was found is remembered as long as the process lives.

    Args:
        labels: what the files' labels are called, as `read_labelled` takes them.

    Raises:
        InputError: what `read_labelled` refuses; there are too few examples.
    """
    prints = tuple(fingerprint(path) for file in files for path in file.paths(root))
    renamed = None if labels is None else tuple(sorted(labels.items()))
    return _split(tuple(files), root, amounts, renamed, prints)


@lru_cache(maxsize=4)
def _split(
    files: tuple[LabelledFile, ...],
    root: Path,
    amounts: HoldOut,
    labels: tuple[tuple[str, str], ...] | None,
    prints: tuple[str, ...],
) -> ExampleSplit:
    """prints: of the files, which may change under the same names."""
    renamed = None if labels is None else dict(labels)
    read = [[(hash_of(text), label) for _, text, label in read_labelled(file, root, renamed)] for file in files]
    names = ", ".join(file.name for file in files)
    parts = parts_of_files(names, read, amounts, "examples, as each label keeps one for training")
    return ExampleSplit(parts, "examples", "of each label in proportion, the same text on one side")


def parts_of_files(names: str, files: Sequence[Sequence[Example]], amounts: HoldOut, what: str) -> tuple[Parts, ...]:
    """The parts of the examples of each file.

    Args:
        names: of the files. what: their examples, and why not all can be held out.

    Raises:
        InputError: there are too few.
    """
    lengths = [len(each) for each in files]
    wanted = amounts.counts(sum(lengths))
    parts = drawn_parts(list(chain.from_iterable(files)), wanted)
    if sum(wanted) >= sum(lengths) or not all(has_parts(parts, wanted)):
        raise InputError(
            f"{names}: data.hold_out: cannot hold out {sum(wanted):,} of {sum(lengths):,} {what}. Hold out fewer, or "
            "name files for data.validation and data.test."
        )
    return tuple(np.split(parts, np.cumsum(lengths)[:-1]))


def has_parts(parts: Parts, wanted: tuple[int, int], share: float = 0.0) -> list[bool]:
    """Whether validation and test have an example each where they are wanted, and more than this share of them."""
    found = [int((parts == part).sum()) for part in (VALIDATION, TEST)]
    return [not goal or count > share * goal for count, goal in zip(found, wanted, strict=True)]


def hash_of(text: str) -> int | None:
    """The same for texts that are the same but for case and white space; None for an empty one."""
    same = same_text(text)
    return text_hash(same) if same else None


def drawn_parts(examples: Sequence[Example], counts: tuple[int, int]) -> Parts:
    """The part of each example, as (hash of its text, label).

    Args:
        counts: how many for validation and test.
    """
    groups = _groups(examples)
    room = {label: sum(size for _, size in each) - 1 for label, each in groups.items()}
    first = quotas({label: each + 1 for label, each in room.items()}, counts[0], room)
    left = {label: room[label] - first[label] for label in room}
    second = quotas({label: each + 1 for label, each in room.items()}, counts[1], left)
    chosen: dict[int | None, int] = dict(
        chain.from_iterable(_chosen(each, (first[label], second[label])) for label, each in groups.items())
    )
    return np.array([chosen.get(key, TRAIN) for key, _ in examples], np.uint8)


def _groups(examples: Iterable[Example]) -> dict[str, list[Group]]:
    """The texts of each label, in the order of their hashes."""
    labels = defaultdict[int, Counter[str]](Counter)
    for key, label in examples:
        if key is not None:
            labels[key][label] += 1
    found = defaultdict[str, list[Group]](list)
    for key in sorted(labels):
        commonest = min(labels[key], key=lambda label: (-labels[key][label], label))
        found[commonest].append((key, labels[key].total()))
    return found


def quotas(sizes: Mapping[str, int], wanted: int, room: Mapping[str, int]) -> dict[str, int]:
    """How many each label gives, in proportion to its size; what rounding leaves goes to the largest remainders.

    Args:
        room: the most that each may give.
    """
    total = max(1, sum(sizes.values()))
    given = {label: min(room[label], wanted * size // total) for label, size in sizes.items()}
    missing = wanted - sum(given.values())
    for label in sorted(sizes, key=lambda label: (-(wanted * sizes[label] % total), label)):
        if missing > 0 and given[label] < room[label]:
            given[label], missing = given[label] + 1, missing - 1
    return given


def _chosen(groups: Iterable[Group], wanted: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """The held-out texts of a label with their part: each goes where a larger share is missing, if it fits there."""
    left = [*wanted]
    for key, size in groups:
        shares = [each / goal if size <= each and goal else 0.0 for each, goal in zip(left, wanted, strict=True)]
        which = 0 if shares[0] >= shares[1] else 1
        if shares[which]:
            left[which] -= size
            yield key, (VALIDATION, TEST)[which]
