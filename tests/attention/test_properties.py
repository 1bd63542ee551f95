"""What must hold of attention whatever its weights."""

import torch
from torch import Tensor

from transduce.attention import MultiHeadAttention, attend, attention_weights, masks
from transduce.core.registry import resolve


def self_attention(attention: MultiHeadAttention, x_BTD: Tensor, allowed: Tensor | None = None) -> Tensor:
    read: Tensor = attention(x_BTD, attention.keys_values(x_BTD), allowed)
    return read


def test_without_positions_and_masks_order_means_nothing() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2).double()
    x_BTD = torch.randn(2, 7, 8, dtype=torch.float64)
    order = torch.randperm(7)
    torch.testing.assert_close(self_attention(attention, x_BTD[:, order]), self_attention(attention, x_BTD)[:, order])


def test_the_order_of_keys_means_nothing_to_cross_attention() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2).double()
    x_BTD, y_BSD = torch.randn(2, 3, 8, dtype=torch.float64), torch.randn(2, 6, 8, dtype=torch.float64)
    shuffled = attention.keys_values(y_BSD[:, torch.randperm(6)])
    torch.testing.assert_close(attention(x_BTD, shuffled), attention(x_BTD, attention.keys_values(y_BSD)))


def test_under_a_causal_mask_the_future_has_no_gradient_at_all() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2)
    x_BTD = torch.randn(2, 6, 8, requires_grad=True)
    output_BTD = self_attention(attention, x_BTD, masks.causal(6))
    for t in range(6):
        (gradient_BTD,) = torch.autograd.grad(output_BTD[:, t].square().sum(), x_BTD, retain_graph=True)
        assert (gradient_BTD[:, t + 1 :] == 0).all()
        assert (gradient_BTD[:, : t + 1].abs().sum((0, 2)) > 0).all()


def test_rows_and_columns_are_two_layouts_of_one_sum() -> None:
    # V softmax(K^T Q / sqrt(d)) with a vector a column is the transpose of softmax(Q K^T / sqrt(d)) V.
    torch.manual_seed(0)
    query_ET, key_ES, value_FS = (torch.randn(4, n, dtype=torch.float64) for n in (3, 5, 5))
    columns_FT = value_FS @ torch.softmax(key_ES.T @ query_ET / 4**0.5, 0)
    rows_TF = attend(query_ET.T[None, None], key_ES.T[None, None], value_FS.T[None, None])[0, 0]
    torch.testing.assert_close(rows_TF, columns_FT.T)


def test_the_output_is_an_expectation_over_the_values() -> None:
    # Hence inside their range, and their mean where all scores are equal.
    torch.manual_seed(0)
    query, key, value = torch.randn(1, 1, 9, 4), torch.randn(1, 1, 6, 4), torch.randn(1, 1, 6, 1)
    output = attend(query, key, value)
    assert output.min() >= value.min()
    assert output.max() <= value.max()
    torch.testing.assert_close(attend(query * 0, key, value), value.mean(2, keepdim=True).expand(1, 1, 9, 1))


def test_with_positions_order_means_something() -> None:
    for kind in ("rotary", "alibi", "shaw", "t5"):
        torch.manual_seed(0)
        attention = MultiHeadAttention(8, 2, positions=resolve("attention.relative", kind)(2, 4, causal=False)).double()
        for parameter in attention.parameters():
            torch.nn.init.normal_(parameter)
        x_BTD, order = torch.randn(2, 7, 8, dtype=torch.float64), torch.tensor([3, 1, 0, 6, 2, 5, 4])
        shuffled = self_attention(attention, x_BTD[:, order])
        assert not torch.allclose(shuffled, self_attention(attention, x_BTD)[:, order])


def test_near_queries_read_near_things_and_a_key_its_own_value() -> None:
    # Attention as a memory: orthogonal keys are addresses.
    torch.manual_seed(0)
    key = 40 * torch.linalg.qr(torch.randn(1, 1, 6, 6, dtype=torch.float64))[0]
    value = torch.randn(1, 1, 6, 3, dtype=torch.float64)
    torch.testing.assert_close(attend(key, key, value), value)
    query, away = torch.randn(1, 1, 4, 6, dtype=torch.float64), torch.randn(1, 1, 4, 6, dtype=torch.float64)
    moved = [(attend(query + step * away, key, value) - attend(query, key, value)).abs().max() for step in (1e-3, 1e-6)]
    assert moved[1] < 1.1e-3 * moved[0]


def test_weights_follow_the_content_at_any_length() -> None:
    # Of a fully connected layer they are fixed, for one length.
    torch.manual_seed(0)
    query, key = torch.randn(1, 1, 1, 4), torch.randn(1, 1, 5, 4)
    alpha = attention_weights(query, key)
    order = torch.tensor([2, 0, 4, 1, 3])
    torch.testing.assert_close(attention_weights(query, key[:, :, order]), alpha[..., order])
    longer = attention_weights(query, torch.cat((key, torch.randn(1, 1, 90, 4)), 2))
    assert longer.shape == (1, 1, 1, 95)
    torch.testing.assert_close(longer[..., :5] / longer[..., :5].sum(), alpha)
