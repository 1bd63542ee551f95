"""Normalizers: functions from scores to attention weights.

    softmax           alpha = exp(e) / sum exp(e)
    sparsemax         alpha = the point of the simplex nearest to e
    entmax            alpha = [e / 2 - tau]_+ ^ 2, tau such that it sums to 1
    hard              alpha = 1 at one key: sampled from the softmax in training, its maximum in prediction
    gumbel            the same, with a straight-through gradient
    local_monotonic   the softmax of the keys near the query's own position
    local_predictive  the softmax of the keys near a predicted position, lower the farther away
    monotonic         alpha = the alignment of a reader that only moves forward

A recipe names one of these as `normalizer`, or your own subclass of `Normalizer` as `my_file:MyNormalizer`.

Shapes: B batch, H heads, T queries, S keys, E width of a query.

Weights that can be exactly 0: sparsemax and entmax, as pure functions along the last axis.

    entmax(e) = argmax over the simplex of p . e + H_a(p)        H_a the Tsallis entropy of order a
    a -> 1 gives the softmax, a = 2 the sparsemax. For a > 1, keys far below the best get a weight of exactly 0.

The solution is p_s = [(a - 1) e_s - tau]_+ ^ (1 / (a - 1)), so only the threshold tau has to be found. It is found
outside autograd. Then p is computed again, differentiably, from the keys above the threshold, so the Jacobian is exact.
"""

import torch
from torch import Tensor, nn

from transduce.attention.reinforce import active_choices
from transduce.kernels.matmul import Linear

BISECTIONS = 60  # halves [-1, 0] down to the rounding of fp64

HALF_WINDOW = 10  # D of Luong et al. 2015


class Normalizer(nn.Module):
    """Base class of all normalizers.

    Args:
        query_width: E, for normalizers that use the query itself.
    """

    sequential = False
    """True if a query's weights depend on those of the previous query, so that queries are processed one at a time."""
    reads_position = True
    """False if a query's weights do not depend on its position."""

    def __init__(self, query_width: int) -> None:
        super().__init__()

    def forward(
        self,
        scores_BHTS: Tensor,
        allowed: Tensor | None,
        query_BHTE: Tensor,
        position_BT: Tensor,
        previous_BHTS: Tensor | None = None,
    ) -> Tensor:
        """Weights alpha (B, H, T, S), at least in fp32: not negative, 0 where not allowed, with a sum of at most 1.

        Args:
            scores_BHTS: e, one score for each query and key.
            allowed: bool, broadcastable to (B, H, T, S), True = may attend; None = all may.
            query_BHTE: the queries.
            position_BT: int64, (B, T) or (1, T): the position of each query in its sequence, counted from 0.
            previous_BHTS: the weights of the previous query, for a sequential normalizer; None before the first query.
        """
        raise NotImplementedError


class _ByScores(Normalizer):
    """A normalizer that uses only the scores."""

    reads_position = False

    def forward(
        self,
        scores_BHTS: Tensor,
        allowed: Tensor | None,
        query_BHTE: Tensor,
        position_BT: Tensor,
        previous_BHTS: Tensor | None = None,
    ) -> Tensor:
        """(B, H, T, S)."""
        return self.weigh(scores_BHTS, allowed)

    def weigh(self, scores_BHTS: Tensor, allowed: Tensor | None) -> Tensor:
        """(B, H, T, S)."""
        raise NotImplementedError


class Softmax(_ByScores):
    """alpha = exp(e) / sum exp(e): soft attention, the expectation of hard attention (Bahdanau et al. 2015)."""

    def weigh(self, scores_BHTS: Tensor, allowed: Tensor | None) -> Tensor:
        """(B, H, T, S)."""
        return softmax(scores_BHTS, allowed)


class Sparsemax(_ByScores):
    """The point of the simplex nearest to the scores: most keys get exactly 0 (Martins & Astudillo 2016)."""

    def weigh(self, scores_BHTS: Tensor, allowed: Tensor | None) -> Tensor:
        """(B, H, T, S)."""
        return sparsemax(scores_BHTS, allowed)


class Entmax(_ByScores):
    """1.5-entmax, halfway between softmax and sparsemax (Peters et al. 2019)."""

    def weigh(self, scores_BHTS: Tensor, allowed: Tensor | None) -> Tensor:
        """(B, H, T, S)."""
        return entmax15(scores_BHTS, allowed)


