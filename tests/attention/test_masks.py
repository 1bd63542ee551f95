"""True = may attend."""

import torch

from transduce.attention import masks


def test_causal_sees_itself_and_what_came_before() -> None:
    expected = torch.tensor([[1, 0, 0], [1, 1, 0], [1, 1, 1]]).bool()
    assert torch.equal(masks.causal(3), expected[None, None])


def test_causal_after_a_past_is_the_lower_end_of_the_whole() -> None:
    for past in range(5):
        for queries in range(1, 5):
            whole = masks.causal(past + queries)
            assert torch.equal(masks.causal(queries, past), whole[:, :, past:])


def test_padding_broadcasts_over_heads_and_queries() -> None:
    real_BS = torch.tensor([[True, True, False], [True, False, False]])
    mask = masks.padding(real_BS)
    assert mask.shape == (2, 1, 1, 3)
    everywhere = mask.expand(2, 4, 5, 3)
    assert torch.equal(everywhere[1, 3, 4], real_BS[1])
