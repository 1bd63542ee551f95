"""Monotonic alignments, which only move forward (Raffel et al. 2017).

For each query, reading goes from left to right. It starts at the key where the previous query stopped, and stops at key
s with probability p_s. This module computes the expected alignment; if every p is 0 or 1, that is the alignment itself.
"""

import torch
from torch import Tensor


def expected_alignment(stop_BHTS: Tensor, previous_BHTS: Tensor) -> Tensor:
    """alpha (B, H, T, S): the probability of stopping at each key (Raffel et al. 2017, equations 13 and 14).

        q_s = (1 - p_{s-1}) q_{s-1} + previous_s,   alpha_s = p_s q_s

    A query that stops nowhere reads nothing. The sum of alpha is lower than that of `previous` by this probability, for
    this query and all later ones.

    The paper solves the recurrence by dividing by prod (1 - p), which overflows on long inputs. Here, two adjacent
    stretches of keys are joined into one, log2(S) times. This uses only products and sums of numbers in [0, 1], so
    nothing overflows, cancels or is clipped.

    Args:
        stop_BHTS: p.
        previous_BHTS: alpha of the previous query; for the first query, 1 at the first key and 0 elsewhere.
    """
    reached_BHTS = previous_BHTS
    passed_BHTS = torch.cat((torch.zeros_like(stop_BHTS[..., :1]), 1 - stop_BHTS[..., :-1]), -1)
    stretch = 1
    while stretch < stop_BHTS.shape[-1]:
        from_before = passed_BHTS[..., stretch:] * reached_BHTS[..., :-stretch]
        reached_BHTS = torch.cat((reached_BHTS[..., :stretch], reached_BHTS[..., stretch:] + from_before), -1)
        further = passed_BHTS[..., stretch:] * passed_BHTS[..., :-stretch]
        passed_BHTS = torch.cat((passed_BHTS[..., :stretch], further), -1)
        stretch *= 2
    return stop_BHTS * reached_BHTS
