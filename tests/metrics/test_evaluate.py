"""Metrics by name, and exact match."""

import subprocess
import sys
from unicodedata import normalize

import pytest

from scores import bleu, chrf, exact_match, length_match, moses_bleu, rouge, ter
from transduce.core.errors import InputError
from transduce.metrics.bleu_formula import notes_bleu_tally
from transduce.metrics.error_rate import (
    character_error_rate_tally,
    phoneme_error_rate_tally,
    word_error_rate_tally,
)
from transduce.metrics.evaluate import NAMES, evaluate
from transduce.metrics.labels import accuracy_tally, error_tally, macro_f1_tally
from transduce.metrics.rouge import notes_rouge_tally
from transduce.metrics.span import cmrc_tally, drcd_tally, squad2_tally, squad_tally

HYPOTHESES, REFERENCES = ["Ein Haus am See.", "zwei Hunde"], ["Ein Haus am Meer.", "zwei Hunde"]


def test_each_name_is_its_function_in_the_order_asked() -> None:
    expected = {
        "cer": character_error_rate_tally(HYPOTHESES, REFERENCES).score(),
        "wer": word_error_rate_tally(HYPOTHESES, REFERENCES).score(),
        "per": phoneme_error_rate_tally(HYPOTHESES, REFERENCES).score(),
        "accuracy": accuracy_tally(HYPOTHESES, REFERENCES).score(),
        "macro_f1": macro_f1_tally(HYPOTHESES, REFERENCES).score(),
        "error": error_tally(HYPOTHESES, REFERENCES).score(),
        "exact_match": exact_match(HYPOTHESES, REFERENCES),
        "length_match": length_match(HYPOTHESES, REFERENCES),
        "bleu-lc-moses": moses_bleu(HYPOTHESES, REFERENCES, "de"),
        "bleu-notes": notes_bleu_tally(HYPOTHESES, REFERENCES).score(),
        "chrf": chrf(HYPOTHESES, REFERENCES),
        "chrf++": chrf(HYPOTHESES, REFERENCES, word_order=2),
        "bleu": bleu(HYPOTHESES, REFERENCES),
        "squad_em": squad_tally(HYPOTHESES, REFERENCES, "em").score(),
        "squad_f1": squad_tally(HYPOTHESES, REFERENCES, "f1").score(),
        "squad2_em": squad2_tally(HYPOTHESES, REFERENCES, "em").score(),
        "squad2_f1": squad2_tally(HYPOTHESES, REFERENCES, "f1").score(),
        "cmrc_em": cmrc_tally(HYPOTHESES, REFERENCES, "em").score(),
        "cmrc_f1": cmrc_tally(HYPOTHESES, REFERENCES, "f1").score(),
        "drcd_em": drcd_tally(HYPOTHESES, REFERENCES, "em").score(),
        "drcd_f1": drcd_tally(HYPOTHESES, REFERENCES, "f1").score(),
        "ter": ter(HYPOTHESES, REFERENCES),
        "rouge1": rouge(HYPOTHESES, REFERENCES, "1"),
        "rouge2": rouge(HYPOTHESES, REFERENCES, "2"),
        "rougeL": rouge(HYPOTHESES, REFERENCES, "L"),
        "rouge1-notes": notes_rouge_tally(HYPOTHESES, REFERENCES, 1).score(),
        "rouge2-notes": notes_rouge_tally(HYPOTHESES, REFERENCES, 2).score(),
    }
    assert sorted(expected) == sorted(NAMES)
    assert evaluate(list(expected), HYPOTHESES, REFERENCES, "de") == list(expected.values())


def test_case_counts_where_the_signature_says_so() -> None:
    same, other = "a dog barks loudly now", "A Dog barks LOUDLY now"
    perfect, found = ({each: evaluate([each], [text], [same], "en")[0] for each in NAMES} for text in (same, other))
    counts = {name for name in NAMES if found[name].value != pytest.approx(perfect[name].value)}
    assert counts == {"accuracy", "error", "macro_f1", "cer", "wer", "per", "bleu", "chrf", "chrf++", "exact_match"}
    assert counts == {name for name in NAMES if "case:mixed" in found[name].signature}


def test_no_two_metrics_share_name_and_signature() -> None:
    scores = evaluate(NAMES, HYPOTHESES, REFERENCES, "de")
    assert len({(score.name, score.signature) for score in scores}) == len(NAMES)


def test_a_sentence_may_have_several_references() -> None:
    both = [["Ein Haus am Meer.", "Ein Haus am See."], ["zwei Hunde", "zwei Katzen"]]
    for score in evaluate(NAMES, HYPOTHESES, both, "de"):
        assert "nrefs:2" in score.signature
    assert exact_match(HYPOTHESES, both).value == 100
    assert ter(HYPOTHESES, both).value == 0


def test_all_wrong_names_come_at_once_with_the_nearest() -> None:
    with pytest.raises(InputError) as caught:
        evaluate(["blue", "chrff", "bleu-lc-moses"], HYPOTHESES, REFERENCES)
    assert len(caught.value.problems) == 3
    assert 'there is no "blue". Did you mean "bleu"?' in caught.value.problems[0]
    assert 'Did you mean "chrf"?' in caught.value.problems[1]
    assert "target_language" in caught.value.problems[2]


def test_unequal_lists_are_refused_before_anything_is_computed() -> None:
    with pytest.raises(InputError, match="line n must answer line n"):
        evaluate(["bleu"], HYPOTHESES, REFERENCES[:1])


def test_length_match_counts_characters() -> None:
    (score,) = evaluate(["length_match"], ["花开", "月 明", "春", ""], [["鸟鸣"], ["月明"], ["春风", "夏"], ["秋"]])
    assert (score.name, score.value) == ("length match", 50)
    assert "unit:character" in score.signature


def test_exact_match_counts_equal_sentences_and_forgives_nothing() -> None:
    score = exact_match(["a", "b", "c ", "D"], ["a", "b", "c", "d"])
    assert score.value == 50.0
    assert score.interval is not None
    assert score.interval[0] < 50 < score.interval[1]


def test_importing_the_metrics_imports_no_heavy_library() -> None:
    script = (
        "import sys; before = set(sys.modules); "
        "import transduce.metrics.evaluate; "
        "print(*{'torch', 'numpy', 'sacrebleu', 'sacremoses', 'rouge_score', 'nltk'} & (set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("name", ["bleu", "chrf", "cer", "wer", "ter", "exact_match", "length_match"])
def test_references_of_separate_accents_are_met_by_composed_letters(name: str) -> None:
    """Models write é as one character; a reference may have it as two."""
    composed = ["Il a été élu à l'école", "Où est la forêt ?", "한국어 사전"]
    apart = [normalize("NFD", text) for text in composed]
    outputs = [composed[0].replace("élu", "vu"), *composed[1:]]
    [wanted] = evaluate([name], outputs, composed, "fr")
    for given in (outputs, [normalize("NFD", text) for text in outputs]):
        [found] = evaluate([name], given, apart, "fr")
        assert (found.value, found.interval) == (wanted.value, wanted.interval)
        assert found.signature == f"{wanted.signature}|unicode:NFC"
    [alone] = evaluate(["exact_match"], apart, composed)
    assert alone.value == 0 and "unicode" not in alone.signature  # such references are taken as they are
