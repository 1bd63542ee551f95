"""Pooling by learned queries against Lin's equations and query by query."""

import pytest
import torch
from torch import Tensor, nn

from transduce.attention.capture import capture
from transduce.attention.masks import padding
from transduce.attention.pooling import AttentionPooling
from transduce.core.registry import known

B, S, D, R = 2, 5, 6, 3
REAL_BS = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


def states() -> Tensor:
    return torch.randn(B, S, D, generator=torch.Generator().manual_seed(0))


def test_it_is_the_self_attentive_embedding() -> None:
    # Lin et al. 2017, equations 5 to 7, one sentence at a time without its padding.
    torch.manual_seed(1)
    x_BSD, first = states(), nn.Linear(D, 4, bias=False)
    pooling = AttentionPooling("dot", "softmax", 4, queries=R)
    embedding_BRD = pooling(x_BSD, REAL_BS, first(x_BSD).tanh())
    for row, length in zip(range(B), REAL_BS.sum(1).tolist(), strict=True):
        hidden_SD = x_BSD[row, :length]
        annotation_RS = torch.softmax(pooling.query_RK @ torch.tanh(first.weight @ hidden_SD.T), 1)
        torch.testing.assert_close(embedding_BRD[row], annotation_RS @ hidden_SD)


@pytest.mark.parametrize("normalizer", known("attention.normalizers"))
@pytest.mark.parametrize("score", known("attention.scores"))
def test_any_score_and_any_weighing_reads_query_by_query(score: str, normalizer: str) -> None:
    torch.manual_seed(1)
    x_BSD = states()
    pooling = AttentionPooling(score, normalizer, D, queries=R).eval()
    with capture(pooling) as record:
        read_BRD = pooling(x_BSD, REAL_BS)
    (alpha_B1RS,) = record[""]
    assert alpha_B1RS.shape == (B, 1, R, S)
    assert (alpha_B1RS[1, ..., 3:] == 0).all()
    torch.testing.assert_close(read_BRD, alpha_B1RS[:, 0] @ x_BSD)
    keys, previous = pooling.score.keys(x_BSD[:, None]), None
    for r in range(R):
        query = pooling.query_RK[r].expand(B, 1, 1, D)
        scores = pooling.score(query, keys, previous)
        previous = pooling.weigh(scores, padding(REAL_BS), query, torch.tensor([[r]]), previous)
        torch.testing.assert_close(alpha_B1RS[:, :, r : r + 1], previous)
    alone_BRD = pooling(x_BSD[1:, :3])
    torch.testing.assert_close(alone_BRD, read_BRD[1:], rtol=0, atol=1e-6)


def test_gradients_reach_everything() -> None:
    pooling = AttentionPooling("location_aware", "monotonic", D, queries=R)
    x_BSD = states().requires_grad_()
    pooling(x_BSD, REAL_BS).square().sum().backward()
    for name, parameter in pooling.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name
    assert x_BSD.grad is not None
    assert (x_BSD.grad[~REAL_BS] == 0).all()
    assert (x_BSD.grad[REAL_BS].abs().sum(-1) > 0).all()
