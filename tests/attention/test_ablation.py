"""A head switched off is W^o without that head's columns, and nothing else changes."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from transduce.attention.ablation import without_head
from transduce.attention.cross_attention import CrossAttention
from transduce.attention.heads import MultiHeadAttention
from transduce.attention.linear import LinearAttention
from transduce.attention.pooling import AttentionPooling
from transduce.core.errors import InputError

X_BTD = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(1))


def attend(attention: nn.Module) -> Tensor:
    if isinstance(attention, MultiHeadAttention):
        read: Tensor = attention(X_BTD, attention.keys_values(X_BTD))
    else:
        assert isinstance(attention, LinearAttention)
        read = attention(X_BTD, attention.summarise(X_BTD))
    return read


@pytest.mark.parametrize("make", [lambda: MultiHeadAttention(8, 4), lambda: LinearAttention(8, 4)])
@pytest.mark.parametrize("head", range(4))
def test_it_is_the_output_without_that_heads_columns(make: Callable[[], nn.Module], head: int) -> None:
    torch.manual_seed(0)
    attention = make()
    cut = copy.deepcopy(attention)
    with torch.no_grad():
        cut.get_submodule("output").weight[:, 2 * head : 2 * head + 2] = 0
    whole = attend(attention)
    with without_head(attention, head):
        silenced = attend(attention)
    torch.testing.assert_close(silenced, attend(cut))
    assert not torch.allclose(silenced, whole)
    assert torch.equal(attend(attention), whole)


def test_rows_of_a_batch_can_differ() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 4)
    alone = []
    for head in (2, 0):
        with without_head(attention, head):
            alone.append(attend(attention))
    with without_head(attention, 2, slice(0, 1)), without_head(attention, 0, slice(2, 3)):
        mixed = attend(attention)
    torch.testing.assert_close(mixed, torch.stack((alone[0][0], attend(attention)[1], alone[1][2])))


def test_a_reader_says_zero_for_that_head_and_still_shows_its_weights() -> None:
    torch.manual_seed(0)
    reader = CrossAttention("additive", "softmax", 8, 8, heads=2)
    memory = reader.remember(X_BTD)
    position_BT = torch.arange(5).expand(3, -1)
    context, alpha = reader(X_BTD, memory, None, position_BT)
    with without_head(reader, 1):
        silenced, same = reader(X_BTD, memory, None, position_BT)
    assert torch.equal(silenced[..., :4], context[..., :4])
    assert not silenced[..., 4:].any()
    assert torch.equal(same, alpha)


def test_an_error_inside_switches_it_on_again() -> None:
    attention = MultiHeadAttention(8, 4)
    whole = attend(attention)
    with pytest.raises(RuntimeError, match="ours"), without_head(attention, 0):
        raise RuntimeError("ours")
    assert torch.equal(attend(attention), whole)


@pytest.mark.parametrize("attention", [MultiHeadAttention(8, 2), AttentionPooling("dot", "softmax", 8)])
def test_what_there_is_not_cannot_be_switched_off(attention: nn.Module) -> None:
    with pytest.raises(InputError, match="heads"), without_head(attention, 2):
        pass
