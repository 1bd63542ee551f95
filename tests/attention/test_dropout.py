"""Dropout eight elements a draw."""

import sys

import pytest
import torch

from transduce.attention.dropout import Dropout, add_dropped, dropout
from transduce.kernels.native import dropout as native

pytestmark = pytest.mark.usefixtures("either_way")


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.9])
def test_share_scale_and_mean(rate: float) -> None:
    torch.manual_seed(0)
    count = 1_000_000
    y = dropout(torch.ones(count), rate)
    exact = round(rate * 256) / 256
    deviation = (exact * (1 - exact) / count) ** 0.5
    assert (y == 0).float().mean().item() == pytest.approx(exact, abs=5 * deviation)
    assert torch.equal(y[y != 0].unique(), torch.tensor([1 / (1 - exact)]))
    assert y.double().mean().item() == pytest.approx(1, abs=5 * deviation / (1 - exact))


def test_neighbours_are_independent() -> None:
    # Eight elements share a draw: no two places within it may be kept or dropped together.
    torch.manual_seed(0)
    kept_N8 = (dropout(torch.ones(400_000), 0.5) != 0).double().view(-1, 8)
    correlation_88 = torch.corrcoef(kept_N8.T) - torch.eye(8)
    assert correlation_88.abs().max() < 5 / len(kept_N8) ** 0.5
    assert torch.corrcoef(torch.stack((kept_N8[:-1, 7], kept_N8[1:, 0])))[0, 1].abs() < 5 / len(kept_N8) ** 0.5


def test_every_byte_is_as_likely() -> None:
    # A rate of 1/256 drops one byte value alone.
    torch.manual_seed(0)
    dropped = (dropout(torch.ones(1_000_000), 1 / 256) == 0).float().mean().item()
    assert dropped == pytest.approx(1 / 256, rel=0.1)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (8,), (9,), (2, 3, 5), (0,), (3, 0)])
def test_any_shape(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    y = dropout(torch.ones(shape), 0.5)
    assert y.shape == shape
    assert set(y.flatten().tolist()) <= {0.0, 2.0}


def test_the_seed_decides() -> None:
    x = torch.randn(999)
    torch.manual_seed(3)
    first = dropout(x, 0.3)
    assert not torch.equal(first, dropout(x, 0.3))
    torch.manual_seed(3)
    assert torch.equal(first, dropout(x, 0.3))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_gradient_is_masked_as_the_output_was(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 33).abs().add(1).to(dtype).requires_grad_()
    y = dropout(x, 0.4)
    incoming = torch.randn(4, 33).to(dtype)
    y.backward(incoming)
    assert x.grad is not None
    assert x.grad.dtype == y.dtype == dtype
    kept = (y != 0).to(dtype)
    scale = 256 / (256 - round(0.4 * 256))
    torch.testing.assert_close(y, x * kept * scale)
    torch.testing.assert_close(x.grad, incoming * kept * scale)


def test_the_input_and_the_incoming_gradient_are_left_alone() -> None:
    x = torch.ones(64, requires_grad=True)
    incoming = torch.ones(64)
    dropout(x, 0.5).backward(incoming)
    assert (x == 1).all()
    assert (incoming == 1).all()


def test_rate_0_is_the_input_itself() -> None:
    x = torch.randn(5)
    state = torch.get_rng_state()
    assert dropout(x, 0.0) is x
    assert torch.equal(torch.get_rng_state(), state)  # and draws nothing


def test_the_highest_rates_still_keep_something() -> None:
    torch.manual_seed(0)
    y = dropout(torch.ones(100_000), 0.999)
    assert y.isfinite().all()
    assert y.mean().item() == pytest.approx(1, abs=0.3)


def test_the_module_drops_only_while_training() -> None:
    module = Dropout(0.5)
    x = torch.ones(100)
    assert (module(x) == 0).any()
    module.eval()
    assert module(x) is x
    assert repr(module) == "Dropout(rate=0.5)"


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("shape", [(5,), (3, 4099), (2, 3, 8)])
def test_added_to_what_goes_past_it(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    x, f = torch.randn(shape, requires_grad=True), torch.randn(shape).to(dtype).requires_grad_()
    y = add_dropped(x, f, 0.3)
    incoming = torch.randn(shape)
    y.backward(incoming)
    scale = 256 / (256 - round(0.3 * 256))
    kept = (y != x).float()
    assert y.dtype is torch.float32
    assert 0 < kept.mean() < 1
    torch.testing.assert_close(y, x + scale * kept * f, rtol=1e-5, atol=2e-2 if dtype is torch.bfloat16 else 1e-5)
    assert x.grad is not None
    assert f.grad is not None
    assert torch.equal(x.grad, incoming)
    torch.testing.assert_close(f.grad, (incoming * kept * scale).to(dtype))


def test_added_whole_at_rate_0() -> None:
    x, f = torch.randn(3, 5), torch.randn(3, 5)
    assert torch.equal(add_dropped(x, f, 0.0), x + f)


def _bytes_of(seed: int, count: int) -> torch.Tensor:
    """SplitMix64 (Steele, Lea and Flood 2014) by a slow loop, its numbers as bytes, the lowest first."""
    mask, found = 2**64 - 1, bytearray()
    for word in range(1, count // 8 + 2):
        mixed = (seed + word * 0x9E3779B97F4A7C15) & mask
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & mask
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & mask
        found += (mixed ^ (mixed >> 31)).to_bytes(8, sys.byteorder)
    return torch.frombuffer(found, dtype=torch.uint8)[:count]


@pytest.mark.parametrize("count", [1, 8, 4096, 9001])
def test_the_kernel_drops_what_its_seed_says(count: int) -> None:
    x, f = torch.randn(count), torch.randn(count)
    if not native.can_drop(f, x):
        pytest.skip("tests the kernel, which is switched off or missing")
    torch.manual_seed(count)
    seed = int(torch.empty((), dtype=torch.int64).random_())
    expected = f * (_bytes_of(seed, count) >= 77) * torch.tensor(256 / (256 - 77))
    torch.manual_seed(count)
    assert torch.equal(native.dropped(f, 77), expected)
    torch.manual_seed(count)
    torch.testing.assert_close(native.add_dropped(x, f, 77), x + expected)
