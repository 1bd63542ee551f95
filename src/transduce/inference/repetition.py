"""What stands many times in a row in an output: a model that writes one token after the other may be caught in a loop.

Radford et al. 2022 (section 4.5) know such outputs of Whisper by how well they compress. Here the loop itself is found.
Nothing here imports torch.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

TIMES = 6  # in a row, from which it is told: people say a word three or four times
COVERED = 12  # characters that the loop has at least: 1000000 is none
LONGEST = 400  # characters of what is repeated


class Repetition(NamedTuple):
    """What is repeated, and how many times it stands there in a row."""

    text: str
    times: int


def repetition(text: str) -> Repetition | None:
    """What stands in a text 6 times in a row or more, which are 12 characters or more together; None = nothing.

    Of several it is the one that covers most characters; of those that cover as many, the shortest: "a b a b a b .."
    repeats "a b", not "a b a b".
    """
    spaced, best, covered = f"{text.strip()} ", None, COVERED - 1
    for length in range(1, min(LONGEST, len(spaced) // TIMES) + 1):
        start, times = _longest_run(spaced, length)
        if times >= TIMES and times * length > covered and (said := spaced[start : start + length].strip()):
            best, covered = Repetition(said, times), times * length
    return best


def _longest_run(text: str, length: int) -> tuple[int, int]:
    """Where the n-gram of so many characters begins that stands there most often in a row, and how often it does."""
    other = [place for place in range(length, len(text)) if text[place] != text[place - length]]
    runs: Sequence[tuple[int, int]] = [*pairwise([length - 1, *other, len(text)])]  # equal between these places
    before, behind = max(runs, key=lambda run: run[1] - run[0])
    return before + 1 - length, 1 + (behind - before - 1) // length
