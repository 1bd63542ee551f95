"""Alignments that only move forward (Raffel et al. 2017): where a reader stops that starts where it stopped before.

Reading goes from left to right, starts at the key where the query before stopped, and stops at key s with probability
p_s. With p of 0 and 1 only, that is a decision; otherwise what follows is its expectation.
"""

import torch
from torch import Tensor


def expected_alignment(stop_BHTS: Tensor, previous_BHTS: Tensor) -> Tensor:
    """alpha (B, H, T, S): the probability of stopping at each key (Raffel et al. 2017, equations 13 and 14).

        q_s = (1 - p_{s-1}) q_{s-1} + previous_s,   alpha_s = p_s q_s

    Whoever stops nowhere reads nothing: alpha sums to less than `previous` by that probability, now and afterwards.

    The paper solves the recurrence by dividing by prod (1 - p), which overflows on long inputs. Here two stretches of
    it are joined into one of twice the length, log2(S) times: products and sums of numbers in [0, 1] only, so that
    nothing overflows, cancels or is clipped.

    Args:
        stop_BHTS: p.
        previous_BHTS: alpha of the query before; before the first, 1 at the first key.
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
