"""TER against worked examples and sacrebleu."""

import pytest
from sacrebleu.metrics.ter import TER

from scores import ter


def test_edits_over_the_references_length() -> None:
    assert ter(["a b x d"], ["a b c d"]).value == 25.0
    assert ter(["a b"], ["a b c d"]).value == 50.0
    assert ter(["c d a b"], ["a b c d"]).value == 25.0  # a moved phrase is one edit


def test_counts_are_summed_over_the_corpus_and_the_nearest_reference_counts() -> None:
    assert ter(["a", "b c x"], ["a", "b c d"]).value == pytest.approx(25.0)
    assert ter(["a b c"], [["x y z", "a b c"]]).value == 0


def test_the_value_is_sacrebleus_own_and_the_signature_too() -> None:
    hypotheses, references = ["The cat sat .", "dogs bark at night"], ["the cat sits .", "a dog barks at night"]
    for lowercase in (True, False):
        metric = TER(case_sensitive=not lowercase)
        score = ter(hypotheses, references, lowercase=lowercase)
        assert score.value == pytest.approx(metric.corpus_score(hypotheses, [references]).score, rel=1e-12)
        assert score.signature == str(metric.get_signature())
        assert score.name == "TER"
