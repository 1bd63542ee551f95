"""What stands many times in a row in an output: a model that writes one token after the other may be caught in a loop.

Radford et al. 2022 (section 4.5) know such outputs of Whisper by how well they compress. Here the loop itself is found.
Nothing here imports torch.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from transduce.data.words import WORD

TIMES = 6  # in a row, from which it is told: people say a word three or four times
COVERED = 12  # characters that the loop has at least: 1000000 is none
LONGEST = 400  # characters of what is repeated
LOOP_TIMES, LOOP_CHARACTERS = 3, 5  # in a row, of words, and of a single character, in a translation
LONGEST_LOOP = 8  # words


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


def looped(output: str, source: str) -> Repetition | None:
    """What a translation repeats and its source does not: words 3 times in a row; characters of Chinese 5 times.

    None = nothing. A loop of up to 8 words is found.
    """
    words, best = WORD.findall(output.lower()), None
    for length in range(1, min(LONGEST_LOOP, len(words) // LOOP_TIMES) + 1):
        start, times = _longest_run(words, length)
        said = words[start : start + length]
        least = LOOP_TIMES if any(len(word) > 1 for word in said) or length > 1 else LOOP_CHARACTERS
        if times >= least and (best is None or times * length > best[0]):
            best = times * length, said, times
    if best is None:
        return None
    _, said, times = best
    read = WORD.findall(source.lower())
    if len(read) >= len(said) * LOOP_TIMES and _longest_run(read, len(said))[1] >= LOOP_TIMES:
        return None
    between = "" if all(len(word) == 1 for word in said) else " "
    return Repetition(between.join(said), times)


def _longest_run(text: Sequence[str], length: int) -> tuple[int, int]:
    """Where the n-gram of so many characters begins that stands there most often in a row, and how often it does."""
    other = [place for place in range(length, len(text)) if text[place] != text[place - length]]
    runs: Sequence[tuple[int, int]] = [*pairwise([length - 1, *other, len(text)])]  # equal between these places
    before, behind = max(runs, key=lambda run: run[1] - run[0])
    return before + 1 - length, 1 + (behind - before - 1) // length
