"""From scores to weights: who is read, and how much of each.

    softmax           alpha = exp(e) / sum exp(e)
    sparsemax         alpha = the point of the simplex nearest to e
    entmax            alpha = [e / 2 - tau]_+ ^ 2, tau such that it sums to 1
    hard              alpha = 1 at one key: drawn from the softmax in training, its best one in prediction
    gumbel            the same, with a gradient as if the draw had been soft
    local_monotonic   the softmax of the keys near the query's own position
    local_predictive  the softmax of the keys near a position read off the query, less the further away
    monotonic         alpha = where a reader stops that only moves forward

A recipe names a weighing as above, and your own class as `my_file:MyWeighing`: a subclass of `Weighing`.

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
    """What every weighing is.

    Args:
        query_width: E, for those that look at the query itself.
    """

    sequential = False
    """True: a query's weights depend on those of the query before it, so that queries go one at a time."""

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
        """alpha (B, H, T, S) in fp32 at least: none negative, 0 where not allowed, summing to 1 (or to less).

        Args:
            allowed: bool, broadcastable to (B, H, T, S), True = may attend; None = all may.
            query_BHTE: the queries.
            position_BT: int64, (B, T) or (1, T): where in its sequence each query stands, counted from 0.
            previous_BHTS: the weights of the query before each one, for a sequential weighing; None before the first.
        """
        raise NotImplementedError


class _ByScores(Weighing):
    """Looks at the scores and nothing else."""

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
    """The nearest point of the simplex: most keys get exactly 0 (Martins & Astudillo 2016)."""

    def weigh(self, scores_BHTS: Tensor, allowed: Tensor | None) -> Tensor:
        """(B, H, T, S)."""
        return sparsemax(scores_BHTS, allowed)


class Entmax(_ByScores):
    """Halfway between softmax and sparsemax: 1.5-entmax (Peters et al. 2019)."""

    def weigh(self, scores_BHTS: Tensor, allowed: Tensor | None) -> Tensor:
        """(B, H, T, S)."""
        return entmax15(scores_BHTS, allowed)


class Hard(_ByScores):
    """One key gets all: drawn from the softmax while training, its best one otherwise (Xu et al. 2015, section 4.1).

    A choice has no gradient. Within `transduce.attention.reinforce.choices` its log-probability is left for REINFORCE,
    as training does it; outside, the scores learn nothing.
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
        """(B, H, T, 1) int64: a key for each query, by torch's global generator."""
        return (log_alpha_BHTS + _gumbel_like(log_alpha_BHTS)).argmax(-1, keepdim=True)


class Gumbel(_ByScores):
    """`hard` with the straight-through gradient of a softmax under the same noise (Jang et al. 2017, section 2.2).

    Args:
        temperature: of that softmax; towards 0 its gradient has less bias and more noise.
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
    """The softmax of the keys at most D places from a centre.

    Places are counted among the allowed keys of a row, from 0 to S - 1, so that padding moves nothing; the centre is
    never further than 1 from one of them, so that no window is empty.

    Args:
        half_window: D, at least 1.
    """

    def __init__(self, query_width: int, half_window: int = HALF_WINDOW) -> None:
        super().__init__(query_width)
        assert half_window >= 1
        self.half_window = half_window

    def window(self, scores_BHTS: Tensor, allowed: Tensor | None, centre_BHT1: Tensor) -> tuple[Tensor, Tensor]:
        """alpha (B, H, T, S) over the window, and how far from the centre each key stands."""
        distance_BHTS = _places(scores_BHTS, allowed) - centre_BHT1
        near_BHTS = distance_BHTS.abs() <= self.half_window
        return softmax(scores_BHTS, near_BHTS if allowed is None else near_BHTS & allowed), distance_BHTS


class LocalMonotonic(_Local):
    """Around the query's own position: both sides go at one pace (Luong et al. 2015, section 3.2, "local-m").

    Behind the last key the window stays where it is: around the last key.
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
    """Around S sigmoid(v^T tanh(W q)), and less the further away (Luong et al. 2015, equations 9 and 10, "local-p").

        alpha_s = softmax(e)_s exp(-(s - p)^2 / (2 (D / 2)^2))

    S is the number of keys that the query is allowed. As in the paper, the weights are not brought back to a sum of 1.
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
    """From left to right and never back: each key is stopped at or passed (Raffel et al. 2017, equations 11 to 14).

    A key is stopped at with probability sigmoid(e + r), r learned, because unlike a softmax this asks for the scores'
    level. Training reads the expectation, under noise of variance 1 on e, which makes deciding clearly worth while;
    prediction stops where e + r > 0. A query that stops nowhere reads nothing (alpha = 0), and so do those after it.
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
    """Softmax over the allowed keys, in fp32, or in fp64 for fp64 scores. Every query must be allowed some key."""
    if allowed is not None:
        scores_BHTS = scores_BHTS.masked_fill(~allowed, -torch.inf)
    return scores_BHTS.softmax(-1, dtype=torch.promote_types(scores_BHTS.dtype, torch.float32))


def _masked(scores_BHTS: Tensor, allowed: Tensor | None) -> Tensor:
    """Scores in fp32 at least, -inf where not allowed."""
    scores_BHTS = scores_BHTS.to(torch.promote_types(scores_BHTS.dtype, torch.float32))
    return scores_BHTS if allowed is None else scores_BHTS.masked_fill(~allowed, -torch.inf)


def _all_to(choice_BHT1: Tensor, like_BHTS: Tensor) -> Tensor:
    """1 at the chosen keys, 0 elsewhere."""
    return (torch.arange(like_BHTS.shape[-1], device=like_BHTS.device) == choice_BHT1).to(like_BHTS.dtype)


def _gumbel_like(like_BHTS: Tensor) -> Tensor:
    """-log(-log(u)): scores with this added have their maximum at key s with the probability of their softmax."""
    return -torch.empty_like(like_BHTS).exponential_().log()


def _places(scores_BHTS: Tensor, allowed: Tensor | None) -> Tensor:
    """(.., S), broadcastable to the scores: each allowed key's place among the allowed ones of its row, from 0."""
    keys, dtype = scores_BHTS.shape[-1], torch.promote_types(scores_BHTS.dtype, torch.float32)
    if allowed is None:
        return torch.arange(keys, device=scores_BHTS.device, dtype=dtype)
    return allowed.expand(*allowed.shape[:-1], keys).cumsum(-1).to(dtype) - 1
