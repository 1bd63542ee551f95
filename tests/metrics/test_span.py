"""Answers to questions, against the official scripts' algorithms, written out here as slow loops."""

import random
import re
import string

import pytest

from transduce.metrics.evaluate import evaluate, tallies
from transduce.metrics.paired import paired_bootstrap
from transduce.metrics.span import cmrc_tally, drcd_tally, longest_run, mixed_segments, squad2_tally, squad_tally

PARTS = [
    "The",
    "the",
    "a",
    "An",
    "cat",
    "Cat's",
    "theatre",
    "U.S.",
    "1990",
    "3.5%",
    "don't",
    '"quoted"',
    "--",
    "  ",
    " ",
    "",
]
PARTS += [
    "北京",
    "大学",
    "中",
    "国",
    "，",
    "。",
    "……",
    "…",
    "（",
    "）",
    "《",
    "》",
    "Python",
    "é",
    "Ünder",
    "\u3000",
    "\n",
    "-",
    "_",
    "·",
]
PARTS += ["it's", "cannot", "(x)", "a.b.", "e.g.,", "’", "～", "龥", "龦", "ﬁ", "İ", "the-cat", "/", "100,000"]


def drawn(seed: int, count: int = 1000, empty: bool = True) -> tuple[list[str], list[list[str]]]:
    """Predictions and references, which share some of their parts."""
    random_ = random.Random(seed)

    def text(parts: list[str]) -> str:
        return random_.choice(["", " "]).join(parts)

    said, true = [], []
    for _ in range(count):
        parts = random_.choices(PARTS, k=random_.randrange(0 if empty else 1, 7))
        several = []
        for _ in range(random_.randrange(1, 4)):
            changed = [random_.choice(PARTS) if random_.random() < 0.3 else part for part in parts]
            several.append(text(changed[random_.randrange(2) : len(changed) + 1 - random_.randrange(2)]))
        said.append(text(parts))
        true.append(several)
    return said, true


def official_mean(scores: list[float]) -> float:
    total = 0.0
    for score in scores:
        total += score
    return 100.0 * total / len(scores)


# ---- SQuAD ---------------------------------------------------------------------------------------------------------


def squad_normal(text: str) -> str:
    """lower, then no punctuation, then no articles, then one space between words."""
    kept = ""
    for character in text.lower():
        if character not in set(string.punctuation):
            kept += character
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", kept).split())


def overlap(one: list[str], other: list[str]) -> int:
    """Of bags: each taken out of a copy of the other once found."""
    rest, count = list(other), 0
    for each in one:
        if each in rest:
            rest.remove(each)
            count += 1
    return count


def f1(same: int, said: int, true: int) -> float:
    if same == 0:
        return 0.0
    precision, recall = 1.0 * same / said, 1.0 * same / true
    return (2 * precision * recall) / (precision + recall)


def squad_f1(said: str, true: str) -> float:
    one, other = squad_normal(said).split(), squad_normal(true).split()
    return f1(overlap(one, other), len(one), len(other))


def squad2_f1(said: str, true: str) -> float:
    one = squad_normal(said).split() if said else []
    other = squad_normal(true).split() if true else []
    if not one or not other:
        return float(one == other)
    return f1(overlap(one, other), len(one), len(other))


@pytest.mark.parametrize("seed", range(3))
def test_squad_1_is_its_script(seed: int) -> None:
    said, true = drawn(seed)
    exact = [
        max(float(squad_normal(one) == squad_normal(each)) for each in several)
        for one, several in zip(said, true, strict=True)
    ]
    bags = [max(squad_f1(one, each) for each in several) for one, several in zip(said, true, strict=True)]
    assert squad_tally(said, true, "em").value == official_mean(exact)
    assert squad_tally(said, true, "f1").value == official_mean(bags)
    assert 0 < official_mean(exact) != official_mean(bags) < 100


@pytest.mark.parametrize("seed", range(3))
def test_squad_2_is_its_script(seed: int) -> None:
    said, true = drawn(seed)
    golds = [[each for each in several if squad_normal(each)] or [""] for several in true]
    exact = [
        max(float(squad_normal(one) == squad_normal(each)) for each in several)
        for one, several in zip(said, golds, strict=True)
    ]
    bags = [max(squad2_f1(one, each) for each in several) for one, several in zip(said, golds, strict=True)]
    assert squad2_tally(said, true, "em").value == official_mean(exact)
    assert squad2_tally(said, true, "f1").value == official_mean(bags)
    assert squad2_tally(said, true, "f1").value != squad_tally(said, true, "f1").value


