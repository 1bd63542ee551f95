"""The kernel for attention over short sequences, against torch's attention in fp64."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.kernels.native import attention as native

pytestmark = pytest.mark.usefixtures("kernels")
SIZES = [  # batch, heads, groups, queries, keys, width
    (1, 1, 1, 1, 1, 1),
    (3, 4, 4, 7, 7, 32),
    (2, 4, 2, 5, 33, 8),
    (2, 6, 1, 18, 16, 20),
    (1, 2, 2, 50, 47, 64),
]


def tensors(sizes: tuple[int, ...], dtype: torch.dtype) -> list[Tensor]:
    """Queries, keys, values as the projections leave them: heads side by side, keys and values of one row."""
    batch, heads, groups, queries, keys, width = sizes
    torch.manual_seed(sum(sizes))
    query_BTHE = torch.randn(batch, queries, heads, width).to(dtype)
    both_BSGE = torch.randn(batch, keys, 2 * groups, width).to(dtype)
    return [each.transpose(1, 2) for each in (query_BTHE, *both_BSGE.chunk(2, 2))]


def masks(sizes: tuple[int, ...]) -> list[Tensor | None]:
    """None, by key, by query and key, and one for each example; every query may see a key."""
    batch, _, _, queries, keys, _ = sizes
    by_key = torch.rand(batch, 1, 1, keys) < 0.7
    by_query = torch.rand(queries, keys) < 0.5
    by_all = torch.rand(batch, 1, queries, keys) < 0.5
    for each in (by_key, by_query, by_all):
        each[..., 0] = True
    return [None, by_key, by_query, by_all, by_all.mT.contiguous().mT]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("sizes", SIZES)
def test_output_and_gradients_equal_torchs(sizes: tuple[int, ...], dtype: torch.dtype) -> None:
    tolerance = {"rtol": 1e-5, "atol": 2e-6} if dtype is torch.float32 else {"rtol": 2**-7, "atol": 2**-7}
    for allowed in masks(sizes):
        ours = [each.clone().requires_grad_() for each in tensors(sizes, dtype)]
        theirs = [each.double().detach().requires_grad_() for each in ours]
        assert native.can_attend(*ours, allowed)
        read_BHTE = native.attend(*ours, allowed)
        expected_BHTE = F.scaled_dot_product_attention(*theirs, allowed, enable_gqa=True)
        incoming_BHTE = torch.randn_like(expected_BHTE).to(dtype)
        read_BHTE.backward(incoming_BHTE)
        expected_BHTE.backward(incoming_BHTE.double())
        assert read_BHTE.dtype is dtype
        torch.testing.assert_close(read_BHTE.double(), expected_BHTE, **tolerance)
        for our, their in zip(ours, theirs, strict=True):
            assert our.grad is not None
            torch.testing.assert_close(
                our.grad.double(), their.grad, rtol=tolerance["rtol"], atol=4 * tolerance["atol"]
            )


def test_what_it_cannot_do_it_does_not_take() -> None:
    query, key, value = tensors((2, 4, 4, 3, 5, 8), torch.float32)
    assert native.can_attend(query, key, value, torch.ones(2, 1, 3, 5, dtype=torch.bool))
    assert not native.can_attend(query, key, value, torch.ones(2, 4, 3, 5, dtype=torch.bool)), "a mask for each head"
    assert not native.can_attend(query, key, value[..., :4], None), "values of another width"
    assert not native.can_attend(query.double(), key.double(), value.double(), None)
    assert not native.can_attend(query.bfloat16(), key, value, None)
    assert not native.can_attend(query, key[:, :, :0], value[:, :, :0], None), "nothing to look at"


def test_large_scores_stay_finite() -> None:
    query, key, value = tensors((1, 1, 1, 3, 20, 4), torch.float32)
    read = native.attend(1e4 * query, key, value)
    torch.testing.assert_close(read, F.scaled_dot_product_attention(1e4 * query, key, value))


def test_weights_are_right_down_to_the_smallest() -> None:
    """The exponential is within 2 units of the last place above -87, and 0 below."""
    score_S = -torch.cat((torch.arange(0, 87, 0.5), torch.tensor([86.9, 87.1, 90.0, 1e30])))
    keys = len(score_S)
    query, key, value = torch.zeros(1, 1, 1, keys), torch.zeros(1, 1, keys, keys), torch.eye(keys)[None, None]
    query[..., 0], key[0, 0, :, 0] = keys**0.5, score_S
    weight_S = native.attend(query, key, value)[0, 0, 0]
    torch.testing.assert_close(weight_S[:-3].double(), score_S.double().softmax(0)[:-3], rtol=3e-5, atol=0)
    assert weight_S[-3:].tolist() == [0, 0, 0]


def test_threads_change_nothing() -> None:
    def found() -> list[Tensor]:
        given = [each.requires_grad_() for each in tensors((9, 4, 2, 11, 13, 16), torch.float32)]
        read = native.attend(*given)
        read.backward(torch.ones_like(read))
        return [read, *(each.grad for each in given if each.grad is not None)]

    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = found()
        torch.set_num_threads(3)
        assert all(map(torch.equal, alone, found()))
    finally:
        torch.set_num_threads(threads)
