"""Subsampled frames: the convolutions against a slow loop, and what models that read frames promise."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.core.registry import resolve
from transduce.data.columns import ColumnSpec, Specs
from transduce.fused.pack import pack_all
from transduce.layers.subsampling import GeluSubsampling, Subsampling

FEATURES, WORDS = 6, 9
SPECS = Specs(ColumnSpec("frames", FEATURES), ColumnSpec("tokens", WORDS))
STACK: dict[str, Any] = {"d_model": 8, "heads": 2, "feed_forward": 12, "encoder_layers": 2}
READERS: dict[str, dict[str, Any]] = {
    "transformer": {**STACK, "decoder_layers": 2},
    "ctc": {**STACK, "decoder_layers": 1, "places": 1},
    "rnn": {"d_model": 8, "hidden": 12},
}
every_reader = pytest.mark.parametrize("name", READERS)
every_stepper = pytest.mark.parametrize("name", [name for name in READERS if name != "ctc"])


def built(name: str, **settings: Any) -> Any:
    torch.manual_seed(0)
    kind = resolve("models", name)
    model: nn.Module = kind(kind.Config.model_validate({**READERS[name], **settings}), SPECS)
    return model.eval()


def frames(lengths: list[int], seed: int = 1) -> Padded:
    """Behind the ends stands what no model may read."""
    values = torch.randn(len(lengths), max(lengths), FEATURES, generator=torch.Generator().manual_seed(seed))
    padded = Padded(values, torch.tensor(lengths))
    return Padded(values.masked_fill(~padded.mask()[..., None], torch.nan), padded.lengths)


def logits(model: Any, source: Padded, target: Padded) -> Tensor:
    found: Tensor = model.align(source).values if hasattr(model, "align") else model(source, target)
    return found


def slow(layer: Subsampling, frames_SF: Tensor) -> Tensor:
    """The equations, one output at a time."""
    rows = list(frames_SF)
    for convolution in layer.convolutions:
        stride, made = convolution.stride[0], []
        for centre in range(0, len(rows), stride):
            total, kernel = convolution.bias.clone(), convolution.kernel_size[0]
            for place in range(kernel):
                at = centre + place - kernel // 2
                if 0 <= at < len(rows):
                    total = total + convolution.weight[:, :, place] @ rows[at]
            made.append(_active(layer, total))
        rows = made
    found = torch.stack(rows)
    return found if type(layer) is GeluSubsampling else nn.functional.layer_norm(found, (rows[0].shape[0],))


def _active(layer: Subsampling, x: Tensor) -> Tensor:
    if type(layer) is GeluSubsampling:
        return x * 0.5 * (1 + torch.erf(x / 2**0.5))
    value, gate = x.chunk(2)
    return value * gate.sigmoid()


@pytest.mark.parametrize("factor", [1, 2, 4, 8])
@pytest.mark.parametrize("length", [1, 2, 7, 16, 17])
@pytest.mark.parametrize("kind", [Subsampling, GeluSubsampling])
def test_it_is_the_slow_loop(kind: type[Subsampling], factor: int, length: int) -> None:
    torch.manual_seed(factor)
    layer, source = kind(FEATURES, 4, factor), frames([length, 20])
    found = layer(source)
    assert found.lengths.tolist() == [-(-length // factor), -(-20 // factor)]
    for row in range(2):
        wanted = slow(layer, source.values[row, : int(source.lengths[row])])
        assert torch.allclose(found.values[row, : len(wanted)], wanted, atol=1e-5)


@every_reader
def test_padding_changes_nothing(name: str) -> None:
    model, source = built(name), frames([30, 7, 16])
    target = Padded(torch.randint(4, WORDS, (3, 5), generator=torch.Generator().manual_seed(2)), torch.tensor([5] * 3))
    encoded = model.encode(source)
    assert encoded.lengths.tolist() == [8, 2, 4]
    together = logits(model, source, target)
    for row, length in enumerate([30, 7, 16]):
        one = Padded(source.values[row : row + 1, :length], source.lengths[row : row + 1])
        own = model.encode(one).values[0]
        assert torch.allclose(encoded.values[row, : len(own)], own, atol=1e-5)
        alone = logits(model, one, Padded(target.values[row : row + 1], target.lengths[:1]))[0]
        assert torch.allclose(together[row, : len(alone)], alone, atol=1e-5)


@every_stepper
@pytest.mark.parametrize("packed", [False, True])
def test_stepping_is_the_full_pass(name: str, packed: bool) -> None:
    model, source = built(name), frames([30, 7])
    if packed:
        pack_all(model, "fp32")
    ids = torch.randint(4, WORDS, (2, 5), generator=torch.Generator().manual_seed(2))
    with torch.inference_mode():
        full = model(source, Padded(ids, torch.tensor([5, 5]))).log_softmax(-1)
        memory, state = model.start(source, 2)
        for place, token in enumerate(ids.unbind(1)):
            found, state = model.step(token, memory, state)
            assert torch.allclose(found, full[:, place], atol=1e-4)


@every_reader
def test_gradients_reach_every_parameter(name: str) -> None:
    model, source = built(name), frames([30, 7])
    target = Padded(torch.full((2, 4), 5), torch.tensor([4, 4]))
    logits(model, source, target).square().sum().backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in model.parameters())
    assert model.source_embedding.convolutions[0].weight.grad.abs().sum() > 0


def test_the_factor_says_how_many_frames_are_a_position() -> None:
    assert built("transformer", subsampling=8).encode(frames([33])).lengths.tolist() == [5]
    assert built("transformer", front_end="gelu").encode(frames([33])).lengths.tolist() == [17]


@pytest.mark.parametrize("name", ["convolution", "ssru_transformer", "linear_transformer", "non_autoregressive"])
def test_models_of_tokens_refuse_frames(name: str) -> None:
    kind = resolve("models", name)
    with pytest.raises(InputError, match=r'reads tokens.*expected "transformer", "rnn" or "ctc"'):
        kind(kind.Config(), SPECS)


def test_nothing_can_be_copied_from_frames() -> None:
    for name in ("transformer", "rnn"):
        with pytest.raises(InputError, match="pointer copies source words"):
            built(name, pointer=True)


@every_reader
def test_tokens_are_not_subsampled(name: str) -> None:
    kind = resolve("models", name)
    with pytest.raises(InputError, match=r"model\.subsampling is for a source of frames"):
        kind(kind.Config.model_validate({**READERS[name], "subsampling": 4}), Specs.of_tokens(9, 9))
    with pytest.raises(InputError, match=r"model\.front_end is for a source of frames"):
        kind(kind.Config.model_validate({**READERS[name], "front_end": "gelu"}), Specs.of_tokens(9, 9))
