"""The connection around every sub-layer."""

import pytest
import torch
from torch import Tensor, nn

from transduce.kernels import native
from transduce.layers.residual import NormPlacement, Residual

pytestmark = pytest.mark.usefixtures("either_way")


def by_hand(x_BTD: Tensor, gain_D: Tensor, bias_D: Tensor) -> Tensor:
    """Layer norm: statistics over the features of each position, variance without Bessel's correction."""
    mean_BT1 = x_BTD.mean(-1, keepdim=True)
    variance_BT1 = (x_BTD - mean_BT1).square().mean(-1, keepdim=True)
    return (x_BTD - mean_BT1) / (variance_BT1 + 1e-5).sqrt() * gain_D + bias_D


def residual(norm: NormPlacement, dropout: float = 0.0) -> Residual:
    torch.manual_seed(0)
    layer = Residual(6, dropout, norm)
    nn.init.normal_(layer.norm.weight)
    nn.init.normal_(layer.norm.bias)
    return layer


X_BTD = torch.randn(2, 3, 6, generator=torch.Generator().manual_seed(1))


def test_pre_norms_on_the_way_into_the_sublayer() -> None:
    layer = residual("pre")
    expected = X_BTD + torch.tanh(by_hand(X_BTD, layer.norm.weight, layer.norm.bias))
    torch.testing.assert_close(layer(X_BTD, torch.tanh), expected)


def test_post_norms_the_sum() -> None:
    layer = residual("post")
    expected = by_hand(X_BTD + torch.tanh(X_BTD), layer.norm.weight, layer.norm.bias)
    torch.testing.assert_close(layer(X_BTD, torch.tanh), expected)


def test_statistics_are_each_positions_own() -> None:
    # Of layer norm, not batch norm: other positions and other rows change nothing.
    layer = Residual(6, 0.0, "post")
    output = layer(X_BTD, torch.zeros_like)
    torch.testing.assert_close(output.mean(-1), torch.zeros(2, 3), atol=1e-6, rtol=0)
    torch.testing.assert_close(output.var(-1, correction=0), torch.ones(2, 3), atol=1e-3, rtol=0)
    torch.testing.assert_close(layer(X_BTD[1:, 2:], torch.zeros_like), output[1:, 2:])


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_dropout_falls_on_the_sublayer_and_never_on_the_stream(norm: NormPlacement) -> None:
    layer = residual(norm, dropout=0.5)
    seen = []

    def sublayer(x_BTD: Tensor) -> Tensor:
        seen.append(x_BTD)
        return torch.full_like(x_BTD, 3.0)

    output = layer(X_BTD, sublayer)
    entered = by_hand(X_BTD, layer.norm.weight, layer.norm.bias) if norm == "pre" else X_BTD
    torch.testing.assert_close(seen[0], entered)
    if norm == "pre":
        added = output - X_BTD
        assert sorted({round(value, 3) for value in added.flatten().tolist()}) == [0.0, 6.0]


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_under_autocast_nothing_that_goes_past_a_product_is_rounded(norm: NormPlacement) -> None:
    layer, product, into = residual(norm), nn.Linear(6, 6), []
    product.register_forward_pre_hook(lambda module, given: into.append(given[0].dtype))
    with torch.autocast("cpu", torch.bfloat16):
        output = layer(X_BTD, product)
    assert output.dtype is torch.float32
    rounded = layer.norm.only_multiplied and native.kernels() is not None
    assert into == [torch.bfloat16 if rounded else torch.float32]
    assert layer.norm.only_multiplied == (norm == "pre")
    layer(X_BTD, product)
    assert into[-1] is torch.float32, "outside of autocast nothing is"


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_stream_stays_fp32_when_the_sublayer_is_rounded(norm: NormPlacement) -> None:
    output = residual(norm)(X_BTD, lambda x_BTD: x_BTD.bfloat16())
    assert output.dtype == torch.float32