class Hard(_ByScores):
    """All weight on one key: sampled from the softmax in training, its maximum otherwise (Xu et al. 2015, section 4.1).

    A sampled choice has no gradient. Training uses `transduce.attention.reinforce.choices`, which records its
    log-probability for REINFORCE. Without it, the scores get no gradient.
    """

    def weigh(self, scores_BHTS: Tensor, allowed: Tensor | None) -> Tensor:
        """(B, H, T, S), of 0 and 1."""
        log_alpha_BHTS = _masked(scores_BHTS, allowed).log_softmax(-1)
        if not self.training:
            return _all_to(log_alpha_BHTS.argmax(-1, keepdim=True), log_alpha_BHTS)
        choice_BHT1 = self.draw(log_alpha_BHTS.detach())
        made = active_choices()
        if made is not None:
            made.add(log_alpha_BHTS.gather(-1, choice_BHT1).sum((1, 2, 3)))
        return _all_to(choice_BHT1, log_alpha_BHTS)

    def draw(self, log_alpha_BHTS: Tensor) -> Tensor:
        """(B, H, T, 1) int64: a key for each query, drawn with torch's global random generator."""
        return (log_alpha_BHTS + _gumbel_like(log_alpha_BHTS)).argmax(-1, keepdim=True)


class Gumbel(_ByScores):
    """`hard` with the straight-through gradient of a softmax under the same noise (Jang et al. 2017, section 2.2).

    Args:
        query_width: E.
        temperature: of that softmax. A lower temperature gives a gradient with less bias and more variance.
    """

    def __init__(self, query_width: int, temperature: float = 1.0) -> None:
        super().__init__(query_width)
        self.temperature = temperature

    def weigh(self, scores_BHTS: Tensor, allowed: Tensor | None) -> Tensor:
        """(B, H, T, S), of 0 and 1."""
        scores_BHTS = _masked(scores_BHTS, allowed)
        if not self.training:
            return _all_to(scores_BHTS.argmax(-1, keepdim=True), scores_BHTS)
        soft_BHTS = ((scores_BHTS + _gumbel_like(scores_BHTS)) / self.temperature).softmax(-1)
        return _all_to(soft_BHTS.argmax(-1, keepdim=True), soft_BHTS) + (soft_BHTS - soft_BHTS.detach())


class _Local(Normalizer):
    """The softmax of the keys at most D positions from a centre.

    Positions are counted among the allowed keys of a row, from 0, so padding has no effect. The centre is at most 1
    away from an allowed key, so no window is empty.

    Args:
        query_width: E.
        half_window: D, at least 1.
    """

    def __init__(self, query_width: int, half_window: int = HALF_WINDOW) -> None:
        super().__init__(query_width)
        assert half_window >= 1
        self.half_window = half_window

    def window(self, scores_BHTS: Tensor, allowed: Tensor | None, centre_BHT1: Tensor) -> tuple[Tensor, Tensor]:
        """Weights alpha (B, H, T, S) over the window, and the distance of each key from the centre."""
        distance_BHTS = _places(scores_BHTS, allowed) - centre_BHT1
        near_BHTS = distance_BHTS.abs() <= self.half_window
        return softmax(scores_BHTS, near_BHTS if allowed is None else near_BHTS & allowed), distance_BHTS


class LocalMonotonic(_Local):
    """A window around the query's own position ("local-m", Luong et al. 2015, section 3.2).

    It assumes that source and target advance at the same pace. After the last key, the window stays around that key.
    """

    def forward(
        self,
        scores_BHTS: Tensor,
        allowed: Tensor | None,
        query_BHTE: Tensor,
        position_BT: Tensor,
        previous_BHTS: Tensor | None = None,
    ) -> Tensor:
        """(B, H, T, S)."""
        last = _places(scores_BHTS, allowed)[..., -1:]
        return self.window(scores_BHTS, allowed, torch.minimum(position_BT[:, None, :, None], last))[0]


