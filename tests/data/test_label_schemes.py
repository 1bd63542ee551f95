"""Spans as labels of words: read, written, and which labels may follow each other."""

import itertools
import random

import pytest

from transduce.core.errors import InputError
from transduce.data.columns.word_labels import WordLabels
from transduce.data.structures.label_schemes import (
    LabelSpan,
    allowed_transitions,
    labels_of,
    scheme_of,
    spans_of,
)

LABELS = {
    "bio": ("B-X", "B-Y", "I-X", "I-Y", "O"),
    "bioes": ("B-X", "E-X", "I-X", "S-X", "B-Y", "E-Y", "S-Y", "O"),
    "bmes": ("B", "E", "M", "S"),
}


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        ("O B-PER I-PER", "bio"),
        ("O I-PER", "bio"),
        ("B I O", "bio"),
        ("B-X E-X S-X I-X O", "bioes"),
        ("O S-X", "bioes"),
        ("B-X I-X L-X U-X O", "bioes"),
        ("B M E S", "bmes"),
        ("B-X M-X E-X S-X O", "bmes"),
        ("NOUN VERB ADJ", "none"),
        ("O", "none"),
        ("B-X I-X PER", "none"),
    ],
)
def test_a_scheme_is_what_labels_look_like(labels: str, scheme: str) -> None:
    assert scheme_of(labels.split()) == scheme


@pytest.mark.parametrize(
    ("labels", "spans"),
    [
        ("B-X I-X O B-Y", [(0, 2, "X"), (3, 4, "Y")]),
        ("I-X I-X O I-Y I-X", [(0, 2, "X"), (3, 4, "Y"), (4, 5, "X")]),  # IOB1, and I behind O
        ("I-X B-X I-X", [(0, 1, "X"), (1, 3, "X")]),
        ("B-X E-X S-X S-X", [(0, 2, "X"), (2, 3, "X"), (3, 4, "X")]),
        ("B M E S B E", [(0, 3, ""), (3, 4, ""), (4, 6, "")]),
        ("B-X L-X U-Y", [(0, 2, "X"), (2, 3, "Y")]),
        ("B-a-b I-a-b", [(0, 2, "a-b")]),
        ("O O", []),
        ("", []),
    ],
)
def test_rows_are_read_as_spans(labels: str, spans: list[tuple[int, int, str]]) -> None:
    assert spans_of(labels.split()) == [LabelSpan(*each) for each in spans]


@pytest.mark.parametrize("scheme", ["bio", "bioes", "bmes"])
def test_what_is_written_is_read_again(scheme: str) -> None:
    drawn = random.Random(scheme)
    for _ in range(300):
        ends = sorted(drawn.sample(range(13), 6))
        pairs = itertools.batched(ends, 2) if hasattr(itertools, "batched") else zip(ends[::2], ends[1::2], strict=True)
        spans = [LabelSpan(start, end, drawn.choice("XY")) for start, end in pairs]
        assert spans_of(labels_of(spans, 13, scheme)) == spans


@pytest.mark.parametrize("scheme", LABELS)
def test_transitions_allow_what_is_its_own_writing_and_nothing_else(scheme: str) -> None:
    labels = LABELS[scheme]
    table = allowed_transitions(labels, scheme)
    for length in (1, 2, 3):
        for row in itertools.product(range(len(labels)), repeat=length):
            steps = [table[one][other] for one, other in itertools.pairwise((-1, *row, -1))]
            named = [labels[each] for each in row]
            assert all(steps) == (labels_of(spans_of(named), length, scheme) == named), named


def test_without_a_scheme_all_is_allowed() -> None:
    assert allowed_transitions(("NOUN", "VERB"), "none") == ()


@pytest.mark.parametrize(("scheme", "most"), [("bio", 1_000), ("none", 5_000)])
def test_a_model_file_with_more_labels_than_can_be_paired_is_refused(scheme: str, most: int) -> None:
    table = {"labels": [f"B-{number}" for number in range(most)], "scheme": scheme}
    assert len(WordLabels.from_dict(table).labels) == most
    table["labels"].append("O")
    with pytest.raises(InputError, match=rf"expected at most {most:,}; got {most + 1:,}"):
        WordLabels.from_dict(table)
