"""The reader against attention written out for one sentence at a time."""

import pytest
import torch

from transduce.attention.capture import capture
from transduce.attention.cross_attention import CrossAttention
from transduce.attention.masks import padding
from transduce.core.registry import known

SCORES = known("attention.scores")
POSITION = torch.zeros(1, 1, dtype=torch.int64)


@pytest.mark.parametrize("score", SCORES)
def test_one_head_reads_the_states_themselves_by_the_softmax_of_its_score(score: str) -> None:
    reader = CrossAttention(score, "softmax", 6, 6)
    query_BTD, states_BSM = torch.randn(2, 1, 6), torch.randn(2, 4, 6)
    context_BTM, alpha_BHTS = reader(query_BTD, reader.remember(states_BSM), None, POSITION)
    for b in range(2):
        keys = reader.score.keys(states_BSM[b : b + 1, None])
        score_S = reader.score(query_BTD[b : b + 1, None], keys)[0, 0, 0]
        alpha_S = score_S.exp() / score_S.exp().sum()
        torch.testing.assert_close(alpha_BHTS[b, 0, 0], alpha_S)
        torch.testing.assert_close(
            context_BTM[b, 0], sum(a * state for a, state in zip(alpha_S, states_BSM[b], strict=True))
        )


def test_padding_is_not_read_and_a_record_gets_the_weights() -> None:
    reader = CrossAttention("additive", "softmax", 5, 8, heads=2)
    query_BTD, states_BSM = torch.randn(2, 3, 5), torch.randn(2, 4, 8)
    real_BS = torch.tensor([[True, True, False, False], [True, True, True, True]])
    with capture(reader) as record:
        context_BTM, alpha_BHTS = reader(query_BTD, reader.remember(states_BSM), padding(real_BS), POSITION)
    assert context_BTM.shape == (2, 3, 8)
    assert alpha_BHTS.shape == (2, 2, 3, 4)
    assert (alpha_BHTS[0, :, :, 2:] == 0).all()
    assert torch.equal(record[""][0], alpha_BHTS)


def test_queries_of_a_sequential_score_come_one_at_a_time() -> None:
    reader = CrossAttention("location_aware", "softmax", 4, 4)
    assert reader.sequential
    with pytest.raises(AssertionError):
        reader(torch.randn(1, 2, 4), reader.remember(torch.randn(1, 3, 4)), None, POSITION)
