"""Kernels at the ends of what they take: nothing, one, primes, whole blocks and one more, odd places in wide rows.

`make sanitize` runs these with every access to memory checked.
"""

from collections.abc import Callable
from itertools import product

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.kernels.native import attention, cross_entropy, dropout, memory, norm, rotary, top
from transduce.kernels.native.linear import Packed
from transduce.kernels.native.tensors import can_pack

pytestmark = pytest.mark.usefixtures("kernels")


def at_an_odd_place(x: Tensor) -> Tensor:
    """One element behind where memory begins, up to the very end of it."""
    return torch.cat((x.new_zeros(1), x.flatten()))[1:].view(x.shape)


def in_wide_rows(x: Tensor) -> Tensor:
    """Rows far apart, the last of which ends where memory ends."""
    return torch.cat((x.new_zeros(*x.shape[:-1], 1031), x), -1)[..., 1031:]


PLACES: list[Callable[[Tensor], Tensor]] = [at_an_odd_place, in_wide_rows]
DTYPES = [torch.float32, torch.bfloat16]
anywhere = pytest.mark.parametrize("place", PLACES, ids=lambda each: each.__name__)
in_both_types = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def assert_near(found: Tensor, expected: Tensor) -> None:
    tolerance = 2**-6 if found.dtype is torch.bfloat16 else 2e-5
    torch.testing.assert_close(found.double(), expected.double(), rtol=tolerance, atol=tolerance)


ATTENDED = [  # heads, groups, queries, keys, width
    (1, 1, 1, 1, 1),
    (1, 1, 1, 255, 1),
    (2, 1, 13, 251, 7),
    (2, 2, 255, 255, 17),
    (6, 3, 127, 1, 16),
    (3, 3, 2, 31, 67),
    (1, 1, 5, 16, 128),
]


@anywhere
@in_both_types
@pytest.mark.parametrize("sizes", ATTENDED, ids=str)
def test_attention(sizes: tuple[int, ...], dtype: torch.dtype, place: Callable[[Tensor], Tensor]) -> None:
    heads, groups, queries, keys, width = sizes
    torch.manual_seed(0)
    shapes = [(2, heads, queries, width), (2, groups, keys, width), (2, groups, keys, width)]
    ours = [place(torch.randn(shape).to(dtype)).requires_grad_() for shape in shapes]
    theirs = [each.detach().double().requires_grad_() for each in ours]
    allowed = place(torch.rand(2, 1, queries, keys) < 0.5)
    allowed[..., -1] = True
    read, expected = attention.attend(*ours, allowed), F.scaled_dot_product_attention(*theirs, allowed, enable_gqa=True)
    assert_near(read, expected)
    slope = place(torch.randn(read.shape).to(dtype))
    torch.autograd.backward((read, expected), (slope, slope.double()))
    for our, their in zip(ours, theirs, strict=True):
        assert our.grad is not None
        assert their.grad is not None
        greatest = their.grad.abs().max().clamp_min(1)
        assert_near(our.grad / greatest, their.grad / greatest)


@anywhere
@pytest.mark.parametrize(("rows", "width"), [*product([1, 127, 128, 129], [1, 3, 17, 131])])
def test_layer_norm(rows: int, width: int, place: Callable[[Tensor], Tensor]) -> None:
    torch.manual_seed(0)
    given = [place(torch.randn(shape)).requires_grad_() for shape in ((rows, width), (width,), (width,))]
    doubled = [each.detach().double().requires_grad_() for each in given]
    y = norm.layer_norm(*given, epsilon=1e-2, dtype=torch.float32)
    expected = F.layer_norm(doubled[0], (width,), *doubled[1:], eps=1e-2)
    assert_near(y, expected)
    slope = place(torch.randn(rows, width))
    torch.autograd.backward((y, expected), (slope, slope.double()))
    for our, their in zip(given, doubled, strict=True):
        assert our.grad is not None
        assert their.grad is not None
        torch.testing.assert_close(our.grad.double(), their.grad, rtol=1e-4, atol=1e-4)


@anywhere
@in_both_types
@pytest.mark.parametrize(("positions", "width"), [*product([1, 7, 255], [2, 6, 62])])
def test_rotary(positions: int, width: int, dtype: torch.dtype, place: Callable[[Tensor], Tensor]) -> None:
    x_BHTE, turn_TE = place(torch.randn(1, 3, positions, width).to(dtype)), place(torch.randn(positions, width))
    x, turn = (torch.view_as_complex(each.double().unflatten(-1, (-1, 2))) for each in (x_BHTE, turn_TE))
    assert_near(rotary.turned(x_BHTE, turn_TE), torch.view_as_real(x * turn).flatten(-2))


@anywhere
@in_both_types
@pytest.mark.parametrize("count", [1, 7, 4095, 4096, 4097, 8209])
def test_dropout(count: int, dtype: torch.dtype, place: Callable[[Tensor], Tensor]) -> None:
    x, f = place(torch.randn(1, count)), place(torch.randn(1, count).to(dtype))
    torch.manual_seed(1)
    factor = dropout.dropped(torch.ones(1, count), 255)
    torch.manual_seed(1)
    assert_near(dropout.add_dropped(x, f, 255), x + factor * f.float())
    assert set(factor.unique().tolist()) <= {0.0, 256.0}