def test_no_answer_is_an_answer_in_squad_2_alone() -> None:
    assert squad2_tally(["", ""], [[""], ["Rome"]], "f1").value == 50
    assert squad_tally(["", ""], [[""], ["Rome"]], "f1").value == 0


# ---- CMRC 2018 -----------------------------------------------------------------------------------------------------

REMOVED = [
    "-",
    ":",
    "_",
    "*",
    "^",
    "/",
    "\\",
    "~",
    "`",
    "+",
    "=",
    "，",
    "。",
    "：",
    "？",
    "！",
    "“",
    "”",
    "；",
    "’",
    "《",
    "》",
]
REMOVED += ["……", "·", "、", "「", "」", "（", "）", "－", "～", "『", "』"]


def cmrc_segments(text: str) -> list[str]:
    from nltk.tokenize import word_tokenize

    found, waiting = [], ""
    for character in text.lower().strip():
        if character in REMOVED:
            continue
        if re.search("[\u4e00-\u9fa5]", character):
            if waiting != "":
                found.extend(word_tokenize(waiting, preserve_line=True))
                waiting = ""
            found.append(character)
        else:
            waiting += character
    if waiting != "":
        found.extend(word_tokenize(waiting, preserve_line=True))
    return found


def cmrc_run(one: list[str], other: list[str]) -> int:
    table = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    longest = 0
    for i in range(len(one)):
        for j in range(len(other)):
            if one[i] == other[j]:
                table[i + 1][j + 1] = table[i][j] + 1
                longest = max(longest, table[i + 1][j + 1])
    return longest


def cmrc_f1(said: str, true: str) -> float:
    reference, answer = cmrc_segments(true), cmrc_segments(said)
    return f1(cmrc_run(reference, answer), len(answer), len(reference))


def cmrc_normal(text: str) -> str:
    return "".join(character for character in text.lower().strip() if character not in REMOVED)


@pytest.mark.parametrize("seed", range(3))
def test_cmrc_is_its_script(seed: int) -> None:
    said, true = drawn(seed, 400)
    exact = [
        max(float(cmrc_normal(one) == cmrc_normal(each)) for each in several)
        for one, several in zip(said, true, strict=True)
    ]
    runs = [max(cmrc_f1(one, each) for each in several) for one, several in zip(said, true, strict=True)]
    assert cmrc_tally(said, true, "em").value == official_mean(exact)
    assert cmrc_tally(said, true, "f1").value == official_mean(runs)


def test_cmrc_counts_a_run_and_no_bag() -> None:
    assert longest_run("北京大学", "大学北京") == 2
    assert cmrc_tally(["大学北京"], ["北京大学"], "f1").value == 50
    assert drcd_tally(["大学北京"], ["北京大学"], "f1").value == 100
    assert mixed_segments("在 Python3.5 里……", str.split) == ["在", "python3.5", "里", "……"]


# ---- DRCD ----------------------------------------------------------------------------------------------------------


def drcd_characters(text: str) -> list[str]:
    found = []
    for character in text.lower():
        if character not in string.punctuation and not character.isspace():
            found.append(character)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_drcd_is_a_bag_of_characters(seed: int) -> None:
    said, true = drawn(seed)
    exact, bags = [], []
    for one, several in zip(said, true, strict=True):
        cut = drcd_characters(one)
        others = [drcd_characters(each) for each in several]
        exact.append(max(float(cut == other) for other in others))
        bags.append(max(f1(overlap(cut, other), len(cut), len(other)) for other in others))
    assert drcd_tally(said, true, "em").value == official_mean(exact)
    assert drcd_tally(said, true, "f1").value == official_mean(bags)


def test_intervals_and_the_paired_bootstrap_work() -> None:
    said, true = drawn(7, 100, empty=False)
    for name in ("squad_em", "squad_f1", "squad2_em", "squad2_f1", "cmrc_em", "cmrc_f1", "drcd_em", "drcd_f1"):
        [score] = evaluate([name], said, true)
        assert score.interval is not None and score.interval[0] <= score.value <= score.interval[1]
        [one], [other] = (tallies([name], each, true) for each in (said, [several[0] for several in true]))
        assert paired_bootstrap(one, other).better == "second"
