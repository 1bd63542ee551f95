"""Metrics of rows of labels against seqeval, conlleval's rules and counts by hand."""

import random
import warnings
from typing import Any

import numpy as np
import pytest
from seqeval.metrics import accuracy_score, f1_score, precision_score, recall_score
from seqeval.scheme import IOB2, IOBES

from transduce.core.errors import InputError
from transduce.metrics.entities import segments
from transduce.metrics.evaluate import evaluate, tallies
from transduce.metrics.paired import paired_bootstrap

LABELS = {
    "bio": ["O", "O", "B-X", "I-X", "B-Y", "I-Y"],
    "bioes": [f"{one}-{k}" for one in "BIES" for k in "XY"] + ["O"],
}


def rows(labels: list[str], seed: int, count: int = 1_000) -> tuple[list[list[str]], list[list[str]]]:
    """What was said, and what is true: mostly the same, and rarely as a scheme wants it."""
    drawn = random.Random(seed)
    true = [[drawn.choice(labels) for _ in range(drawn.randint(1, 9))] for _ in range(count)]
    return [[drawn.choice(labels) if drawn.random() < 0.3 else each for each in row] for row in true], true


def value(name: str, said: list[list[str]], true: list[list[str]]) -> float:
    [score] = evaluate([name], [*map(" ".join, said)], [*map(" ".join, true)])
    return score.value


@pytest.mark.parametrize("scheme", LABELS)
def test_entities_are_counted_as_by_seqeval(scheme: str) -> None:
    said, true = rows(LABELS[scheme], 1)
    for name, theirs in (("f1", f1_score), ("precision", precision_score), ("recall", recall_score)):
        assert value(f"entity_{name}", said, true) == 100 * theirs(true, said)
    assert value("label_accuracy", said, true) == pytest.approx(100 * accuracy_score(true, said), abs=1e-12)


@pytest.mark.parametrize(("scheme", "theirs"), [("bio", IOB2), ("bioes", IOBES)])
def test_the_strict_count_is_that_of_seqeval(scheme: str, theirs: Any) -> None:
    said, true = rows(LABELS[scheme], 2)
    assert value("strict_entity_f1", said, true) == 100 * f1_score(true, said, mode="strict", scheme=theirs)


def test_each_row_by_itself_is_counted_as_by_seqeval() -> None:
    said, true = rows(LABELS["bio"], 3, 200)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rows without spans
        for one, other in zip(said, true, strict=True):
            assert value("entity_f1", [one], [other]) == 100 * f1_score([other], [one])


def test_inside_behind_outside_begins_a_span() -> None:
    """As conlleval reads it, and the strict count does not."""
    said, true = ["O I-X I-X O"], ["O B-X I-X O"]
    found = {each.name: each.score().value for each in tallies(["entity_f1", "strict_entity_f1"], said, true)}
    assert found == {"entity F1": 100, "entity F1 strict": 0}


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("B E S B M E", [(0, 2), (2, 3), (3, 6)]),
        ("S S", [(0, 1), (1, 2)]),
        ("M B M", [(0, 1), (1, 3)]),  # no rule is kept, and yet each character is in a word
        ("", []),
    ],
)
def test_segments_hold_every_character(labels: str, words: list[tuple[int, int]]) -> None:
    assert [each[:2] for each in segments(labels.split())] == words


def test_words_of_segmented_text() -> None:
    assert value("word_f1", [["B", "E", "S", "S"]], [["B", "E", "B", "E"]]) == pytest.approx(100 * 2 * 1 / (3 + 2))


def test_macro_f1_is_the_mean_over_labels() -> None:
    said, true = [["A", "B", "B"], ["C"]], [["A", "A", "B"], ["B"]]
    wanted = np.mean([2 * 1 / 3, 2 * 1 / 4, 0])
    assert value("label_macro_f1", said, true) == pytest.approx(100 * wanted)


def test_they_have_intervals_and_are_compared() -> None:
    said, true = rows(LABELS["bio"], 4, 60)
    texts = [*map(" ".join, true)]
    [ours], [perfect] = (tallies(["entity_f1"], system, texts) for system in ([*map(" ".join, said)], texts))
    low, high = ours.score().interval or (0, 0)
    assert low < ours.value < high < perfect.value == 100
    assert ours.signature == "nrefs:1|unit:span|average:micro|scheme:conlleval"
    assert paired_bootstrap([ours], [perfect]).p_value < 0.01


def test_a_row_of_another_length_is_no_answer() -> None:
    assert value("entity_f1", [["B-X"]], [["B-X", "O"]]) == 0
    assert value("label_accuracy", [["B-X"]], [["B-X", "O"]]) == 50
    with pytest.raises(InputError, match="expected one row of labels as the reference of each output; got several"):
        evaluate(["entity_f1"], ["O"], [["O", "B-X"]])