@anywhere
@in_both_types
@pytest.mark.parametrize(("rows", "words"), [*product([1, 3], [1, 2, 31, 1009])])
def test_cross_entropy(rows: int, words: int, dtype: torch.dtype, place: Callable[[Tensor], Tensor]) -> None:
    torch.manual_seed(0)
    logits_NV, target_N = place(torch.randn(rows, words).to(dtype)), torch.arange(rows) - 1
    logits_NV.requires_grad_()
    right_NV = logits_NV.detach().double().requires_grad_()
    target_N = target_N.clamp(max=words - 1)
    loss = cross_entropy.smoothed_cross_entropy(logits_NV, target_N, 0.1)
    expected = F.cross_entropy(right_NV, target_N, ignore_index=-1, label_smoothing=0.1, reduction="sum")
    assert_near(loss, expected)
    (gradient,), (wanted,) = torch.autograd.grad(loss, logits_NV), torch.autograd.grad(expected, right_NV)
    assert_near(gradient, wanted)


def rounding_in_8_bits(x_NI: Tensor, weight_OI: Tensor) -> Tensor:
    """(N, O): how far a product may be away, where each number is off by half a step at most."""
    half_N1, half_O1 = (each.abs().amax(1, keepdim=True) / 254 for each in (x_NI, weight_OI))
    sum_N1, sum_O1 = (each.abs().sum(1, keepdim=True) for each in (x_NI, weight_OI))
    return 1.001 * (sum_N1 * half_O1.T + half_N1 * sum_O1.T + x_NI.shape[1] * half_N1 * half_O1.T)


@anywhere
@pytest.mark.parametrize("whole", [False, True], ids=["fp32", "int8"])
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (3, 31), (63, 33), (64, 64), (65, 67), (128, 129)])
def test_products(inputs: int, outputs: int, whole: bool, place: Callable[[Tensor], Tensor]) -> None:
    torch.manual_seed(0)
    weight_OI, bias_O = place(torch.randn(outputs, inputs)), place(torch.randn(outputs))
    if whole and not can_pack(weight_OI, whole):
        pytest.skip("no 8-bit products in kernels on this processor")
    packed = Packed(weight_OI, bias_O, whole)
    for rows in (0, 1, 5, 7, 8, 16, 79, 81, 161):
        x_NI = place(torch.randn(rows, inputs))
        difference_NO = packed(x_NI) - F.linear(x_NI.double(), weight_OI.double(), bias_O.double())
        assert (difference_NO.abs() <= (rounding_in_8_bits(x_NI, weight_OI) if whole else 0) + 1e-4).all()


@pytest.mark.parametrize("columns", [1, 63, 64, 65, 257])
def test_the_greatest(columns: int) -> None:
    torch.manual_seed(0)
    x_NV = at_an_odd_place(torch.randn(3, columns))
    for count, without in product((1, columns, columns + 3), ([], [0], list(range(columns)))):
        value_NC, column_NC = top.top(x_NV, count, without)
        left_NV = x_NV.index_fill(1, torch.tensor(without, dtype=torch.int64), -torch.inf)
        expected_NC = left_NV.sort(1, descending=True).values[:, :count].double()
        assert torch.equal(value_NC, expected_NC)
        assert ((column_NC >= 0) & (column_NC < columns)).all()
    assert_near(top.log_softmax_(x_NV.clone()), x_NV.double().log_softmax(1))


@pytest.mark.parametrize("lstm", [0, 1])
@pytest.mark.parametrize("sizes", [(1, 1, 1, 0, 0), (2, 1, 1, 1, 1), (3, 5, 2, 3, 7), (127, 1, 1, 2, 1)], ids=str)
@pytest.mark.parametrize(("rows", "steps"), [(0, 2), (2, 0), (1, 1), (3, 2)])
def test_external_memory(rows: int, steps: int, sizes: tuple[int, int, int, int, int], lstm: int) -> None:
    """Rows do not know each other: each is as it is alone, and its gradients too."""
    slots, width, read, write, _ = sizes
    controller, heads = 3, read + write
    shape = memory.MemoryShape(controller, *sizes, lstm)
    gates, said = (4 if lstm else 1) * controller, shape.kept
    said -= gates + controller + heads + 4 * heads * slots + slots * width
    torch.manual_seed(0)
    weights = [torch.randn(gates, read * width + lstm * controller), torch.randn(said, controller), torch.randn(said)]
    state = [torch.randn(rows, slots, width), torch.rand(rows, heads, slots), torch.randn(rows, read, width)]
    by_row = [torch.randn(rows, steps, gates), *state, torch.randn(rows, controller), torch.randn(rows, controller)]

    def found(row: slice) -> list[Tensor]:
        given = [at_an_odd_place(each[row]).requires_grad_() for each in by_row]
        outputs = memory.unroll(shape, given[0], *weights, *given[1:])
        slopes = torch.autograd.grad([each.sum() for each in outputs], given)
        return [*outputs, *slopes]

    together = found(slice(None))
    assert all(each.isfinite().all() for each in together)
    for row in range(rows):
        for one, all_rows in zip(found(slice(row, row + 1)), together, strict=True):
            assert torch.equal(one[0], all_rows[row])
