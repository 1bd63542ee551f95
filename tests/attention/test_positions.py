"""Where a token stands."""

import math

import pytest
import torch
from torch import Tensor, nn

from transduce.attention.positions import (
    Learned,
    NoPositions,
    Sinusoidal,
    clock,
    dot_products,
    frequencies,
    rotate,
    sinusoidal,
    tensor2tensor,
    turn,
)
from transduce.core.errors import InputError

# sin and cos of t and of t / 100, t = 0 .. 3, to six digits.
GOLDEN_D4 = [
    [0, 1, 0, 1],
    [0.841471, 0.540302, 0.01, 0.99995],
    [0.909297, -0.416147, 0.019999, 0.9998],
    [0.14112, -0.989992, 0.029996, 0.99955],
]


def test_golden_table_of_width_4() -> None:
    assert [[round(value, 6) for value in row] for row in sinusoidal(4, 4).double().tolist()] == GOLDEN_D4


def test_tensor2tensor_equals_a_loop() -> None:
    """timing_signal_1d of Tensor2Tensor's common_attention.py, one number at a time."""
    table_TD = tensor2tensor(5, 8, 3)
    for row, position in enumerate(range(3, 8)):
        for place in range(4):
            angle = position / 10000 ** (place / 3)
            assert table_TD[row, place].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table_TD[row, 4 + place].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_positions_may_begin_later() -> None:
    x_BTD = torch.zeros(1, 600, 8)
    later = Sinusoidal(8, 2, tensor2tensor)
    torch.testing.assert_close(later(x_BTD), tensor2tensor(600, 8, 2)[None])
    torch.testing.assert_close(later(x_BTD[:, :3], 7), tensor2tensor(3, 8, 9)[None])
    torch.testing.assert_close(Sinusoidal(8, 1)(x_BTD), Sinusoidal(8)(torch.zeros(1, 601, 8))[:, 1:])


def test_golden_dot_products_of_width_512() -> None:
    table_TD = sinusoidal(600, 512).double()
    for start in (0, 17, 500):
        dots = (table_TD[start : start + 6] @ table_TD[start]).tolist()
        assert [round(dot, 3) for dot in dots] == [256, 249.102, 231.734, 211.749, 196.688, 189.597]


@pytest.mark.parametrize(("width", "rises_after"), [(64, 5), (512, 43)])
def test_nearer_is_not_always_more_alike(width: int, rises_after: int) -> None:
    # The nearest neighbour has the largest product; further on, products do not fall for ever.
    dots = sinusoidal(100, width).double() @ sinusoidal(1, width)[0].double()
    assert dots.argmax() == 0
    assert dots[1:].argmax() == 0
    steps = dots.diff()
    assert (steps[:rises_after] < 0).all()
    assert steps[rises_after] > 0


def test_k_further_on_is_a_fixed_rotation() -> None:
    width, k = 16, 7
    turn_DD = turn(k, width)
    for j, angle in enumerate((k * frequencies(width)).tolist()):  # (sin, cos) turned by it
        block = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
        torch.testing.assert_close(turn_DD[2 * j : 2 * j + 2, 2 * j : 2 * j + 2].tolist(), block)
    torch.testing.assert_close(turn_DD @ turn_DD.T, torch.eye(width, dtype=torch.float64))
    table_TD = sinusoidal(200, width).double()
    torch.testing.assert_close(table_TD[:-k] @ turn_DD.T, table_TD[k:], rtol=0, atol=1e-6)


@pytest.mark.parametrize("k", [-3, 0, 1, 50])
def test_one_turn_fits_all_positions(k: int) -> None:
    table_TD = sinusoidal(150, 12).double()
    torch.testing.assert_close(table_TD[60:100] @ turn(k, 12).T, table_TD[60 + k : 100 + k], rtol=0, atol=1e-6)
    torch.testing.assert_close(turn(k, 12) @ turn(5, 12), turn(k + 5, 12))


def test_a_clock_whose_hands_go_at_their_own_speeds() -> None:
    angle_TJ = clock(1000, 8, offset=3)
    assert angle_TJ.shape == (1000, 4)
    assert angle_TJ.min() >= 0
    assert angle_TJ.max() < 2 * math.pi
    torch.testing.assert_close(angle_TJ[:3, 0], torch.tensor([3.0, 4.0, 5.0]).double())
    torch.testing.assert_close(angle_TJ[10, 0].item(), 13 - 4 * math.pi)
    torch.testing.assert_close(angle_TJ[997, 1].item(), 100 % (2 * math.pi))  # of 1/10 a position
    encoding_TD = torch.stack((angle_TJ.sin(), angle_TJ.cos()), -1).flatten(1)
    torch.testing.assert_close(encoding_TD.float(), sinusoidal(1000, 8, offset=3), rtol=0, atol=1e-6)


@pytest.mark.parametrize("width", [4, 64, 512])
def test_dot_products_for_the_picture(width: int) -> None:
    product_TT = dot_products(100, width)
    assert (product_TT.diagonal() == 0).all()
    torch.testing.assert_close(product_TT, product_TT.T)
    for k in range(1, 100):  # of the distance alone: the sum of the cosines of the hands' angles
        expected = (k * frequencies(width)).cos().sum()
        torch.testing.assert_close(product_TT.diagonal(k), expected.expand(100 - k), rtol=0, atol=1e-4)
    if width == 512:
        assert [round(each, 3) for each in product_TT[0, 1:6].tolist()] == [249.102, 231.734, 211.749, 196.688, 189.597]
    if width > 4:
        nearest = product_TT.argmax(0)
        assert ((nearest - torch.arange(100)).abs() == 1).all()


