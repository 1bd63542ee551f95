"""Weights that can be exactly 0: sparsemax and entmax, as pure functions along the last axis.

    entmax(e) = argmax over the simplex of p . e + H_a(p)        H_a the Tsallis entropy of order a
    a -> 1 gives the softmax, a = 2 the sparsemax. For a > 1, keys far below the best get a weight of exactly 0.

The solution is p_s = [(a - 1) e_s - tau]_+ ^ (1 / (a - 1)), so only the threshold tau has to be found. It is found
outside autograd. Then p is computed again, differentiably, from the keys above the threshold, so the Jacobian is exact.
"""

import torch
from torch import Tensor

BISECTIONS = 60  # halves [-1, 0] down to the rounding of fp64


def sparsemax(scores: Tensor, allowed: Tensor | None = None) -> Tensor:
    """The point of the simplex that is nearest to `scores` (Martins & Astudillo 2016, algorithm 1), exactly.

    Args:
        scores: (.., S), any float dtype; computed in fp32, or in fp64 for fp64 scores.
        allowed: bool, broadcastable to scores, True = may get weight. Every row must have an allowed key.

    Returns:
        Weights (.., S) that sum to 1.
    """
    centred = _centred(scores, allowed)
    inside = centred > _sparsemax_threshold(centred.detach())
    total = centred.masked_fill(~inside, 0).sum(-1, keepdim=True)
    threshold = (total - 1) / inside.sum(-1, keepdim=True)
    return (centred - threshold).masked_fill(~inside, 0).clamp(min=0)


def entmax15(scores: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Entmax with a = 1.5, exactly, by sorting (Peters et al. 2019, algorithm 2). Arguments as for `sparsemax`."""
    centred = _centred(scores, allowed) / 2
    inside = centred > _entmax15_threshold(centred.detach())
    count = inside.sum(-1, keepdim=True)
    mean = centred.masked_fill(~inside, 0).sum(-1, keepdim=True) / count
    spread = (centred - mean).masked_fill(~inside, 0).square().sum(-1, keepdim=True)
    threshold = mean - ((1 - spread) / count).sqrt()
    return (centred - threshold).masked_fill(~inside, 0).clamp(min=0).square()


def entmax(scores: Tensor, alpha: float, allowed: Tensor | None = None) -> Tensor:
    """Entmax of any order alpha > 1, by bisection (Blondel et al. 2019, algorithm 1). Otherwise like `sparsemax`.

    The last step is a Newton step through which the gradient flows. It gives d tau as the implicit function theorem
    does, so first derivatives are exact. Second derivatives are not.
    """
    assert alpha > 1, "entmax of order 1 is the softmax"
    centred = _centred(scores, allowed) * (alpha - 1)
    low = _bisected(centred.detach(), alpha)
    inside = centred > low
    excess = _power(centred - low, inside, 1 / (alpha - 1)).sum(-1, keepdim=True) - 1
    slope = _power(centred - low, inside, 1 / (alpha - 1) - 1).sum(-1, keepdim=True) / (alpha - 1)
    return _power(centred - low - excess / slope.detach(), inside, 1 / (alpha - 1))


def _centred(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Scores minus the maximum of their row, which changes no weight; -inf where not allowed."""
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    return scores - scores.detach().amax(-1, keepdim=True)


def _sparsemax_threshold(centred: Tensor) -> Tensor:
    ordered = centred.sort(-1, descending=True).values
    count = torch.arange(1, centred.shape[-1] + 1, device=centred.device)
    total = ordered.cumsum(-1)
    support = (1 + count * ordered > total).sum(-1, keepdim=True)
    return (total.gather(-1, support - 1) - 1) / support


def _entmax15_threshold(centred: Tensor) -> Tensor:
    # The best key is at 0 and the threshold at -1 or above, so any value below -1 gives the same weights.
    ordered = centred.clamp(min=-2).sort(-1, descending=True).values
    count = torch.arange(1, centred.shape[-1] + 1, device=centred.device)
    mean = ordered.cumsum(-1) / count
    spread = count * (ordered.square().cumsum(-1) / count - mean.square())
    threshold = mean - ((1 - spread) / count).clamp(min=0).sqrt()
    support = (threshold <= ordered).sum(-1, keepdim=True)
    return threshold.gather(-1, support - 1)


def _bisected(centred: Tensor, alpha: float) -> Tensor:
    """The threshold, or slightly less, so that the weights sum to 1 or slightly more."""
    low = torch.full_like(centred[..., :1], -1)
    high = torch.zeros_like(low)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        mass = ((centred - middle).clamp(min=0) ** (1 / (alpha - 1))).sum(-1, keepdim=True)
        low, high = torch.where(mass >= 1, middle, low), torch.where(mass >= 1, high, middle)
    return low


def _power(base: Tensor, inside: Tensor, exponent: float) -> Tensor:
    """base ^ exponent where `inside`, 0 elsewhere. The power is never evaluated where base is not positive."""
    inside = inside & (base > 0)
    raised: Tensor = base.masked_fill(~inside, 1) ** exponent
    return raised.masked_fill(~inside, 0)
