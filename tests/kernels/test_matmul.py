"""The fast linear map against torch's own."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.kernels import matmul as module
from transduce.kernels.matmul import BLOCK, Linear, Packed, _by_onednn, can_pack, linear
from transduce.kernels.native import left_out

SHAPES = [(1, 3, 5), (7, 256, 64), (300, 64, 256)]


@pytest.fixture(params=[False, True], ids=["as torch multiplies", "by oneDNN"])
def product(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """Both products, whatever processor the tests run on."""
    if request.param and not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        pytest.skip("this torch has no linear product of oneDNN's")
    monkeypatch.setattr(module, "_mkl_is_slow", lambda: request.param)
    monkeypatch.setattr(module, "SMALL", 0)
    with left_out():
        yield request.param


@pytest.mark.parametrize(("rows", "inputs", "outputs"), SHAPES)
@pytest.mark.parametrize("biased", [True, False])
def test_it_is_torchs_linear_map_and_so_are_its_gradients(
    product: bool, rows: int, inputs: int, outputs: int, biased: bool
) -> None:
    leaves = [torch.randn(2, rows, inputs), torch.randn(outputs, inputs)] + [torch.randn(outputs)] * biased
    dy = torch.randn(2, rows, outputs)

    def results(function: object) -> list[Tensor]:
        mine = [leaf.clone().requires_grad_() for leaf in leaves]
        y: Tensor = function(*mine)  # type: ignore[operator]
        y.backward(dy)
        return [y.detach(), *(leaf.grad for leaf in mine if leaf.grad is not None)]

    got, wanted = results(linear), results(F.linear)
    assert len(got) == len(wanted) == len(leaves) + 1
    for mine, theirs in zip(got, wanted, strict=True):
        assert mine.shape == theirs.shape
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5 * inputs**0.5)


def test_a_gradient_that_nobody_wants_is_not_made(product: bool) -> None:
    weight_OI = torch.randn(4, 3, requires_grad=True)
    x = torch.randn(2, 3)
    linear(x, weight_OI).sum().backward()
    assert weight_OI.grad is not None
    assert x.grad is None


def test_under_autocast_and_in_other_types_it_is_torchs_to_the_bit(product: bool) -> None:
    x, weight_OI = torch.randn(5, 16), torch.randn(8, 16)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(linear(x, weight_OI), F.linear(x, weight_OI))
    assert torch.equal(linear(x.double(), weight_OI.double()), F.linear(x.double(), weight_OI.double()))


def test_a_packed_weight_gives_the_same(product: bool) -> None:
    layer = Linear(64, 48)
    x = torch.randn(3, 5, 64)
    with torch.inference_mode():
        before = layer(x)
        layer.pack()
        assert (layer.packed is not None) == product
        torch.testing.assert_close(layer(x), before)
        torch.testing.assert_close(layer(x[:1, :1]), before[:1, :1])
        assert layer(x[:0]).shape == (0, 5, 48)
        many = torch.randn(7, 11, 64)
        torch.testing.assert_close(layer(many), linear(many, layer.weight, layer.bias))
        torch.testing.assert_close(layer(x.transpose(0, 1)), before.transpose(0, 1))
        blocks = torch.randn(2 * BLOCK + 7, 64)
        torch.testing.assert_close(layer(blocks), F.linear(blocks, layer.weight, layer.bias))


ANY_NUMBER_OF_ROWS = """
import torch
from transduce.layers.embedding import Embedding
from transduce.fused.pack import pack_all
from transduce.kernels.matmul import BLOCK, Linear, make_programs
model = torch.nn.ModuleList([Linear(512, 640), Linear(512, 640, bias=False), Embedding(640, 512)])
pack_all(model)
with torch.inference_mode():
    model[0](torch.zeros(96, 512))
    print("one", flush=True)
    make_programs(model)
    print("made", flush=True)
    for rows in [*range(1, BLOCK, 7), BLOCK, BLOCK + 1, 3 * BLOCK + 100]:
        model[0](torch.zeros(rows, 512)), model[1](torch.zeros(rows, 512)), model[2].logits(torch.zeros(rows, 512))
"""


@pytest.mark.skipif(not _by_onednn(torch.zeros(1)), reason="weights are packed for oneDNN where MKL is slow, not here")
def test_programs_are_made_beforehand_for_any_number_of_rows() -> None:
    told = {**os.environ, "ONEDNN_VERBOSE": "2", "TRANSDUCE_NATIVE": "off"}  # a line for each program that is made
    done = subprocess.run(
        [sys.executable, "-c", ANY_NUMBER_OF_ROWS], check=False, env=told, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    first, then, after = re.split(r"^(?:one|made)$", done.stdout, flags=re.MULTILINE)
    assert "create:cache_miss" in first
    assert then.count("create:cache_miss") > 20
    assert "exec" in after
    assert "create:cache_miss" not in after


def test_the_layer_is_torchs_in_name_and_start() -> None:
    torch.manual_seed(1)
    mine = Linear(6, 4)
    torch.manual_seed(1)
    theirs = torch.nn.Linear(6, 4)
    assert mine.state_dict().keys() == theirs.state_dict().keys()
    assert all(torch.equal(mine.state_dict()[name], theirs.state_dict()[name]) for name in theirs.state_dict())


@pytest.mark.skipif(not can_pack(torch.zeros(8, 8), False), reason="no kernels here")
def test_a_packed_product_is_not_many_times_slower_than_torchs() -> None:
    """A kernel whose sums do not stay in registers takes 30 times as long, and gives the same result."""
    x_NI, weight_OI = torch.randn(256, 512), torch.randn(512, 512)
    packed = Packed(weight_OI)

    def fastest(product: Callable[[], object]) -> float:
        times = []
        for _ in range(9):
            start = time.process_time()
            product()
            times.append(time.process_time() - start)
        return min(times)

    with torch.inference_mode():
        ours, theirs = fastest(lambda: packed(x_NI)), fastest(lambda: torch.nn.functional.linear(x_NI, weight_OI))
    assert ours < 10 * theirs
