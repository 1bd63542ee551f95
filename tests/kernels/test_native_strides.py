"""Kernels read tensors however they lie in memory, and gradients however they come in, as torch does in fp64.

What stands between the elements is NaN, so that whoever reads past them is found out.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.kernels.native import attention, choice, cross_entropy, dropout, memory, norm, rotary
from transduce.kernels.native.linear import Packed
from transduce.layers.external_memory import MemorySizes
from transduce.layers.memory_unroll import _Unrolled

pytestmark = pytest.mark.usefixtures("kernels")


def transposed(x: Tensor) -> Tensor:
    return x.transpose(0, -1).contiguous().transpose(0, -1)


def sliced(x: Tensor) -> Tensor:
    """Out of the middle of wider rows, at an odd place."""
    return F.pad(x, (3, 8), value=torch.nan)[..., 3:-8]


def strided(x: Tensor) -> Tensor:
    """Every second element of all rows."""
    return torch.stack((x, torch.full_like(x, torch.nan)), -1).flatten(-2)[..., ::2]


def expanded(x: Tensor) -> Tensor:
    return x[:1].expand_as(x)


def all_one(x: Tensor) -> Tensor:
    """As `.sum().backward()` hands it on: one number for all."""
    return x.new_ones(()).expand_as(x)


Layout = Callable[[Tensor], Tensor]
LAYOUTS: list[Layout] = [torch.clone, transposed, sliced, strided, expanded]
INCOMING: list[Layout] = [all_one, *LAYOUTS]
in_any_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda each: each.__name__)
for_any_gradient = pytest.mark.parametrize("incoming", INCOMING, ids=lambda each: each.__name__)


def checked(
    kernel: Callable[..., Any],
    expected: Callable[..., Any],
    given: Sequence[Tensor],
    incoming: Layout = all_one,
    tolerance: float = 1e-4,
) -> None:
    """What the kernel gives, and the gradients of all that it is given, equal those of `expected` in fp64."""
    ours = [each.detach().requires_grad_() for each in given]
    theirs = [each.detach().double().requires_grad_() for each in given]
    outputs, wanted = (found if isinstance(found, tuple) else (found,) for found in (kernel(*ours), expected(*theirs)))
    for output, right in zip(outputs, wanted, strict=True):
        torch.testing.assert_close(output.double(), right, rtol=tolerance, atol=tolerance)
    slopes = [incoming(torch.randn(each.shape)) for each in outputs]
    for _ in range(3):  # freed memory may hold the right numbers for a while
        for each in ours:
            each.grad = None
        torch.autograd.backward(outputs, slopes, retain_graph=True)
    torch.autograd.backward(wanted, [each.double() for each in slopes])
    for our, their in zip(ours, theirs, strict=True):
        assert our.grad is not None
        torch.testing.assert_close(our.grad.double(), their.grad, rtol=tolerance, atol=tolerance)


@in_any_layout
@for_any_gradient
def test_attention(layout: Layout, incoming: Layout) -> None:
    torch.manual_seed(0)
    given = [layout(torch.randn(3, heads, length, 16)) for heads, length in ((4, 7), (2, 9), (2, 9))]
    allowed = layout(torch.rand(3, 1, 7, 9)) < 0.6
    allowed[..., 0] = True

    def expected(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return F.scaled_dot_product_attention(query, key, value, allowed, enable_gqa=True)

    checked(lambda query, key, value: attention.attend(query, key, value, allowed), expected, given, incoming)


@in_any_layout
@for_any_gradient
def test_layer_norm(layout: Layout, incoming: Layout) -> None:
    torch.manual_seed(0)
    given = [layout(torch.randn(5, 7, 19)), *(layout(torch.randn(2, 19))[1] for _ in range(2))]

    def kernel(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
        return norm.layer_norm(x, gain, bias, 1e-5, torch.float32)

    def expected(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
        return F.layer_norm(x, (19,), gain, bias, 1e-5)

    checked(kernel, expected, given, incoming)
    with torch.no_grad():
        torch.testing.assert_close(kernel(*given), expected(*given))


@in_any_layout
@for_any_gradient
def test_rotary_positions(layout: Layout, incoming: Layout) -> None:
    torch.manual_seed(0)
    x_BHTE, turn_TE = layout(torch.randn(2, 3, 5, 6)), layout(torch.randn(5, 6))

    def expected(x: Tensor) -> Tensor:
        even, odd = x[..., ::2], x[..., 1::2]
        cosine, sine = turn_TE.double()[:, ::2], turn_TE.double()[:, 1::2]
        return torch.stack((even * cosine - odd * sine, even * sine + odd * cosine), -1).flatten(-2)

    checked(lambda x: rotary.turned(x, turn_TE), expected, [x_BHTE], incoming)


@in_any_layout
@for_any_gradient
def test_dropout(layout: Layout, incoming: Layout) -> None:
    torch.manual_seed(0)
    x, f = layout(torch.randn(3, 11, 13)), layout(torch.randn(3, 11, 13))
    torch.manual_seed(5)
    factor = dropout.dropped(torch.ones(3, 11, 13), 64).double()  # of each element, for this seed

    def kernel(f: Tensor) -> Tensor:
        torch.manual_seed(5)
        return dropout.dropped(f, 64)

    def added(x: Tensor, f: Tensor) -> Tensor:
        torch.manual_seed(5)
        return dropout.add_dropped(x, f, 64)

    checked(kernel, lambda f: factor * f, [f], incoming)
    checked(added, lambda x, f: x + factor * f, [x, f], incoming)


@in_any_layout
def test_cross_entropy(layout: Layout) -> None:
    torch.manual_seed(0)
    logits_NV, target_N = layout(torch.randn(5, 37)), torch.tensor([3, 99, 36, 99, -1, 99, 5, 99, 0, 99])[::2]

    def expected(logits_NV: Tensor) -> Tensor:
        return F.cross_entropy(logits_NV, target_N, ignore_index=-1, reduction="sum", label_smoothing=0.1)

    checked(lambda x: cross_entropy.smoothed_cross_entropy(x, target_N, 0.1), expected, [logits_NV])
    wanted_NV = logits_NV.detach().double().requires_grad_()
    (right_NV,) = torch.autograd.grad(expected(wanted_NV), wanted_NV)
    _, gradient_NV = cross_entropy.loss_and_gradient(logits_NV.clone(), target_N, 0.1)
    torch.testing.assert_close(gradient_NV.double(), right_NV, rtol=1e-4, atol=1e-6)


@in_any_layout
@for_any_gradient
def test_external_memory(layout: Layout, incoming: Layout) -> None:
    torch.manual_seed(0)
    rows, steps, width = 2, 3, 5
    sizes = MemorySizes(slots=6, width=3, read=1, write=2, reach=1)
    weighting_BHN = torch.rand(rows, sizes.heads, sizes.slots)
    shapes = [(rows, steps, 4 * width), (4 * width, sizes.read * sizes.width + width), (sum(sizes.parts), width)]
    weights = [layout(torch.randn(shape)) for shape in shapes] + [layout(torch.randn(2, sum(sizes.parts)))[1]]
    state = [torch.randn(rows, sizes.slots, sizes.width), weighting_BHN / weighting_BHN.sum(-1, keepdim=True)]
    state += [torch.randn(rows, sizes.read, sizes.width), torch.randn(rows, width), torch.randn(rows, width)]
    shape = memory.MemoryShape(width, *sizes, lstm=1)
    given = [*weights, *map(layout, state)]
    # Sharpening divides by weightings, some of which are near 0: gradients are large, and so is their rounding.
    expected = partial(_Unrolled.apply, sizes, True)
    checked(partial(memory.unroll, shape), expected, given, incoming, tolerance=1e-2)


@in_any_layout
def test_packed_products(layout: Layout) -> None:
    torch.manual_seed(0)
    x, weight_OI, bias_O = layout(torch.randn(2, 3, 13)), layout(torch.randn(35, 13)), layout(torch.randn(2, 35))[1]
    wanted = F.linear(x.double(), weight_OI.double(), bias_O.double())
    torch.testing.assert_close(Packed(weight_OI, bias_O)(x).double(), wanted, rtol=1e-5, atol=1e-5)
    as_arrays = Packed(weight_OI.numpy(), bias_O.numpy())(x.numpy())
    torch.testing.assert_close(torch.from_numpy(as_arrays).double(), wanted, rtol=1e-5, atol=1e-5)


def test_a_choice() -> None:
    sentence_N, slots_B = torch.tensor([[0, 0, 1], [9, 9, 9]]).mT[:, 0], torch.tensor([2, 9, 1])[::2]
    total_N = strided(torch.tensor([-1.0, -2.0, -0.5], dtype=torch.float64))
    value_NC = transposed(torch.tensor([[-0.1, -3.0], [-0.2, -0.3], [-1.0, -0.4]], dtype=torch.float64))
    parent_M, column_M, slot_M = choice.likeliest(sentence_N, total_N, value_NC, slots_B, None)
    assert (parent_M.tolist(), column_M.tolist(), slot_M.tolist()) == ([0, 1, 2], [0, 0, 1], [0, 1, 0])


def zeros(*shape: int) -> Tensor:
    return torch.zeros(shape, requires_grad=True)


EMPTY: dict[str, Callable[[], Tensor]] = {
    "no rows to attend": lambda: attention.attend(zeros(0, 2, 3, 4), zeros(0, 2, 3, 4), zeros(0, 2, 3, 4)),
    "no queries": lambda: attention.attend(zeros(2, 2, 0, 4), zeros(2, 2, 3, 4), zeros(2, 2, 3, 4)),
    "no rows to norm": lambda: norm.layer_norm(zeros(0, 5), zeros(5), zeros(5), 1e-5, torch.float32),
    "nothing in a row to norm": lambda: norm.layer_norm(zeros(3, 0), zeros(0), zeros(0), 1e-5, torch.float32),
    "no positions": lambda: rotary.turned(zeros(2, 3, 0, 4), torch.zeros(0, 4)),
    "nothing to drop": lambda: dropout.dropped(zeros(0, 3), 64),
    "nothing to add": lambda: dropout.add_dropped(zeros(3, 0), zeros(3, 0), 64),
    "no predictions": lambda: cross_entropy.smoothed_cross_entropy(zeros(0, 7), torch.zeros(0).long(), 0.1),
}


@pytest.mark.parametrize("name", EMPTY)
def test_nothing_gives_nothing(name: str) -> None:
    total = EMPTY[name]().sum()
    assert not total
    torch.autograd.backward(total)


def test_a_product_of_nothing() -> None:
    assert Packed(torch.zeros(5, 3))(torch.zeros(0, 3)).shape == (0, 5)
    assert Packed(torch.zeros(0, 3))(torch.zeros(2, 3)).shape == (2, 0)
    assert Packed(torch.zeros(5, 0), torch.ones(5))(torch.zeros(2, 0)).tolist() == [[1.0] * 5] * 2
