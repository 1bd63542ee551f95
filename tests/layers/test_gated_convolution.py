"""Convolutional blocks against torch's conv1d and weight_norm, and against loops written from the paper."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils import parametrizations

from transduce.attention.cross_attention import CrossAttention
from transduce.attention.masks import padding
from transduce.layers.convolution import (
    BlockState,
    ConvolutionSource,
    DecoderBlock,
    EncoderBlock,
    GatedConvolution,
    NormedLinear,
    scale_gradient,
    windows,
)

WIDTH = 6


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(0)


def shaken(module: nn.Module) -> nn.Module:
    """Biases and gains off their start, so that one left out shows."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module.eval()


def decoder_block(kernel: int, score: str = "dot", heads: int = 1) -> DecoderBlock:
    block = DecoderBlock(WIDTH, kernel, 0.1, CrossAttention(score, "softmax", WIDTH, WIDTH, heads))
    shaken(block)
    return block


def source_of(block: DecoderBlock, states_BSD: Tensor, values_BSD: Tensor, lengths: list[int]) -> ConvolutionSource:
    length_B = torch.tensor(lengths)
    real_BS = torch.arange(states_BSD.shape[1]) < length_B[:, None]
    return ConvolutionSource(
        block.reader.remember(states_BSD, values_BSD), padding(real_BS), length_B[:, None, None] ** 0.5
    )


# ---- weight normalisation -------------------------------------------------------------------------------------


