"""BLEU against worked examples, sacrebleu itself, and the published tokenisation of Multi30k."""

import gzip
import math
import os
import random
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU

from scores import bleu, d2l_bleu, moses_bleu, notes_bleu
from transduce.core.errors import InputError
from transduce.metrics.bleu import moses_tokenizer
from transduce.metrics.bleu_formula import notes_bleu_tally

DATA = Path(os.environ.get("TRANSDUCE_DATA", Path(__file__).parents[2] / "../shared/data"))
MULTI30K = DATA / "multi30k"

REFERENCE, HYPOTHESIS = "A B C D E F", "A B B C D"
sentences = st.lists(st.lists(st.sampled_from("abc"), max_size=8), min_size=1, max_size=5)


def lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().removesuffix("\n").split("\n")


# ---- the worked example ABCDEF / ABBCD


@pytest.mark.parametrize(
    ("smooth", "max_order", "value"),
    [
        ("exp", 4, 38.7154),
        ("none", 4, 0.0),
        ("floor", 4, 25.8905),
        ("add-k", 4, 46.7895),
        ("none", 3, 47.8797),
        ("none", 2, 63.4186),
    ],
)
def test_sacrebleu_on_the_worked_example(smooth: str, max_order: int, value: float) -> None:
    score = bleu([HYPOTHESIS], [REFERENCE], smooth=smooth, max_order=max_order)
    assert score.value == pytest.approx(value, abs=5e-5)
    if smooth == "exp":  # of 0 matches in 2 half a match, twice: 25 %
        assert BLEU().corpus_score([HYPOTHESIS], [[REFERENCE]]).precisions == pytest.approx([80, 75, 100 / 3, 25])


@pytest.mark.parametrize(("max_order", "value"), [(1, 0.654985), (2, 0.634186), (3, 0.478797), (4, 0.0)])
def test_the_formula_on_the_worked_example(max_order: int, value: float) -> None:
    assert notes_bleu(["ABBCD"], [["ABCDEF"]], max_order) == pytest.approx(value, abs=5e-7)


def test_the_formulas_parts_on_the_worked_example() -> None:
    brevity = math.exp(1 - 6 / 5)
    assert brevity == pytest.approx(0.818731, abs=5e-7)
    precisions = [Fraction(4, 5), Fraction(3, 4), Fraction(1, 3)]
    by_hand = brevity * float(math.prod(precisions)) ** (1 / 3)
    assert notes_bleu(["ABBCD"], [["ABCDEF"]], 3) == pytest.approx(by_hand, rel=1e-12)
    third_only = notes_bleu(["ABBCD"], [["ABCDEF"]], 3, weights=[0, 0, 1])
    assert third_only == pytest.approx(brevity / 3, rel=1e-12)
    assert notes_bleu(["ABBCD"], [["ABCDEF"]], 4, weights=[0.5, 0.5, 0, 0]) == pytest.approx(0.634186, abs=5e-7)


@pytest.mark.parametrize(("max_order", "value"), [(1, 0.732295), (2, 0.681477), (3, 0.594034), (4, 0.0)])
def test_the_d2l_variant_on_the_worked_example(max_order: int, value: float) -> None:
    assert d2l_bleu("ABBCD", "ABCDEF", max_order) == pytest.approx(value, abs=5e-7)


def test_the_d2l_penalty() -> None:
    assert d2l_bleu("AB", "ABCDEF", 2) == pytest.approx(0.135335, abs=5e-7)


def test_brevity_uses_the_shortest_reference_in_the_formula_and_the_closest_in_sacrebleu() -> None:
    assert notes_bleu(["abcdef"], [["abcd", "abcdefg"]], 4) == pytest.approx(1.0)
    theirs = BLEU(tokenize="none").corpus_score(["a b c d e f"], [["a b c d"], ["a b c d e f g"]])
    assert theirs.bp == pytest.approx(0.846482, abs=5e-7)
    assert theirs.score == pytest.approx(84.648, abs=5e-4)


def test_several_references_reach_sacrebleu() -> None:
    score = bleu(["a b c d e f"], [["a b c d", "a b c d e f g"]], tokenize="none")
    assert score.value == pytest.approx(84.648, abs=5e-4)
    assert score.signature.startswith("nrefs:2|")
    unequal = bleu(["a b c d e f", "x y z"], [["a b c d", "a b c d e f g"], ["x y z"]], tokenize="none")
    assert unequal.signature.startswith("nrefs:var|")


def test_an_n_gram_matches_as_often_as_one_reference_has_it_not_all_together() -> None:
    # "the" stands twice in one reference and once in another: two of three match, and none of the pairs "the the".
    hypothesis, references = ["the", "the", "the"], [["the", "x", "the"], ["y", "the", "z"]]
    assert notes_bleu([hypothesis], [references], 1) == pytest.approx(2 / 3)
    assert notes_bleu([hypothesis], [references[::-1]], 1) == pytest.approx(2 / 3)


def test_the_formula_on_text_says_that_it_is_no_sacrebleu_figure() -> None:
    text = notes_bleu_tally(["A b, b c d!"], ["A b c d e f."], max_order=3).score()
    assert text.value == pytest.approx(0.478797, abs=5e-7)
    assert text.signature == "nrefs:1|case:lc|tok:words|smooth:none|brevity:shortest|order:3|scale:0-1|formula:notes"
    assert text.name != bleu(["A b"], ["A b"]).name
    assert notes_bleu_tally(["A b b c d"], ["A b c d e f"]).score().value == 0.0  # log 0


def test_equal_length_has_no_penalty() -> None:
    assert notes_bleu(["abcd"], [["abcd"]], 4) == pytest.approx(1.0)


# ---- properties


