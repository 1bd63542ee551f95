"""Normalizers: functions from scores to attention weights.

    softmax           alpha = exp(e) / sum exp(e)
    sparsemax         alpha = the point of the simplex nearest to e
    entmax            alpha = [e / 2 - tau]_+ ^ 2, tau such that it sums to 1
    hard              alpha = 1 at one key: sampled from the softmax in training, its maximum in prediction
    gumbel            the same, with a straight-through gradient
    local_monotonic   the softmax of the keys near the query's own position
    local_predictive  the softmax of the keys near a predicted position, lower the farther away
    monotonic         alpha = the alignment of a reader that only moves forward

A recipe names one of these as `weighing`, or your own subclass of `Weighing` as `my_file:MyWeighing`.

Shapes: B batch, H heads, T queries, S keys, E width of a query.
"""

import torch
from torch import Tensor, nn

from transduce.attention.entmax import entmax15, sparsemax
from transduce.attention.monotonic import expected_alignment
from transduce.attention.reinforce import active_choices
from transduce.kernels.matmul import Linear

HALF_WINDOW = 10  # D of Luong et al. 2015


class Weighing(nn.Module):
    """Base class of all normalizers.

    Args:
        query_width: E, for normalizers that use the query itself.
    """

    sequential = False
    """True if a query's weights depend on those of the previous query, so that queries are processed one at a time."""

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


class _ByScores(Weighing):
    """A normalizer that uses only the scores."""

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


class _Local(Weighing):
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


class Monotonic(Weighing):
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
