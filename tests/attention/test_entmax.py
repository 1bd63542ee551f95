"""Sparsemax and entmax against every support tried, each other and finite differences."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from slow_normalizers import slow_entmax15, slow_sparsemax

from transduce.attention.normalizers import entmax, entmax15, sparsemax

NUMBERS = st.lists(st.floats(-3, 3) | st.sampled_from([0.0, 1.0, -1.0, 0.5]), min_size=1, max_size=6)


@given(NUMBERS)
def test_sparsemax_is_the_nearest_point_of_the_simplex(e: list[float]) -> None:
    wanted = torch.tensor(slow_sparsemax(e), dtype=torch.float64)
    torch.testing.assert_close(sparsemax(torch.tensor(e, dtype=torch.float64)), wanted, rtol=0, atol=1e-8)
    torch.testing.assert_close(sparsemax(torch.tensor(e)), wanted.float(), rtol=0, atol=1e-5)


@given(NUMBERS)
def test_entmax15_is_the_best_of_every_support(e: list[float]) -> None:
    wanted = torch.tensor(slow_entmax15(e), dtype=torch.float64)
    torch.testing.assert_close(entmax15(torch.tensor(e, dtype=torch.float64)), wanted, rtol=0, atol=1e-9)
    torch.testing.assert_close(entmax15(torch.tensor(e)), wanted.float(), rtol=0, atol=1e-5)


def test_known_points() -> None:
    # Martins & Astudillo 2016, section 2.3: in two dimensions sparsemax is a hard sigmoid.
    for t, right in ((-3.0, 0.0), (-1.0, 0.0), (-0.5, 0.25), (0.0, 0.5), (0.5, 0.75), (1.0, 1.0), (9.0, 1.0)):
        assert sparsemax(torch.tensor([t, 0.0])).tolist() == [right, 1 - right]
    assert entmax15(torch.tensor([7.0, 7, 7, 7])).tolist() == [0.25] * 4
    assert entmax15(torch.tensor([2.0, 0])).tolist() == [1, 0]
    assert entmax15(torch.tensor([1.9, 0]))[1] > 0


def test_bisection_goes_from_nearly_softmax_through_entmax15_to_sparsemax_and_beyond() -> None:
    e = torch.randn(20, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(entmax(e, 1.5), entmax15(e))
    torch.testing.assert_close(entmax(e, 2.0), sparsemax(e))
    torch.testing.assert_close(entmax(e, 1.0001), e.softmax(-1), rtol=0, atol=1e-4)
    torch.testing.assert_close(entmax(e.float(), 1.5), entmax15(e).float(), rtol=0, atol=1e-6)
    sizes = [(entmax(e, alpha) > 0).sum().item() for alpha in (1.01, 1.5, 2.0, 4.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]
    torch.testing.assert_close(entmax(e, 4.0).sum(-1), torch.ones(20, dtype=torch.float64))
    with pytest.raises(AssertionError):
        entmax(e, 1.0)


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0, 3.0])
def test_gradients_are_right(alpha: float) -> None:
    e = torch.randn(4, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    allowed = torch.tensor([True, True, False, True, True, True])
    assert torch.autograd.gradcheck(lambda x: entmax(x, alpha, allowed), e)
    if alpha in {1.5, 2.0}:
        exact = sparsemax if alpha == 2.0 else entmax15
        assert torch.autograd.gradcheck(lambda x: exact(x, allowed), e)
        assert torch.autograd.gradgradcheck(lambda x: exact(x, allowed), e)


def test_the_jacobian_of_sparsemax_is_that_of_the_paper() -> None:
    # diag(s) - s s^T / |S| (Martins & Astudillo 2016, equation 11), bit for bit.
    e = torch.tensor([1.0, 0.75, 0.5, -2.0])
    jacobian = torch.autograd.functional.jacobian(sparsemax, e)
    inside = (sparsemax(e) > 0).float()
    assert inside.tolist() == [1, 1, 1, 0]
    torch.testing.assert_close(jacobian, inside.diag() - inside.outer(inside) / 3, rtol=0, atol=1e-7)


def test_long_rows_keep_their_mass_in_fp32() -> None:
    e = torch.randn(4, 5000, generator=torch.Generator().manual_seed(2))
    for weigh in (sparsemax, entmax15):
        for scale in (1e-3, 1.0, 100.0):
            alpha = weigh(scale * e)
            torch.testing.assert_close(alpha.sum(-1), torch.ones(4), rtol=0, atol=1e-4)
            torch.testing.assert_close(alpha.double(), weigh(scale * e.double()), rtol=0, atol=1e-5)