@pytest.mark.parametrize("width", [4, 64, 512])
def test_a_position_times_itself_is_half_the_width(width: int) -> None:
    table_TD = sinusoidal(50, width).double()
    torch.testing.assert_close(table_TD.square().sum(1), torch.full((50,), width / 2).double(), rtol=0, atol=1e-5)


def test_wavelengths_run_from_2_pi_to_10000_times_that() -> None:
    speeds = frequencies(512)
    assert speeds[0] == 1
    assert speeds[-1].item() == pytest.approx(10_000 ** (-510 / 512))
    ratios = speeds[1:] / speeds[:-1]
    torch.testing.assert_close(ratios, ratios[:1].expand_as(ratios))


def test_far_positions_are_exact() -> None:
    # Angles are taken in fp64: at position 10^6 fp32 would be a few hundredths of a radian off.
    far = sinusoidal(1, 8, offset=1_000_003)[0].double()
    expected = torch.tensor(1_000_003, dtype=torch.float64) * frequencies(8)
    torch.testing.assert_close(far[0::2], expected.sin(), rtol=0, atol=1e-7)
    torch.testing.assert_close(far[1::2], expected.cos(), rtol=0, atol=1e-7)


@pytest.mark.parametrize("positions", [Sinusoidal(8), Learned(8, 1200), NoPositions()])
def test_an_offset_is_a_slice(positions: nn.Module) -> None:
    x_BTD = torch.randn(2, 1100, 8)  # past the table that Sinusoidal starts with
    whole = positions(x_BTD)
    for offset, end in ((0, 3), (5, 6), (510, 515), (1090, 1100)):
        assert torch.equal(positions(x_BTD[:, offset:end], offset), whole[:, offset:end])


def test_sinusoidal_adds_its_table_however_it_grew() -> None:
    positions = Sinusoidal(6)
    zero_BTD = torch.zeros(1, 1, 6)
    for offset in (0, 511, 512, 4000, 100):
        assert torch.equal(positions(zero_BTD, offset)[0], sinusoidal(1, 6, offset))
    assert dict(positions.named_parameters()) == {}
    assert positions.state_dict() == {}


def test_learned_is_a_matrix_times_the_positions_one_hot_vector() -> None:
    # [W^I W^P][x; onehot] = W^I x + W^P[:, position]
    torch.manual_seed(0)
    positions = Learned(4, 6)
    w_input_DD, x_BTD = torch.randn(4, 4), torch.randn(1, 6, 4)
    joined_DX = torch.cat((w_input_DD, positions.weight_TD.T), 1)
    with_onehot_TX = torch.cat((x_BTD[0], torch.eye(6)), 1)
    torch.testing.assert_close(positions(x_BTD @ w_input_DD.T)[0], with_onehot_TX @ joined_DX.T)


def test_learned_says_where_it_ends() -> None:
    with pytest.raises(InputError, match="learned positions for 6 tokens, but got 7"):
        Learned(4, 6)(torch.zeros(1, 2, 4), offset=5)


def test_no_positions_is_the_input_itself() -> None:
    x_BTD = torch.randn(1, 2, 4)
    assert NoPositions()(x_BTD, 3) is x_BTD


def random_heads(length: int, width: int = 8) -> Tensor:
    return torch.randn(2, 3, length, width, dtype=torch.float64)


def test_rotary_products_depend_on_the_distance_alone() -> None:
    torch.manual_seed(0)
    query, key = random_heads(1), random_heads(1)

    def product(i: int, j: int) -> Tensor:
        return (rotate(query, i) * rotate(key, j)).sum(-1)

    for i, j, shift in ((3, 0, 40), (10, 7, 500), (2, 9, 1), (5, 5, 99)):
        torch.testing.assert_close(product(i, j), product(i + shift, j + shift))
    torch.testing.assert_close(product(6, 6), (query * key).sum(-1))
    assert not torch.allclose(product(3, 0), product(0, 3))  # before and after are told apart


def test_rotary_keeps_lengths_and_leaves_position_0() -> None:
    torch.manual_seed(0)
    x = random_heads(9)
    torch.testing.assert_close(rotate(x, 4).norm(dim=-1), x.norm(dim=-1))
    assert torch.equal(rotate(x)[:, :, 0], x[:, :, 0])


def test_rotary_offset_is_a_slice() -> None:
    torch.manual_seed(0)
    x = random_heads(12)
    torch.testing.assert_close(rotate(x[:, :, 5:], 5), rotate(x)[:, :, 5:])


def test_rotary_is_the_complex_product_of_the_paper() -> None:
    torch.manual_seed(0)
    x = random_heads(5)
    angle_TJ = torch.arange(5).double()[:, None] * frequencies(8)
    turned = torch.view_as_complex(x.unflatten(-1, (4, 2))) * torch.exp(1j * angle_TJ)
    torch.testing.assert_close(rotate(x), torch.view_as_real(turned).flatten(-2))
