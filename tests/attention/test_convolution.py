"""Self-attention contains convolution: a layer built from any kernel equals it, and heads find the grid by learning."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from scripts import loaded
from transduce.attention import capture
from transduce.attention.convolution import PixelAttention, QuadraticPositions, from_convolution, quadratic_scores
from transduce.core.errors import InputError


def image(channels: int = 3) -> Tensor:
    torch.manual_seed(0)
    return torch.randn(2, channels, 9, 11)


@pytest.mark.parametrize("size", [1, 3, 5, (3, 5)])
@pytest.mark.parametrize(
    "settings",
    [{}, {"padding_mode": "replicate"}, {"bias": False}, {"dilation": 2}],
    ids=["zeros", "replicate", "no bias", "dilated"],
)
def test_the_layer_equals_the_convolution_everywhere_also_at_the_border(size: Any, settings: dict[str, Any]) -> None:
    torch.manual_seed(1)
    convolution = nn.Conv2d(3, 7, size, padding="same", **settings)
    layer = from_convolution(convolution)
    torch.testing.assert_close(layer(image()), convolution(image()), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_without_padding_the_interior_is_equal(size: int) -> None:
    torch.manual_seed(1)
    convolution = nn.Conv2d(3, 7, size)
    edge = size // 2
    interior = from_convolution(convolution)(image())[:, :, edge : 9 - edge, edge : 11 - edge]
    torch.testing.assert_close(interior, convolution(image()), rtol=1e-5, atol=1e-5)


def test_a_head_for_each_pixel_of_the_kernel_looks_at_it_alone() -> None:
    layer = from_convolution(nn.Conv2d(3, 4, 3, padding=1))
    with capture(layer) as record:
        layer(image())
    (alpha_BHNK,) = record[""]
    assert alpha_BHNK.shape == (2, 9, 9 * 11, 11 * 13)
    shift = [int(row) * 13 + int(column) for row, column in layer.positions.centre_H2]
    for head in range(9):
        looked_N = alpha_BHNK[0, head].argmax(-1).view(9, 11)
        own_N = (torch.arange(9)[:, None] + 1) * 13 + torch.arange(11) + 1
        assert torch.equal(looked_N, own_N + shift[head])
    assert alpha_BHNK.amax(-1).min() > 1 - 1e-6


def test_scores_are_the_squared_distances_from_the_centre() -> None:
    torch.manual_seed(0)
    centre, alpha = torch.randn(2, 2), torch.rand(2)
    query, key = torch.randn(4, 2), torch.randn(5, 2)
    scores = quadratic_scores(centre, alpha, query, key)
    for h in range(2):
        for n in range(4):
            for k in range(5):
                offset = key[k] - query[n]
                expected = -alpha[h] * ((offset - centre[h]).square().sum() - centre[h].square().sum())
                torch.testing.assert_close(scores[h, n, k], expected)


def test_gradients() -> None:
    torch.manual_seed(0)
    layer = PixelAttention(2, 1, 2, border=1).double()
    pixels = torch.randn(1, 2, 2, 2, dtype=torch.float64, requires_grad=True)

    def run(pixels: Tensor, *parameters: Tensor) -> Tensor:
        named = dict(zip(dict(layer.named_parameters()), parameters, strict=True))
        output: Tensor = torch.func.functional_call(layer, named, pixels)
        return output

    assert torch.autograd.gradcheck(run, (pixels, *layer.parameters()))


def test_the_score_alone_is_a_module() -> None:
    positions = QuadraticPositions(3)
    assert {name: tuple(each.shape) for name, each in positions.named_parameters()} == {
        "centre_H2": (3, 2),
        "alpha_H": (3,),
    }


def test_all_problems_of_a_convolution_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        from_convolution(nn.Conv2d(4, 4, 2, stride=2, groups=2, padding=3, padding_mode="reflect"))
    assert len(caught.value.problems) == 4


def test_heads_that_imitate_a_convolution_move_to_its_pixels() -> None:
    # The script of docs/figures/grid-heads.svg; all nine heads find a pixel of their own with 9 of 10 seeds.
    script = loaded("docs/make_grid_heads.py")
    before, after, missed = script.train(seed=0)
    distance, pixel = after.nearest()
    assert before.nearest()[0].max() > 1
    assert distance.max() < 0.15
    assert sorted(pixel.tolist()) == list(range(9))
    assert missed < 0.01
