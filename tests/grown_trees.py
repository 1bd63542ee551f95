"""Trees drawn at random, whose labels follow from their words."""

import random

WORDS = {"good": 1, "fine": 1, "bad": -1, "dull": -1, "film": 0, "the": 0, "plot": 0}
NAMES = {-1: "bad", 0: "none", 1: "good"}


def grown(random_: random.Random, words: int) -> tuple[str, int]:
    """A tree in which "not" turns what stands beside it, and the sum of both parts decides else."""
    if words == 1:
        word = random_.choice(list(WORDS))
        return f"({NAMES[WORDS[word]]} {word})", WORDS[word]
    if words > 1 and random_.random() < 0.25:
        inner, value = grown(random_, words - 1)
        return f"({NAMES[-value]} (none not) {inner})", -value
    first = random_.randrange(1, words)
    (one, left), (other, right) = grown(random_, first), grown(random_, words - first)
    value = max(-1, min(1, left + right))
    return f"({NAMES[value]} {one} {other})", value


def trees(count: int, seed: int, longest: int = 6) -> list[str]:
    random_ = random.Random(seed)
    return [grown(random_, random_.randrange(1, longest + 1))[0] for _ in range(count)]
