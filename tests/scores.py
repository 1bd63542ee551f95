"""Scores of whole corpora by what the metrics count, and the formulas of textbooks on tokens."""

import math
from collections.abc import Sequence
from typing import Any

from transduce.metrics import bleu as sacre
from transduce.metrics.bleu_formula import Tokens, _counts, _formula
from transduce.metrics.exact_match import exact_match_tally, length_match_tally
from transduce.metrics.rouge import _pooled, _recall, rouge_tally
from transduce.metrics.sacrebleu_score import chrf_tally, ter_tally
from transduce.metrics.score import References, Score

Texts = Sequence[str]


def bleu(hypotheses: Texts, references: References, **settings: Any) -> Score:
    return sacre.bleu_tally(hypotheses, references, **settings).score()


def moses_bleu(hypotheses: Texts, references: References, language: str, lowercase: bool = True) -> Score:
    return sacre.moses_bleu_tally(hypotheses, references, language, lowercase).score()


def chrf(hypotheses: Texts, references: References, **settings: Any) -> Score:
    return chrf_tally(hypotheses, references, **settings).score()


def ter(hypotheses: Texts, references: References, **settings: Any) -> Score:
    return ter_tally(hypotheses, references, **settings).score()


def exact_match(hypotheses: Texts, references: References) -> Score:
    return exact_match_tally(hypotheses, references).score()


def length_match(hypotheses: Texts, references: References) -> Score:
    return length_match_tally(hypotheses, references).score()


def rouge(hypotheses: Texts, references: References, kind: str = "L") -> Score:
    return rouge_tally(hypotheses, references, kind).score()


def notes_bleu(
    hypotheses: Sequence[Tokens],
    references: Sequence[Sequence[Tokens]],
    max_order: int,
    weights: Sequence[float] | None = None,
) -> float:
    """`notes_bleu_tally` on tokens, with any weights a_1 ... a_max_order."""
    rows = [_counts(each, several, max_order) for each, several in zip(hypotheses, references, strict=True)]
    sums = [math.fsum(column) for column in zip(*rows, strict=True)]
    return _formula(sums, [1 / max_order] * max_order if weights is None else weights)


def d2l_bleu(hypothesis: Tokens, reference: Tokens, max_order: int) -> float:
    """exp(min(0, 1 - l_s / l_x)) · Π p_n^(1/2^n), for one sentence: longer n-grams weigh less, not more.

    Source: Dive into Deep Learning, 10.7; orders beyond the hypothesis's length are left out, as there.
    """
    weights = [0.5**order for order in range(1, min(max_order, len(hypothesis)) + 1)]
    return _formula(_counts(hypothesis, [reference], len(weights)), weights)


def notes_rouge(hypotheses: Sequence[Tokens], references: Sequence[Sequence[Tokens]], order: int) -> float:
    """`notes_rouge_tally` on tokens."""
    rows = [_pooled(each, several, order) for each, several in zip(hypotheses, references, strict=True)]
    return _recall(sum(matched for matched, _ in rows), sum(total for _, total in rows))


def perplexity(total_nll_nats: float, tokens: int) -> float:
    """exp(NLL / T), T counting every target token, the end of the sentence where the model predicts it."""
    return math.exp(total_nll_nats / tokens)
