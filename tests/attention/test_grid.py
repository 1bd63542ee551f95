"""Quadratic positions on a grid (Cordonnier et al. 2020)."""

import pytest
import torch
from torch.nn import functional

from transduce.attention import MultiHeadAttention
from transduce.attention.convolution import Quadratic

ROWS, COLUMNS = 4, 5


def test_scores_are_the_papers_one_pair_of_cells_at_a_time() -> None:
    torch.manual_seed(0)
    positions = Quadratic(2, COLUMNS)
    torch.nn.init.normal_(positions.sharpness_H)
    scores_HTS = positions.scores(ROWS * COLUMNS, ROWS * COLUMNS)
    for h in range(2):
        a, (c1, c2) = positions.sharpness_H[h].item(), positions.centre_H2[h].tolist()
        v = (-a, 2 * a * c1, 2 * a * c2)
        for t in range(ROWS * COLUMNS):
            for s in range(ROWS * COLUMNS):
                d1, d2 = s // COLUMNS - t // COLUMNS, s % COLUMNS - t % COLUMNS
                r = (d1**2 + d2**2, d1, d2)
                expected = sum(x * y for x, y in zip(v, r, strict=True))
                assert scores_HTS[h, t, s].item() == pytest.approx(expected, abs=1e-5)


def test_weights_are_a_window_around_the_centre() -> None:
    # -a |d - D|^2 up to a constant.
    positions = Quadratic(1, COLUMNS).double()
    with torch.no_grad():
        positions.centre_H2.copy_(torch.tensor([[0.5, -1.25]]))
        positions.sharpness_H.fill_(0.7)
    cell_S2 = torch.cartesian_prod(torch.arange(ROWS), torch.arange(COLUMNS)).double()
    apart_TS2 = cell_S2 - cell_S2[:, None] - positions.centre_H2[0]
    expected_TS = (-0.7 * apart_TS2.square().sum(-1)).softmax(-1)
    torch.testing.assert_close(positions.weights(ROWS * COLUMNS, ROWS * COLUMNS)[0], expected_TS)


def test_nine_sharp_heads_at_the_shifts_of_a_3_by_3_kernel_are_a_convolution() -> None:
    torch.manual_seed(0)
    channels, out = 4, 6
    kernel, picture = torch.randn(out, channels, 3, 3).double(), torch.randn(1, channels, ROWS, COLUMNS).double()
    positions = Quadratic(9, COLUMNS).double()
    with torch.no_grad():
        positions.centre_H2.copy_(torch.cartesian_prod(torch.arange(-1, 2), torch.arange(-1, 2)))
        positions.sharpness_H.fill_(60.0)
    x_SC = picture.flatten(2)[0].T
    alpha_HTS = positions.weights(len(x_SC), len(x_SC))
    matrices = kernel.flatten(2).permute(2, 1, 0)  # of head h: W_h, C x out
    attended = sum(alpha_HTS[h] @ x_SC @ matrices[h] for h in range(9))
    inside = (slice(None), slice(1, ROWS - 1), slice(1, COLUMNS - 1))
    expected = functional.conv2d(picture, kernel, padding=1)[0]
    torch.testing.assert_close(attended.T.unflatten(-1, (ROWS, COLUMNS))[inside], expected[inside], rtol=0, atol=1e-8)


def test_in_multi_head_attention_with_queries_of_0_positions_alone_decide() -> None:
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2, positions=Quadratic(2, COLUMNS))
    torch.nn.init.zeros_(attention.query.weight)
    x_BSD = torch.randn(1, ROWS * COLUMNS, 8)
    output = attention(x_BSD, attention.keys_values(x_BSD))
    assert isinstance(attention.positions, Quadratic)
    alpha_HTS = attention.positions.weights(ROWS * COLUMNS, ROWS * COLUMNS)
    value_HSE = attention.keys_values(x_BSD).value[0]
    expected = attention.output((alpha_HTS @ value_HSE).transpose(0, 1).flatten(1))
    torch.testing.assert_close(output[0], expected)
    output.square().sum().backward()
    assert attention.positions.centre_H2.grad is not None
    assert (attention.positions.centre_H2.grad != 0).all()
    assert (attention.positions.sharpness_H.grad != 0).all()


def test_a_part_of_the_queries_sees_what_the_whole_sees() -> None:
    positions = Quadratic(2, COLUMNS)
    whole, part = positions.scores(20, 20), positions.scores(3, 20, offset=9)
    torch.testing.assert_close(part, whole[:, 9:12])
