"""The position-wise feed-forward layer."""

import torch
from torch import nn

from transduce.layers.feedforward import FeedForward


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