def test_counts_are_summed_over_the_corpus_before_dividing() -> None:
    hypotheses, references = [["a"], ["b", "c", "x"]], [[["a"]], [["b", "c", "d"]]]
    assert notes_bleu(hypotheses, references, 1) == pytest.approx(3 / 4)  # the mean of 1/1 and 2/3 is 5/6
    value = bleu(["a", "b c x"], ["a", "b c d"], smooth="none", max_order=1).value
    assert value == pytest.approx(75.0)


@settings(max_examples=40)
@given(sentences, st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_formula_equals_unsmoothed_sacrebleu_with_one_reference(
    hypotheses: list[list[str]], max_order: int, random: random.Random
) -> None:
    references = [[random.choice("abc") for _ in range(random.randint(1, 8))] for _ in hypotheses]
    theirs = bleu(
        [" ".join(tokens) for tokens in hypotheses],
        [" ".join(tokens) for tokens in references],
        tokenize="none",
        smooth="none",
        max_order=max_order,
    )
    ours = notes_bleu(hypotheses, [[reference] for reference in references], max_order)
    assert 100 * ours == pytest.approx(theirs.value, abs=1e-6)


@given(sentences)
def test_a_corpus_of_itself_is_perfect_and_no_more(corpus: list[list[str]]) -> None:
    value = notes_bleu(corpus, [[sentence] for sentence in corpus], 2)
    assert value == pytest.approx(1.0 if any(len(sentence) > 1 for sentence in corpus) else 0.0)


def test_the_value_is_sacrebleus_own_and_the_signature_too() -> None:
    hypotheses = ["the cat sat on the mat .", "a dog barks loudly at night"]
    references = ["the cat sat on a mat .", "a dog barks at night"]
    metric = BLEU(lowercase=True, tokenize="intl")
    theirs = metric.corpus_score(hypotheses, [references])
    score = bleu(hypotheses, references, lowercase=True, tokenize="intl")
    assert score.value == pytest.approx(theirs.score, rel=1e-12)
    assert score.signature == str(metric.get_signature())
    assert score.signature == f"nrefs:1|case:lc|eff:no|tok:intl|smooth:exp|version:{version('sacrebleu')}"


def test_wrong_input_is_explained() -> None:
    with pytest.raises(InputError, match="2 hypotheses, but 1 references"):
        bleu(["a", "b"], ["a"])
    with pytest.raises(InputError, match="no sentences"):
        bleu([], [])
    with pytest.raises(InputError, match="single text"):
        bleu("abc", "abd")


def test_an_empty_hypothesis_scores_nothing_and_breaks_nothing() -> None:
    assert bleu(["", ""], ["a b", "c"]).value == 0.0
    assert notes_bleu([[]], [["a"]], 2) == 0.0
    assert d2l_bleu("", "abc", 4) == 0.0


# ---- Moses


def test_moses_signature_names_everything() -> None:
    score = moses_bleu(["Ein Haus!"], ["Ein „Haus“!"], "de")
    sacrebleu, sacremoses = version("sacrebleu"), version("sacremoses")
    assert score.signature == (
        f"nrefs:1|case:lc|eff:no|tok:moses-de|smooth:exp|version:{sacrebleu}|sacremoses:{sacremoses}"
    )
    assert "case:mixed" in moses_bleu(["a"], ["a"], "de", lowercase=False).signature


def test_moses_splits_contractions_by_language() -> None:
    assert moses_tokenizer("en")("The man's hat.") == "the man &apos;s hat ."
    assert moses_tokenizer("fr")("L'homme «dort».") == "l&apos; homme &quot; dort &quot; ."
    assert moses_tokenizer("en", lowercase=False)("Mr. Smith") == "Mr. Smith"


def test_case_and_quotes_do_not_count_in_moses_bleu() -> None:
    hypotheses, references = ["Er sagt: „Komm mit nach Hause“."], ['er sagt: "komm mit nach hause".']
    assert moses_bleu(hypotheses, references, "de").value == pytest.approx(100.0)
    assert moses_bleu(hypotheses, references, "de", lowercase=False).value < 50


@pytest.mark.skipif(not MULTI30K.is_dir(), reason=f"no Multi30k in {MULTI30K}")
@pytest.mark.parametrize(
    ("split", "language", "words"),
    [
        ("test_2016_flickr", "de", 12103),  # the reference length that published En-De figures state
        ("test_2016_flickr", "en", 12968),
        ("test_2016_flickr", "fr", 13988),
        ("val", "cs", 10342),
    ],
)
def test_moses_gives_multi30ks_own_tokenisation(split: str, language: str, words: int) -> None:
    tokenize = moses_tokenizer(language)
    ours = [tokenize(line) for line in lines(MULTI30K / "raw" / f"{split}.{language}.gz")]
    theirs = lines(MULTI30K / "tok" / f"{split}.lc.norm.tok.{language}.gz")
    assert [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]] == []
    assert sum(len(line.split()) for line in ours) == words


@pytest.mark.skipif(not MULTI30K.is_dir(), reason=f"no Multi30k in {MULTI30K}")
def test_moses_bleu_of_raw_text_equals_bleu_of_the_published_tokens() -> None:
    raw = lines(MULTI30K / "raw" / "test_2016_flickr.de.gz")[:300]
    tokens = lines(MULTI30K / "tok" / "test_2016_flickr.lc.norm.tok.de.gz")[:300]
    theirs = BLEU(tokenize="none", force=True).corpus_score(half_wrong(tokens), [tokens]).score
    assert 30 < theirs < 70
    assert moses_bleu(half_wrong(raw), raw, "de").value == pytest.approx(theirs, rel=1e-12)


def half_wrong(sentences: list[str]) -> list[str]:
    """Every other sentence is the one before it."""
    return [sentences[line - line % 2] for line in range(len(sentences))]
