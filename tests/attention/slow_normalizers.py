"""Scores and normalizers one number at a time, from the papers, in Python floats, for the tests of this room."""

import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

Row = list[float]


def matrix(parameter: Tensor) -> list[Row]:
    return parameter.detach().double().tolist()


def dot(x: Row, y: Row) -> float:
    return math.fsum(a * b for a, b in zip(x, y, strict=True))


def times(weight: list[Row], x: Row) -> Row:
    return [dot(row, x) for row in weight]


def slow_dot(score: nn.Module, q: Row, k: Row, located: Row) -> float:
    return dot(q, k)


def slow_scaled_dot(score: nn.Module, q: Row, k: Row, located: Row) -> float:
    return dot(q, k) / math.sqrt(len(k))


def slow_cosine(score: nn.Module, q: Row, k: Row, located: Row) -> float:
    return score.gain.item() * dot(q, k) / (math.sqrt(dot(q, q)) * math.sqrt(dot(k, k)))


def slow_bilinear(score: nn.Module, q: Row, k: Row, located: Row) -> float:
    return dot(q, times(matrix(score.weight_EF), k))


def slow_additive(score: nn.Module, q: Row, k: Row, located: Row) -> float:
    hidden = zip(times(matrix(score.query.weight), q), times(matrix(score.key.weight), k), strict=True)
    return dot(matrix(score.reader_A), [math.tanh(a + b) for a, b in hidden])


def slow_location_aware(score: nn.Module, q: Row, k: Row, located: Row) -> float:
    """`located` is f, the filtered last weights at this key."""
    parts = zip(
        times(matrix(score.query.weight), q),
        times(matrix(score.key.weight), k),
        times(matrix(score.location.weight), located),
        matrix(score.location.bias),
        strict=True,
    )
    return dot(matrix(score.reader_A), [math.tanh(sum(part)) for part in parts])


def slow_filters(score: nn.Module, previous: Row, s: int) -> Row:
    """f_s = F * previous (Chorowski et al. 2015, equation 8), 0 beyond both ends."""
    kernels = score.filters.weight.detach().double()[:, 0].tolist()
    reach = len(kernels[0]) // 2
    return [
        sum(tap * previous[s + i - reach] for i, tap in enumerate(kernel) if 0 <= s + i - reach < len(previous))
        for kernel in kernels
    ]


SLOW_SCORES: dict[str, Callable[[nn.Module, Row, Row, Row], float]] = {
    "dot": slow_dot,
    "scaled_dot": slow_scaled_dot,
    "cosine": slow_cosine,
    "bilinear": slow_bilinear,
    "additive": slow_additive,
    "location_aware": slow_location_aware,
}


def slow_softmax(e: Row) -> Row:
    mass = math.fsum(math.exp(each) for each in e)
    return [math.exp(each) / mass for each in e]


def every_support(keys: int) -> list[tuple[int, ...]]:
    return [each for size in range(1, keys + 1) for each in itertools.combinations(range(keys), size)]


def slow_sparsemax(e: Row) -> Row:
    """The nearest point of the simplex, by trying every face of it: the projection on each that lies inside it."""
    best = []
    for support in every_support(len(e)):
        shift = (math.fsum(e[s] for s in support) - 1) / len(support)
        p = [e[s] - shift if s in support else 0.0 for s in range(len(e))]
        if min(p) >= 0:
            best.append((math.fsum((a - b) ** 2 for a, b in zip(p, e, strict=True)), p))
    return min(best)[1]


def slow_entmax15(e: Row) -> Row:
    """argmax p . e + (1 - sum p^1.5) / (0.5 * 1.5), by trying every face, on which tau is a quadratic's root."""
    best = []
    for support in every_support(len(e)):
        z = [e[s] / 2 for s in support]
        mean, square = math.fsum(z) / len(z), math.fsum(each * each for each in z) / len(z)
        discriminant = mean * mean - square + 1 / len(z)
        if discriminant < 0:
            continue
        tau = mean - math.sqrt(discriminant)
        if min(z) < tau:
            continue
        p = [(e[s] / 2 - tau) ** 2 if s in support else 0.0 for s in range(len(e))]
        best.append((dot(p, e) + (1 - math.fsum(each**1.5 for each in p)) / 0.75, p))
    return max(best)[1]


def slow_best(e: Row) -> Row:
    """`hard` and `gumbel` in prediction."""
    return [float(s == e.index(max(e))) for s in range(len(e))]


def slow_local_monotonic(e: Row, position: int, half: int) -> Row:
    """Luong et al. 2015, p_t = t, for a position that the source has."""
    near = [s for s in range(len(e)) if position - half <= s <= position + half]
    weights = dict(zip(near, slow_softmax([e[s] for s in near]), strict=True))
    return [weights.get(s, 0.0) for s in range(len(e))]


def slow_local_predictive(e: Row, q: Row, weigh: nn.Module, half: int) -> Row:
    """Luong et al. 2015, equations 9 and 10."""
    hidden = [math.tanh(each) for each in times(matrix(weigh.query.weight), q)]
    centre = len(e) / (1 + math.exp(-dot(matrix(weigh.reader_E), hidden)))
    near = [s for s in range(len(e)) if centre - half <= s <= centre + half]
    weights = dict(zip(near, slow_softmax([e[s] for s in near]), strict=True))
    sigma = half / 2
    return [weights.get(s, 0.0) * math.exp(-((s - centre) ** 2) / (2 * sigma**2)) for s in range(len(e))]


def slow_expected_alignment(p: Row, previous: Row) -> Row:
    """Raffel et al. 2017, equation 9: alpha_j = p_j sum_{k<=j} previous_k prod_{l=k}^{j-1} (1 - p_l)."""
    return [
        p[j] * sum(previous[k] * math.prod(1 - p[i] for i in range(k, j)) for k in range(j + 1)) for j in range(len(p))
    ]


def at(scores_BHTS: Tensor, allowed: Tensor) -> list[tuple[tuple[int, int, int], list[int], Row]]:
    """(b, h, t), the allowed keys and their scores, for each query."""
    allowed_BHTS = allowed.expand(scores_BHTS.shape)
    rows = itertools.product(*(range(size) for size in scores_BHTS.shape[:3]))
    found = []
    for row in rows:
        keys = allowed_BHTS[row].nonzero().flatten().tolist()
        found.append((row, keys, scores_BHTS[row].double()[keys].tolist()))
    return found


def spread(rows: list[tuple[tuple[int, int, int], list[int], Row]], shape: torch.Size) -> Tensor:
    """Weights of the allowed keys put where they belong, 0 elsewhere: (B, H, T, S) fp64."""
    alpha_BHTS = torch.zeros(shape, dtype=torch.float64)
    for row, keys, alpha in rows:
        alpha_BHTS[row][keys] = torch.tensor(alpha, dtype=torch.float64)
    return alpha_BHTS
