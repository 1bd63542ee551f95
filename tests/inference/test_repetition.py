"""What is repeated, against all runs of all parts of a text."""

import random

import pytest

from transduce.inference.prediction import Prediction, doubtful, doubtful_line
from transduce.inference.repetition import COVERED, TIMES, repetition
from transduce.inference.splitting import Pieces


def longest_by_trying(text: str) -> int:
    """The characters that the longest loop has with all its repeats; 0: there is none."""
    spaced, best = f"{text.strip()} ", 0
    for start in range(len(spaced)):
        for length in range(1, len(spaced) - start + 1):
            part, times = spaced[start : start + length], 1
            while spaced.startswith(part, start + times * length):
                times += 1
            if times >= TIMES and times * length >= COVERED and part.strip():
                best = max(best, times * length)
    return best


@pytest.mark.parametrize("seed", range(40))
def test_it_is_found_where_trying_everything_finds_it(seed: int) -> None:
    random_ = random.Random(seed)
    part = "".join(random_.choices("ab ", k=random_.randrange(1, 6)))
    around = ["".join(random_.choices("abc ", k=random_.randrange(6))) for _ in range(2)]
    text = around[0] + part * random_.randrange(1, 12) + around[1]
    found, longest = repetition(text), longest_by_trying(text)
    assert (found is not None) == (longest > 0), text
    if found:
        assert found.times >= TIMES and found.text and found.text in text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("so so so so so so", ("so", 6)),
        ("Well. " + "and then " * 9 + "end", ("and then", 9)),
        ("哈" * 12, ("哈", 12)),
        ("I see. " * 40, ("I see.", 40)),
        ("no no no no no", None),
        ("1000000 people", None),
        ("one two three four five six", None),
        ("", None),
    ],
)
def test_loops_are_told_and_people_may_say_a_word_again(text: str, said: tuple[str, int] | None) -> None:
    assert repetition(text) == said


def part(text: str, ended: bool = True) -> Prediction:
    return Prediction("a.wav", text, 0.0, 0.0, tuple(text), (), ended)


def test_each_part_of_a_recording_warns_by_its_times() -> None:
    pieces = Pieces(["a.wav"], [[None, None, None]], [], times=[[(0, 28.5), (28.5, 55), (55, 60.25)]])  # type: ignore
    [found] = pieces.joined([part("fine"), part("ha ha " * 20, ended=False), part("well")])
    assert not found.ended and len(found.warnings) == 2
    assert found.warnings[0].startswith("28.5 to 55.0 s: the output was cut off at its limit")
    assert '28.5 to 55.0 s: "ha" stands there 40 times in a row' in found.warnings[1]
    told = found.to_dict()
    assert told["warnings"] == found.warnings
    assert [each.get("ended", True) for each in told["segments"]] == [True, False, True]
    assert told["segments"][1]["repeated"] == {"text": "ha", "times": 40} and "repeated" not in told["segments"][0]


def test_they_are_counted() -> None:
    spoken = [(0.0, 2.0)]
    cut, loop, both, fine = (part("a", False), part("so " * 9), part("so " * 9, False), part("b"))
    pieces = Pieces(["x"] * 4, [[None]] * 4, [], times=[spoken] * 4)  # type: ignore[list-item]
    found = pieces.joined([cut, loop, both, fine])
    assert doubtful(found) == (2, 2) and "warnings" not in found[3].to_dict()
    line = doubtful_line(2, 2, 4)
    assert line.startswith("of 4 recordings, 2 reached the limit of an output without an end and 2 repeat themselves")
    assert doubtful_line(0, 0, 4) == "" and "1 repeats itself" in doubtful_line(0, 1, 1)
    assert doubtful([part("a", False)]) == (0, 0)  # a text, not a recording
