"""An encoder's pass in one call, against the same by torch's operators."""

from typing import Any, get_args

import pytest
import torch
from torch import Tensor

from transduce.attention import capture
from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.fused.pack import pack_all
from transduce.fused.spec import ACTIVATIONS as KERNELS
from transduce.fused.stack import OnePass
from transduce.kernels.matmul import Precision
from transduce.kernels.native.linear import Packed
from transduce.kernels.native.tensors import can_pack
from transduce.layers.feedforward import Activation, FeedForward
from transduce.models.transformer import Transformer, TransformerConfig

pytestmark = pytest.mark.usefixtures("kernels")
LENGTHS = [7, 3, 1, 9, 5]


def model_of(**table: Any) -> Transformer:
    torch.manual_seed(3)
    plain = {"d_model": 24, "heads": 3, "feed_forward": 40, "encoder_layers": 3, "decoder_layers": 1}
    model = Transformer(TransformerConfig.model_validate({**plain, **table}), Specs.of_tokens(31, 31)).eval()
    for weight in model.parameters():
        weight.data.mul_(1.5)
    return model


def sources(lengths: list[int] = LENGTHS) -> Padded:
    torch.manual_seed(4)
    return Padded(torch.randint(31, (len(lengths), max(lengths))), torch.tensor(lengths))


@torch.inference_mode()
def encoded(model: Transformer, source: Padded) -> Tensor:
    return model.encode(source).values


def in_one_pass(model: Transformer, source: Padded) -> Tensor:
    """As `encoded`; not a single block is asked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(model.encoder), "forward", lambda *given: pytest.fail("the blocks were asked"))
        return encoded(model, source)


TABLES = [{}, {"norm": "post"}, {"positions": "learned"}, {"positions": "none"}, {"heads": 1}, {"encoder_layers": 1}]
TABLES += [{"positions": "rotary"}, {"positions": "rotary", "heads": 1}]
ACTIVATIONS = get_args(Activation)
EXTREMES = [0.0, -0.0, 1e-30, -1e-30, 0.5, -3.9, 4.1, -6.0, 20.0, -89.0, 1e4, -1e4, torch.inf, torch.nan]


@pytest.mark.parametrize("table", TABLES, ids=str)
@pytest.mark.parametrize("lengths", [LENGTHS, [6, 6], [4], [150, 60]], ids=str)
def test_it_gives_what_torch_gives(lengths: list[int], table: dict[str, Any]) -> None:
    model, source = model_of(**table), sources(lengths)
    expected = encoded(model, source)  # not packed yet: by torch's operators
    pack_all(model)
    found, real = in_one_pass(model, source), source.mask()
    torch.testing.assert_close(found[real], expected[real], rtol=1e-4, atol=5e-5)  # of numbers around 1


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_is_torchs(activation: str) -> None:
    model, source = model_of(activation=activation), sources()
    expected = encoded(model, source)
    pack_all(model)
    found, real = in_one_pass(model, source), source.mask()
    torch.testing.assert_close(found[real], expected[real], rtol=1e-4, atol=5e-5)  # of numbers around 1


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_of_extreme_numbers(name: Activation) -> None:
    x_N1 = torch.tensor(EXTREMES)[:, None]
    activation = FeedForward(1, 1, activation=name).activation
    found = Packed(torch.ones(1, 1))(x_N1, KERNELS[activation])
    torch.testing.assert_close(found, activation(x_N1), equal_nan=True, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_source_gets_the_same_alone(precision: Precision) -> None:
    if precision == "int8" and not can_pack(torch.zeros(1, 1), int8=True):
        pytest.skip("no 8-bit products on this processor")
    model, source = model_of(), sources()
    pack_all(model, precision)
    together = in_one_pass(model, source)
    for row, length in enumerate(LENGTHS):
        alone = Padded(source.values[row : row + 1, :length], source.lengths[row : row + 1])
        assert torch.equal(in_one_pass(model, alone)[0], together[row, :length]), "to the last bit"


def test_threads_change_nothing() -> None:
    model, source = model_of(), sources()
    pack_all(model)
    before = torch.get_num_threads()
    try:
        found = [(torch.set_num_threads(threads), in_one_pass(model, source))[1] for threads in (1, 2)]
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*found)


def test_whoever_looks_on_sees_it() -> None:
    model, source = model_of(), sources()
    pack_all(model)
    with torch.inference_mode(), capture(model) as record:
        model.encode(source)
    assert "encoder.blocks.0.self_attention" in record
    seen: list[Any] = []
    block = model.encoder.blocks[1]  # type: ignore[index]
    for place in (model.encoder, model.encoder.dropout, block, block.feed_forward, block.self_residual.norm):
        hook = place.register_forward_hook(lambda *given: seen.append(given[0]))
        encoded(model, source)
        hook.remove()
        assert place in seen


def test_a_product_that_is_not_packed_any_more_is_asked() -> None:
    model, source = model_of(), sources()
    pack_all(model)
    before = in_one_pass(model, source)
    output = model.encoder.blocks[1].self_attention.output  # type: ignore[index]
    output.packed = None
    with torch.no_grad():
        output.weight.zero_()
    assert (encoded(model, source) - before)[source.mask()].abs().max() > 0.01


@pytest.mark.parametrize("table", [{"positions": "alibi"}, {"normalizer": "sparsemax"}, {"score": "additive"}], ids=str)
def test_what_it_does_not_know_goes_through_the_blocks(table: dict[str, Any]) -> None:
    model, source = model_of(**table), sources()
    expected, real = encoded(model, source), source.mask()
    pack_all(model)
    torch.testing.assert_close(encoded(model, source)[real], expected[real], rtol=1e-4, atol=1e-5)
    with pytest.raises(pytest.fail.Exception, match="the blocks were asked"):
        in_one_pass(model, source)


def test_with_gradients_it_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_of()
    pack_all(model)
    monkeypatch.setattr(OnePass, "__call__", lambda *given: pytest.fail("it was asked"))
    model.encode(sources()).values.sum().backward()
    assert model.encoder.blocks[0].self_attention.query.weight.grad is not None  # type: ignore[index]