def test_weight_norm_equals_torchs_in_value_and_gradient() -> None:
    ours = shaken(NormedLinear(5, 7))
    theirs = parametrizations.weight_norm(nn.Linear(5, 7))
    gain, direction = theirs.parametrizations.weight.original0, theirs.parametrizations.weight.original1
    with torch.no_grad():
        gain.copy_(ours.gain_O[:, None])
        direction.copy_(ours.direction_OI)
        theirs.bias.copy_(ours.bias_O)
    x = torch.randn(3, 4, 5)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-5, atol=1e-6)
    ours(x).square().sum().backward()
    theirs(x).square().sum().backward()
    torch.testing.assert_close(ours.gain_O.grad, gain.grad[:, 0], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.direction_OI.grad, direction.grad, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(ours.bias_O.grad, theirs.bias.grad, rtol=1e-5, atol=1e-5)


def test_at_the_start_the_gain_is_the_length_of_the_direction() -> None:
    linear = NormedLinear(40, 30)
    torch.testing.assert_close(linear(torch.eye(40)), linear.direction_OI.T)
    assert (linear.bias_O == 0).all()


# ---- the gated convolution ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_the_convolution_equals_torchs(kernel: int) -> None:
    gated = shaken(GatedConvolution(WIDTH, kernel))
    linear = parametrizations.weight_norm(nn.Linear(kernel * WIDTH, 2 * WIDTH))
    with torch.no_grad():
        linear.parametrizations.weight.original0.copy_(gated.both.gain_O[:, None])
        linear.parametrizations.weight.original1.copy_(gated.both.direction_OI)
    x_BCD = torch.randn(2, 7, WIDTH)
    weight_OIK = linear.weight.unflatten(1, (kernel, WIDTH)).transpose(1, 2)
    theirs_BOT = F.conv1d(x_BCD.mT, weight_OIK, gated.both.bias_O)
    torch.testing.assert_close(gated(x_BCD), F.glu(theirs_BOT, 1).mT, rtol=1e-5, atol=1e-5)


def test_the_gated_convolution_equals_a_loop() -> None:
    gated = shaken(GatedConvolution(WIDTH, 3))
    direction, gain, bias = gated.both.direction_OI, gated.both.gain_O, gated.both.bias_O
    x_CD = torch.randn(5, WIDTH)
    found_TD = gated(x_CD[None])[0]
    assert found_TD.shape == (3, WIDTH)

    def convolved(start: int, output: int) -> Tensor:
        neighbours_K = torch.cat([x_CD[start], x_CD[start + 1], x_CD[start + 2]])
        return (
            gain[output] * (direction[output] @ neighbours_K) / direction[output].square().sum().sqrt() + bias[output]
        )

    for i in range(3):
        for d in range(WIDTH):
            expected = convolved(i, d) / (1 + (-convolved(i, d + WIDTH)).exp())
            torch.testing.assert_close(found_TD[i, d], expected, rtol=1e-5, atol=1e-5)


def test_windows_are_the_neighbours_side_by_side() -> None:
    x_BCD = torch.arange(8.0).view(1, 4, 2)
    assert windows(x_BCD, 3).tolist() == [[[0, 1, 2, 3, 4, 5], [2, 3, 4, 5, 6, 7]]]


def test_the_start_keeps_the_variance_of_small_inputs_through_the_gate() -> None:
    # Section 3.5: a gated linear unit lets a quarter of a small input's variance through; 4 / n makes up for it.
    x_BCD = 0.1 * torch.randn(8, 64, 64)
    for rate in (0.0, 0.25):
        kept_BCD = x_BCD * (torch.rand_like(x_BCD) >= rate) / (1 - rate)
        assert GatedConvolution(64, 3, rate)(kept_BCD).std().item() == pytest.approx(0.1, rel=0.05)


def test_a_scaled_gradient_leaves_the_value() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    assert torch.equal(scale_gradient(x, 0.125), x)
    scale_gradient(x, 0.125).square().sum().backward()
    assert torch.equal(x.grad, 0.125 * 2 * x.detach())


# ---- blocks ---------------------------------------------------------------------------------------------------


def test_an_encoder_block_equals_a_loop_in_which_padding_is_zeros() -> None:
    block = shaken(EncoderBlock(WIDTH, 3, 0.1))
    x_BSD, lengths = torch.randn(2, 5, WIDTH), [5, 3]
    real_BS1 = (torch.arange(5) < torch.tensor(lengths)[:, None])[..., None]
    found_BSD = block(x_BSD, real_BS1)
    for b, length in enumerate(lengths):
        beside_CD = torch.cat((torch.zeros(1, WIDTH), x_BSD[b, :length], torch.zeros(1, WIDTH)))
        for j in range(length):
            expected_D = (block.convolution(beside_CD[None, j : j + 3])[0, 0] + x_BSD[b, j]) * math.sqrt(0.5)
            torch.testing.assert_close(found_BSD[b, j], expected_D, rtol=1e-5, atol=1e-5)


def test_a_decoder_block_equals_a_loop_from_the_paper() -> None:
    block = decoder_block(kernel=3)
    x_BTD, embedded_BTD = torch.randn(2, 4, WIDTH), torch.randn(2, 4, WIDTH)
    states_BSD, values_BSD, lengths = torch.randn(2, 5, WIDTH), torch.randn(2, 5, WIDTH), [3, 5]
    source = source_of(block, states_BSD, values_BSD, lengths)
    found_BTD, _ = block(x_BTD, embedded_BTD, source, block.empty(2), torch.arange(4)[None])
    for b, length in enumerate(lengths):
        before_CD = torch.cat((torch.zeros(2, WIDTH), x_BTD[b]))
        for i in range(4):
            h_D = block.convolution(before_CD[None, i : i + 3])[0, 0]
            d_D = (block.query(h_D) + embedded_BTD[b, i]) * math.sqrt(0.5)
            mass_S = torch.stack([(d_D @ states_BSD[b, j]).exp() for j in range(length)])
            c_D = sum(mass_S[j] / mass_S.sum() * values_BSD[b, j] for j in range(length)) * math.sqrt(length)
            expected_D = ((h_D + c_D) * math.sqrt(0.5) + x_BTD[b, i]) * math.sqrt(0.5)
            torch.testing.assert_close(found_BTD[b, i], expected_D, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("score", ["dot", "location_aware"])
@pytest.mark.parametrize("pieces", [[1, 1, 1, 1, 1, 1], [2, 1, 3], [4, 2], [1, 5]])
def test_a_decoder_block_goes_on_after_any_number_of_positions(pieces: list[int], score: str) -> None:
    block = decoder_block(kernel=5, score=score)
    x_BTD, embedded_BTD, states_BSD = torch.randn(2, 6, WIDTH), torch.randn(2, 6, WIDTH), torch.randn(2, 4, WIDTH)
    source = source_of(block, states_BSD, states_BSD, [4, 2])
    whole_BTD, last = block(x_BTD, embedded_BTD, source, block.empty(2), torch.arange(6)[None])
    state, found, first = block.empty(2), [], 0
    for count in pieces:
        here = slice(first, first + count)
        position_BT = torch.arange(first, first + count)[None]
        piece_BTD, state = block(x_BTD[:, here], embedded_BTD[:, here], source, state, position_BT)
        found.append(piece_BTD)
        first += count
    torch.testing.assert_close(torch.cat(found, 1), whole_BTD, rtol=1e-5, atol=1e-5)
    assert isinstance(state, BlockState)
    assert state.inputs.shape == (2, 4, WIDTH)
    torch.testing.assert_close(state.inputs, last.inputs)
    assert (state.previous is None) == (score == "dot")


@pytest.mark.parametrize(("score", "heads"), [("dot", 1), ("additive", 2), ("location_aware", 1)])
def test_gradients_of_a_decoder_block(score: str, heads: int) -> None:
    block = decoder_block(3, score, heads).double()
    states_BSD = torch.randn(2, 3, WIDTH, dtype=torch.float64, requires_grad=True)
    x_BTD, embedded_BTD = (torch.randn(2, 2, WIDTH, dtype=torch.float64, requires_grad=True) for _ in range(2))

    def output(x_BTD: Tensor, embedded_BTD: Tensor, states_BSD: Tensor) -> Tensor:
        source = source_of(block, states_BSD, states_BSD + 1, [3, 2])
        return block(x_BTD, embedded_BTD, source, block.empty(2), torch.arange(2)[None])[0]

    assert torch.autograd.gradcheck(output, (x_BTD, embedded_BTD, states_BSD))
