"""The lexical baseline against the equations of its module as slow loops, and on texts whose answer is plain."""

import itertools
import math
import random

import pytest

from transduce.data.structures.squad import joined
from transduce.inference.sliding_window import CANDIDATES, SlidingWindow, words

TEXT = "The key is in the kitchen, near the door. The old ball lies in the garden: it is red. Nobody reads."


@pytest.mark.parametrize(
    ("candidates", "answer"),
    [("sentence", "The old ball lies in the garden: it is red"), ("clause", "The old ball lies in the garden")],
)
def test_the_sentence_with_the_questions_words_is_found(candidates, answer) -> None:  # type: ignore[no-untyped-def]
    system = SlidingWindow(candidates, "en")
    assert system.answers([joined("Where in the garden does the ball lie?", TEXT)]) == [answer]


def test_a_run_has_none_of_the_questions_words() -> None:
    assert SlidingWindow("run", "en").answer("What lies in the garden?", TEXT) == "old ball"
    assert SlidingWindow("run", "zh").answer("谁是北京大学的校长？", "王明是北京大学的校长。李华是医生。") == "王明"


@pytest.mark.parametrize("candidates", CANDIDATES)
def test_strange_texts_have_answers_too(candidates) -> None:  # type: ignore[no-untyped-def]
    system = SlidingWindow(candidates)
    assert system.answers(["", "?\t", "?\t...", "\ta"]) == ["", "", "", "a"]
    assert SlidingWindow("run").answer("a b", "A b. B a? c") == "c"  # no run in the sentences that overlap most


def test_words_are_chinese_characters_and_runs_of_letters_and_digits() -> None:
    assert [each.text for each in words("在Python3 里，A_b")] == ["在", "python3", "里", "a_b"]
    assert [(each.start, each.end) for each in words("在Python3 里")] == [(0, 1), (1, 8), (9, 10)]


@pytest.mark.parametrize("seed", range(100))
def test_it_is_the_equations(seed: int) -> None:
    random_ = random.Random(seed)
    drawn = [
        [random_.choices("abcdefg", k=random_.randrange(1, 6)) for _ in range(random_.randrange(1, 4))]
        for _ in range(4)
    ]
    asked = random_.choices("abcdefg", k=4)
    context = "\n".join(", ".join(" ".join(clause) for clause in each) for each in drawn)  # a line is a sentence
    sentences = [[word for clause in each for word in clause] for each in drawn]
    flat = [word for each in sentences for word in each]

    def pairs(texts: list[str]) -> list[tuple[str, str]]:
        return list(itertools.pairwise(texts))

    def value(term: str | tuple[str, str]) -> float:
        if isinstance(term, str):
            count, known = flat.count(term), term in asked
        else:
            count, known = sum(pairs(each).count(term) for each in sentences), term in pairs(asked)
        return math.log(1 + 1 / count) if known and count else 0.0

    def overlap(texts: list[str]) -> float:
        return math.fsum(map(value, {*texts, *pairs(texts)}))

    best = max(range(4), key=lambda place: (overlap(sentences[place]), -place))
    first, scored = sum(map(len, sentences[:best])), []
    for clause in drawn[best]:
        last, sums = first + len(clause) - 1, []
        size = min(len(flat), len(clause) + len({*asked}))
        for start in range(len(flat) - size + 1):
            if start <= first and last < start + size:
                inside = range(start, start + size)
                sums.append(sum(value(flat[at]) + sum(map(value, pairs(flat[at : at + 2]))) for at in inside))
        scored.append((round(max(sums), 9), -first, " ".join(clause)))
        first = last + 1
    assert SlidingWindow("clause").answer(" ".join(asked), context) == max(scored)[2]
