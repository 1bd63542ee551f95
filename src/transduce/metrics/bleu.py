"""BLEU: how many n-grams of the hypotheses are in the references, and are they long enough.

`bleu` is the figure to report: sacrebleu on plain text, 0 to 100, with its signature. `moses_bleu` is for
comparison with papers that scored lower-cased tokenised text. `notes_bleu` and `d2l_bleu` are the formulas of
textbooks, in [0, 1] and on tokens, to follow by hand. They differ in smoothing, brevity and weights: compare
a figure only with figures of the same kind.

Source: Papineni et al. 2002; Post 2018 on why the signature matters.
"""

import math
from collections import Counter
from collections.abc import Sequence

from transduce.errors import InputError
from transduce.metrics.score import Score, check_corpus

Tokens = Sequence[str]


def bleu(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    lowercase: bool = False,
    tokenize: str = "13a",
    smooth: str = "exp",
    max_order: int = 4,
) -> Score:
    """Corpus BLEU, 0 to 100, of plain (detokenised) sentences.

    Args:
        hypotheses: one a sentence.
        references: one a hypothesis, in the same order.
        lowercase: compare in lower case (`case:lc`).
        tokenize: how sacrebleu splits words: 13a, intl, char, zh, none.
        smooth: what an n-gram order without any match counts: exp, floor, add-k, none.
        max_order: the longest n-grams counted.

    Raises:
        InputError: no sentences, or not equally many.
    """
    from sacrebleu.metrics.bleu import BLEU

    from transduce.metrics.sacrebleu_score import sacrebleu_score

    metric = BLEU(lowercase=lowercase, tokenize=tokenize, smooth_method=smooth, max_ngram_order=max_order)
    return sacrebleu_score(metric, hypotheses, references, name="BLEU")


def moses_bleu(hypotheses: Sequence[str], references: Sequence[str], language: str, lowercase: bool = True) -> Score:
    """BLEU of Moses-tokenised text, as older papers report it; a point or two away from `bleu`.

    Both sides come as plain text and are lower-cased, normalised and tokenised here.

    Raises:
        InputError: no sentences, or not equally many.
    """
    from importlib.metadata import version

    from sacrebleu.metrics.bleu import BLEU

    from transduce.metrics.moses import moses_tokenizer
    from transduce.metrics.sacrebleu_score import sacrebleu_score

    check_corpus(hypotheses, references)
    tokenize = moses_tokenizer(language, lowercase=lowercase)
    score = sacrebleu_score(
        BLEU(tokenize="none", force=True),  # force: it is tokenised on purpose, no warning wanted
        [tokenize(sentence) for sentence in hypotheses],
        [tokenize(sentence) for sentence in references],
        name="BLEU",
        changes={"case": "lc" if lowercase else "mixed", "tok": f"moses-{language}"},
    )
    signature = f"{score.signature}|sacremoses:{version('sacremoses')}"
    return Score(score.value, signature, score.interval, score.name)


def notes_bleu(
    hypotheses: Sequence[Tokens],
    references: Sequence[Sequence[Tokens]],
    max_order: int,
    weights: Sequence[float] | None = None,
) -> float:
    """b · exp(Σ a_n log p_n) in [0, 1], nothing smoothed: 0 as soon as one order has no match.

    p_n: matched n-grams over n-grams, both summed over the corpus before dividing; an n-gram matches at most
    as often as it stands in the reference that has it most. b: 1 where the hypotheses are longer than the
    references, else exp(1 - l_s / l_x), l_s counting each sentence's shortest reference (sacrebleu: closest).

    Args:
        hypotheses: tokens, one a sentence.
        references: for each hypothesis, one or more references.
        max_order: the longest n-grams counted.
        weights: a_1 ... a_max_order; equal ones (1 / max_order) by default.

    Raises:
        InputError: not equally many, a sentence without a reference, or not as many weights as orders.
    """
    _check_tokens(hypotheses, references)
    weights = [1 / max_order] * max_order if weights is None else weights
    if len(weights) != max_order:
        raise InputError(f"{max_order} orders of n-grams need as many weights; {len(weights)} came.")
    hypothesis_length = sum(map(len, hypotheses))
    reference_length = sum(min(map(len, several)) for several in references)
    logarithm = 0.0
    for order, weight in enumerate(weights, start=1):
        precision = _precision(hypotheses, references, order)
        if precision == 0 and weight != 0:
            return 0.0
        logarithm += weight * math.log(precision) if weight else 0.0
    return _brevity(hypothesis_length, reference_length) * math.exp(logarithm)


def d2l_bleu(hypothesis: Tokens, reference: Tokens, max_order: int) -> float:
    """exp(min(0, 1 - l_s / l_x)) · Π p_n^(1/2^n), for one sentence: longer n-grams weigh less, not more.

    Source: Dive into Deep Learning, 10.7; orders beyond the hypothesis's length are left out, as there.
    """
    score = _brevity(len(hypothesis), len(reference))
    for order in range(1, min(max_order, len(hypothesis)) + 1):
        score *= _precision([hypothesis], [[reference]], order) ** (0.5**order)
    return score


def _brevity(hypothesis_length: int, reference_length: int) -> float:
    if hypothesis_length == 0:
        return 0.0
    return 1.0 if hypothesis_length > reference_length else math.exp(1 - reference_length / hypothesis_length)


def _precision(hypotheses: Sequence[Tokens], references: Sequence[Sequence[Tokens]], order: int) -> float:
    """Matches and n-grams are summed over the corpus, then divided; 0 where there are no n-grams."""
    matches = total = 0
    for hypothesis, several in zip(hypotheses, references, strict=True):
        counts = _ngrams(hypothesis, order)
        allowed: Counter[tuple[str, ...]] = Counter()
        for reference in several:
            allowed |= _ngrams(reference, order)
        matches += (counts & allowed).total()
        total += counts.total()
    return matches / total if total else 0.0


def _ngrams(tokens: Tokens, order: int) -> Counter[tuple[str, ...]]:
    return Counter(tuple(tokens[start : start + order]) for start in range(len(tokens) - order + 1))


def _check_tokens(hypotheses: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> None:
    if len(hypotheses) != len(references):
        raise InputError(f"{len(hypotheses)} hypotheses, but {len(references)} lists of references.")
    without = [str(line) for line, several in enumerate(references, start=1) if not several]
    if without:
        raise InputError(f"no reference for the hypotheses {', '.join(without)} (counted from 1).")