class LocalPredictive(_Local):
    """A window around a predicted position p ("local-p", Luong et al. 2015, equations 9 and 10).

        p = S sigmoid(v^T tanh(W q)),   alpha_s = softmax(e)_s exp(-(s - p)^2 / (2 (D / 2)^2))

    S is the number of keys that the query may attend to. As in the paper, the weights are not normalized again.
    """

    def __init__(self, query_width: int, half_window: int = HALF_WINDOW) -> None:
        super().__init__(query_width, half_window)
        self.query = Linear(query_width, query_width, bias=False)
        self.reader_E = nn.Parameter(torch.randn(query_width) * query_width**-0.5)

    def forward(
        self,
        scores_BHTS: Tensor,
        allowed: Tensor | None,
        query_BHTE: Tensor,
        position_BT: Tensor,
        previous_BHTS: Tensor | None = None,
    ) -> Tensor:
        """(B, H, T, S)."""
        count = _places(scores_BHTS, allowed)[..., -1:] + 1
        centre_BHT1 = count * (self.query(query_BHTE).tanh() * self.reader_E).sum(-1, keepdim=True).sigmoid()
        alpha_BHTS, distance_BHTS = self.window(scores_BHTS, allowed, centre_BHT1)
        return alpha_BHTS * (-2 * (distance_BHTS / self.half_window).square()).exp()


class Monotonic(Normalizer):
    """Monotonic attention: reading goes from left to right and never back (Raffel et al. 2017, equations 11 to 14).

    Reading stops at a key with probability sigmoid(e + r). The offset r is learned, because a sigmoid, unlike a
    softmax, depends on the level of the scores. Training uses the expected alignment, with noise of variance 1 added to
    e, which rewards clear decisions. Prediction stops where e + r > 0. A query that stops nowhere reads nothing (alpha
    = 0), and neither do later queries.
    """

    sequential = True

    def __init__(self, query_width: int) -> None:
        super().__init__(query_width)
        self.offset = nn.Parameter(torch.zeros(()))

    def forward(
        self,
        scores_BHTS: Tensor,
        allowed: Tensor | None,
        query_BHTE: Tensor,
        position_BT: Tensor,
        previous_BHTS: Tensor | None = None,
    ) -> Tensor:
        """(B, H, T, S); sums to 1 or to less."""
        energy_BHTS = _masked(scores_BHTS, allowed) + self.offset
        if self.training:
            stop_BHTS = (energy_BHTS + torch.randn_like(energy_BHTS)).sigmoid()
        else:
            stop_BHTS = (energy_BHTS > 0).to(energy_BHTS.dtype)
        if previous_BHTS is None:
            previous_BHTS = _all_to(torch.zeros_like(stop_BHTS[..., :1], dtype=torch.int64), stop_BHTS)
        return expected_alignment(stop_BHTS, previous_BHTS)


def softmax(scores_BHTS: Tensor, allowed: Tensor | None) -> Tensor:
    """Softmax over the allowed keys, in fp32, or in fp64 for fp64 scores. Every query must have an allowed key."""
    if allowed is not None:
        scores_BHTS = scores_BHTS.masked_fill(~allowed, -torch.inf)
    return scores_BHTS.softmax(-1, dtype=torch.promote_types(scores_BHTS.dtype, torch.float32))


def _masked(scores_BHTS: Tensor, allowed: Tensor | None) -> Tensor:
    """Scores, at least in fp32, with -inf where not allowed."""
    scores_BHTS = scores_BHTS.to(torch.promote_types(scores_BHTS.dtype, torch.float32))
    return scores_BHTS if allowed is None else scores_BHTS.masked_fill(~allowed, -torch.inf)


def _all_to(choice_BHT1: Tensor, like_BHTS: Tensor) -> Tensor:
    """1 at the chosen keys, 0 elsewhere."""
    return (torch.arange(like_BHTS.shape[-1], device=like_BHTS.device) == choice_BHT1).to(like_BHTS.dtype)


def _gumbel_like(like_BHTS: Tensor) -> Tensor:
    """-log(-log(u)), Gumbel noise: the maximum of scores plus this noise is a sample from their softmax."""
    return -torch.empty_like(like_BHTS).exponential_().log()


def _places(scores_BHTS: Tensor, allowed: Tensor | None) -> Tensor:
    """(.., S), broadcastable to the scores: each allowed key's position among the allowed keys of its row, from 0."""
    keys, dtype = scores_BHTS.shape[-1], torch.promote_types(scores_BHTS.dtype, torch.float32)
    if allowed is None:
        return torch.arange(keys, device=scores_BHTS.device, dtype=dtype)
    return allowed.expand(*allowed.shape[:-1], keys).cumsum(-1).to(dtype) - 1


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
