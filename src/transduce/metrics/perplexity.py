"""Perplexity: the number of equally likely tokens among which the model would be equally uncertain.

exp(NLL / T), where NLL is the negative log-likelihood in nats and T counts every target token, the end of the
sentence included where the model predicts it. Logarithm and power must have one base: 2 to the power of nats
is a common slip (the `log` of a formula in base 2 read as ln), and for the probabilities 1/2, 1/4, 1/8, 1/8
gives 2.95 where the truth is 4.76. Per piece of BPE and per word are different quantities, hence the unit.
"""

import math
from collections.abc import Sequence

from transduce.core.errors import InputError
from transduce.metrics.score import Score


def perplexity(total_nll_nats: float, tokens: int, *, unit: str = "token") -> Score:
    """exp(total_nll_nats / tokens).

    Args:
        total_nll_nats: negative natural log-likelihood, summed over the corpus.
        tokens: all target tokens it was summed over, ends of sentences included.
        unit: what a token is: piece, word, character.

    Raises:
        InputError: no tokens.
    """
    if tokens < 1:
        raise InputError(f"perplexity needs at least one token; got {tokens}.")
    try:
        value = math.exp(total_nll_nats / tokens)
    except OverflowError:
        value = math.inf
    signature = f"base:e|unit:{unit}|tokens:{tokens}|end:counted"
    return Score(value, signature, None, "perplexity", lower_is_better=True)


def perplexity_of(log_probabilities: Sequence[float], *, base: float = math.e, unit: str = "token") -> Score:
    """Perplexity from the log-probability of each target token, in whichever `base`; the base cancels out."""
    to_nats = math.log(base)
    return perplexity(-math.fsum(log_probabilities) * to_nats, len(log_probabilities), unit=unit)
