"""Every score against its equation in a slow loop; gradients against finite differences."""

import pytest
import torch
from slow_normalizers import SLOW_SCORES, slow_filters
from torch import Tensor

from transduce.attention.scores import AttentionScore
from transduce.core.registry import known, resolve

B, H, S, E, F = 2, 2, 5, 4, 3


def made(name: str, dtype: torch.dtype = torch.float32) -> tuple[AttentionScore, Tensor, Tensor, Tensor | None]:
    """A score, one query or two, keys, and for a sequential score the weights before."""
    torch.manual_seed(0)
    width = E if name in {"dot", "scaled_dot", "cosine"} else F
    score: AttentionScore = resolve("attention.scores", name)(E, width).to(dtype)
    queries = 1 if score.sequential else 2
    query, key = torch.randn(B, H, queries, E, dtype=dtype), torch.randn(B, H, S, width, dtype=dtype)
    previous = torch.rand(B, H, queries, S, dtype=dtype).softmax(-1) if score.sequential else None
    return score, query, key, previous


def test_every_score_has_its_slow_loop() -> None:
    assert set(SLOW_SCORES) == set(known("attention.scores"))


@pytest.mark.parametrize("name", SLOW_SCORES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_score_equals_its_slow_loop(name: str, dtype: torch.dtype) -> None:
    score, query, key, previous = made(name, dtype)
    fast = score(query, score.keys(key), previous)
    slow = torch.zeros(fast.shape, dtype=torch.float64)
    for b, h, t, s in torch.cartesian_prod(*(torch.arange(size) for size in fast.shape)).tolist():
        located = [] if previous is None else slow_filters(score, previous[b, h, t].tolist(), s)
        slow[b, h, t, s] = SLOW_SCORES[name](score, query[b, h, t].tolist(), key[b, h, s].tolist(), located)
    assert fast.dtype == dtype
    torch.testing.assert_close(fast.double(), slow, rtol=0, atol=1e-5 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("name", SLOW_SCORES)
def test_gradients_are_right(name: str) -> None:
    score, query, key, previous = made(name, torch.float64)
    inputs = [each.requires_grad_() for each in (query, key, previous) if each is not None]
    # Numbers are changed in place, so that the score sees its own parameters change.
    changed = (*inputs, *score.parameters())
    assert torch.autograd.gradcheck(lambda *_: score(query, score.keys(key), previous), changed)


def test_before_the_first_query_nothing_was_looked_at() -> None:
    score, query, key, _ = made("location_aware")
    nowhere = torch.zeros(B, H, 1, S)
    torch.testing.assert_close(score(query, score.keys(key)), score(query, score.keys(key), nowhere))


def test_where_the_last_query_looked_matters_to_its_neighbourhood_only() -> None:
    score, query, _, _ = made("location_aware")
    key, previous = torch.randn(B, H, 60, F), torch.zeros(B, H, 1, 60)
    plain = score(query, score.keys(key), previous)
    previous[..., 30] = 1
    moved = (score(query, score.keys(key), previous) != plain)[0, 0, 0].nonzero().flatten().tolist()
    assert moved == list(range(30 - 15, 30 + 16))


@pytest.mark.parametrize("name", SLOW_SCORES)
def test_a_query_and_a_key_of_zero_have_a_score_and_a_gradient(name: str) -> None:
    score, query, key, previous = made(name)
    query, key = torch.zeros_like(query).requires_grad_(), torch.zeros_like(key)
    key[:, :, 1] = 1
    scores = score(query, score.keys(key), previous)
    scores.sum().backward()
    assert scores.isfinite().all()
    assert query.grad is not None
    assert query.grad.abs().max() < 1e5


def test_the_cosine_knows_no_lengths() -> None:
    score, query, key, _ = made("cosine")
    torch.testing.assert_close(score(query * 7, score.keys(key * 0.3)), score(query, score.keys(key)))
    alike = score(query, score.keys(query))
    torch.testing.assert_close(alike.diagonal(dim1=-2, dim2=-1), torch.full((B, H, 2), 10.0))


@pytest.mark.parametrize(("name", "scale"), [("scaled_dot", [0.880797, 0.119203]), ("dot", [1.0, 0.0])])
def test_golden_scores_112_and_96(name: str, scale: list[float]) -> None:
    # Of width 64: divided by 8 the scores are 14 and 12; undivided, the softmax is saturated.
    query, key = torch.zeros(1, 1, 1, 64, dtype=torch.float64), torch.zeros(1, 1, 2, 64, dtype=torch.float64)
    query[..., :2] = torch.tensor([8.0, 4.0])
    key[0, 0, :, :2] = torch.tensor([[12.0, 4.0], [8.0, 8.0]])
    scores = resolve("attention.scores", name)(64, 64)(query, key)
    assert scores.flatten().tolist() == ([14, 12] if name == "scaled_dot" else [112, 96])
    alpha = scores.softmax(-1).flatten().tolist()
    assert [round(each, 6) for each in alpha] == scale
    if name == "dot":
        assert (round(alpha[0], 8), round(alpha[1], 8)) == (0.99999989, 1.1e-7)
