"""The position-wise feed-forward layer."""

import math
from collections.abc import Callable
from typing import get_args

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.layers.feedforward import Activation, FeedForward


def test_equals_two_convolutions_of_width_1() -> None:
    torch.manual_seed(0)
    layer = FeedForward(6, 10)
    nn.init.normal_(layer.inner.bias)
    first, second = nn.Conv1d(6, 10, 1), nn.Conv1d(10, 6, 1)
    with torch.no_grad():
        for convolution, linear in ((first, layer.inner), (second, layer.outer)):
            convolution.weight.copy_(linear.weight[:, :, None])
            convolution.bias.copy_(linear.bias)
    x_BTD = torch.randn(2, 5, 6)
    torch.testing.assert_close(layer(x_BTD), second(first(x_BTD.mT).relu()).mT)


def test_every_position_is_on_its_own() -> None:
    torch.manual_seed(0)
    layer, x_BTD = FeedForward(6, 10), torch.randn(2, 5, 6)
    torch.testing.assert_close(layer(x_BTD)[:, 3:4], layer(x_BTD[:, 3:4]))


def test_dropout_falls_on_the_hidden_layer() -> None:
    torch.manual_seed(0)
    layer = FeedForward(4, 1000, dropout=0.5)
    nn.init.ones_(layer.inner.bias)
    nn.init.zeros_(layer.inner.weight)
    nn.init.constant_(layer.outer.weight, 1 / 1000)
    read = layer(torch.zeros(1, 50, 4))
    assert 0.9 < read.mean() < 1.1
    assert read.std() > 0
    assert (layer.eval()(torch.zeros(1, 50, 4)) - 1).abs().max() < 1e-5


# From the formulas of Shazeer 2020, section 2, and So et al. 2021, one number at a time.
def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def gelu(x: float) -> float:
    return x * (1 + math.erf(x / math.sqrt(2))) / 2


def gelu_tanh(x: float) -> float:
    return x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2


SLOW: dict[Activation, Callable[[float, float], float]] = {
    "relu": lambda x, _: max(0.0, x),
    "gelu": lambda x, _: gelu(x),
    "gelu_tanh": lambda x, _: gelu_tanh(x),
    "swish": lambda x, _: x * sigmoid(x),
    "squared_relu": lambda x, _: max(0.0, x) ** 2,
    "glu": lambda x, v: sigmoid(x) * v,
    "geglu": lambda x, v: gelu(x) * v,
    "geglu_tanh": lambda x, v: gelu_tanh(x) * v,
    "swiglu": lambda x, v: x * sigmoid(x) * v,
}


def randomised(activation: Activation) -> FeedForward:
    torch.manual_seed(0)
    layer = FeedForward(3, 5, activation=activation)
    for parameter in layer.parameters():
        nn.init.normal_(parameter)
    return layer


@pytest.mark.parametrize("activation", get_args(Activation))
def test_one_number_at_a_time(activation: Activation) -> None:
    layer = randomised(activation)
    x = [0.3, -1.2, 0.7]

    def mapped(linear: nn.Linear, values: list[float]) -> list[float]:
        rows, biases = linear.weight.tolist(), linear.bias.tolist()
        return [sum(w * v for w, v in zip(row, values, strict=True)) + b for row, b in zip(rows, biases, strict=True)]

    inner = mapped(layer.inner, x)
    beside = mapped(layer.linear, x) if layer.linear is not None else inner
    hidden = [SLOW[activation](a, b) for a, b in zip(inner, beside, strict=True)]
    assert layer(torch.tensor([[x]])).flatten().tolist() == pytest.approx(mapped(layer.outer, hidden), abs=1e-5)


def as_convolutions(layer: FeedForward, x_BTD: Tensor) -> Tensor:
    """The output (B, T, D) of `layer` in prediction, computed by convolutions of width 1 with its weights.

    A layer that transforms each position separately is a convolution over one position.
    """

    def convolved(linear: nn.Linear, x_BDT: Tensor) -> Tensor:
        return F.conv1d(x_BDT, linear.weight[:, :, None], linear.bias)

    hidden_BHT = layer.activation(convolved(layer.inner, x_BTD.mT))
    if layer.linear is not None:
        hidden_BHT = hidden_BHT * convolved(layer.linear, x_BTD.mT)
    return convolved(layer.outer, hidden_BHT).mT


@pytest.mark.parametrize("activation", get_args(Activation))
def test_as_convolutions_is_the_same_layer(activation: Activation) -> None:
    layer, x_BTD = randomised(activation), torch.randn(2, 4, 3)
    torch.testing.assert_close(as_convolutions(layer, x_BTD), layer(x_BTD))


@pytest.mark.parametrize("activation", get_args(Activation))
def test_gradients_are_right(activation: Activation) -> None:
    layer = randomised(activation).double()
    assert torch.autograd.gradcheck(layer, (torch.randn(1, 2, 3, dtype=torch.float64, requires_grad=True),))


def test_two_thirds_of_the_width_make_a_gated_layer_of_equal_size() -> None:
    def size(layer: FeedForward) -> int:
        return sum(weight.numel() for weight in layer.parameters() if weight.ndim == 2)

    assert size(FeedForward(8, 24, activation="swiglu")) == size(FeedForward(8, 36))
