"""chrF against a slow computation from its definition."""

from collections import Counter
from importlib.metadata import version

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.chrf import CHRF

from scores import chrf


def slow_chrf(hypotheses: list[str], references: list[str]) -> float:
    """Popović 2015: mean precision and recall over orders 1 to 6, F with beta = 2; spaces do not count."""
    precisions, recalls = [], []
    for order in range(1, 7):
        matches = hypothesis_total = reference_total = 0
        for hypothesis, reference in zip(hypotheses, references, strict=True):
            ours, theirs = grams(hypothesis, order), grams(reference, order)
            matches += (ours & theirs).total()
            hypothesis_total += ours.total() if theirs else 0
            reference_total += theirs.total()
        if hypothesis_total and reference_total:
            precisions.append(matches / hypothesis_total)
            recalls.append(matches / reference_total)
    precision = sum(precisions) / len(precisions) if precisions else 0.0
    recall = sum(recalls) / len(recalls) if recalls else 0.0
    return 100 * 5 * precision * recall / (4 * precision + recall) if precision + recall else 0.0


def grams(text: str, order: int) -> Counter[str]:
    text = "".join(text.split())
    return Counter(text[start : start + order] for start in range(len(text) - order + 1))


corpus = st.lists(st.tuples(*[st.text("ab c", max_size=12)] * 2), min_size=1, max_size=4)


@settings(max_examples=40)
@given(corpus)
def test_chrf_equals_its_definition(pairs: list[tuple[str, str]]) -> None:
    hypotheses, references = [list(side) for side in zip(*pairs, strict=True)]
    assert chrf(hypotheses, references).value == pytest.approx(slow_chrf(hypotheses, references), abs=1e-9)


def test_chrf_plus_plus_is_sacrebleus_and_says_so() -> None:
    hypotheses, references = ["the cat sat", "dogs bark"], ["the cat sits", "a dog barks"]
    theirs = CHRF(word_order=2).corpus_score(hypotheses, [references])
    score = chrf(hypotheses, references, word_order=2)
    assert score.value == pytest.approx(theirs.score, rel=1e-12)
    assert score.name == "chrF++"
    assert score.signature == f"nrefs:1|case:mixed|eff:yes|nc:6|nw:2|space:no|version:{version('sacrebleu')}"
    assert chrf(hypotheses, references).name == "chrF"
