"""The two ways in which Muon's iterations are computed, against the polynomial of the singular values."""

import pytest
import torch
from torch import Tensor

from transduce.training import optimizer


def by_singular_values(x_WRC: Tensor, quintics: optimizer.Quintics) -> Tensor:
    """Odd polynomials of a matrix act on its singular values alone."""
    left, values, right = torch.linalg.svd(x_WRC, full_matrices=False)
    for a, b, c in quintics:
        values = a * values + b * values**3 + c * values**5
    return left @ torch.diag_embed(values) @ right


@pytest.mark.parametrize("iterations", [3, 5])
@pytest.mark.parametrize("iterated", [optimizer._iterated, optimizer._iterated_by_gram], ids=["plain", "gram"])
def test_both_iterations_are_the_polynomial_of_the_singular_values(  # type: ignore[no-untyped-def]
    iterated, iterations: int
) -> None:
    torch.manual_seed(0)
    quintics = optimizer.QUINTICS[:iterations]
    x_WRC = torch.randn(3, 5, 9, dtype=torch.float64)
    x_WRC = x_WRC / torch.linalg.matrix_norm(x_WRC, keepdim=True)
    torch.testing.assert_close(iterated(x_WRC, quintics), by_singular_values(x_WRC, quintics))
