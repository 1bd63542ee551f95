"""Activations that are computed again: the same gradients to the bit, of less memory."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from random_models import translator
from transduce.attention.edges import Edges
from transduce.core.errors import InputError
from transduce.core.model_file import lasting_tensors
from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.layers.recomputation import Recomputable
from transduce.models.graph_transformer import GraphTransformerBlock, GraphTransformerConfig
from transduce.models.qanet import QanetBlock, QanetConfig
from transduce.objectives.text import text_objective
from transduce.training.initialization import recompute_blocks
from transduce.training.memory import activation_bytes
from transduce.training.microbatches import add_gradients, uncut

NOISY: dict[str, Any] = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "dropout": 0.3}
ATTENTIVE = {**NOISY, "heads": 2, "feed_forward": 24}
INNER = {**ATTENTIVE, "inner_dropout": 0.2}
MODELS = {
    "pre-norm": INNER,
    "post-norm, rms": {**INNER, "norm": "post", "norm_kind": "rms"},
    "batch norm": {**INNER, "norm_kind": "batch"},
    "t5": {**INNER, "positions": "t5"},
    "rotary": {**ATTENTIVE, "positions": "rotary", "key_value_heads": 1},
    "ssru": {**INNER, "kind": "ssru_transformer"},
    "linear": {**INNER, "kind": "linear_transformer"},
    "fills": {**INNER, "kind": "non_autoregressive"},
    "convolution": {**NOISY, "kind": "convolution"},
}


def batch(rows: int = 9, longest: int = 11) -> Batch:
    drawn = torch.Generator().manual_seed(3)
    source, target = (
        Padded(
            torch.randint(4, 60, (rows, longest), generator=drawn),
            torch.randint(3, longest + 1, (rows,), generator=drawn),
        )
        for _ in "st"
    )
    return Batch(source, target, int(target.lengths.sum()) - rows)


def made(settings: dict[str, Any], recomputes: bool) -> nn.Module:
    model = translator(model=settings).model.train()
    if recomputes:
        recompute_blocks(model)
    return model


def after_one_batch(settings: dict[str, Any], recomputes: bool, precision: str) -> tuple[float, dict[str, Tensor]]:
    """The loss; gradients, buffers and the generator's next number."""
    model = made(settings, recomputes)
    torch.manual_seed(5)
    given = [batch(), batch(4, 6)]
    loss, _ = add_gradients(model, text_objective(model), given, uncut(given), precision)
    found = {name: each.grad for name, each in model.named_parameters() if each.grad is not None}
    buffers = {name: each for name, each in lasting_tensors(model).items() if not isinstance(each, nn.Parameter)}
    return loss, {**found, **buffers, "next": torch.rand(())}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
@pytest.mark.parametrize("name", MODELS)
def test_gradients_are_the_same_to_the_bit(name: str, precision: str) -> None:
    loss, expected = after_one_batch(MODELS[name], recomputes=False, precision=precision)
    again, found = after_one_batch(MODELS[name], recomputes=True, precision=precision)
    assert again == loss
    assert found.keys() == expected.keys()
    for key, value in expected.items():
        assert torch.equal(found[key], value), key


def graph_block() -> tuple[Recomputable, tuple[Any, ...]]:
    config = GraphTransformerConfig(d_model=16, heads=2, feed_forward=24, dropout=0.3, attention_dropout=0.3)
    source, target = torch.randint(0, 7, (2, 20))
    return GraphTransformerBlock(config), (torch.randn(7, 16), Edges.of(source, target, 7))


def reading_block() -> tuple[Recomputable, tuple[Any, ...]]:
    config = QanetConfig(d_model=16, heads=2, dropout=0.3, inner_dropout=0.3, layer_dropout=0.6)
    return QanetBlock(config, 3, 5), (torch.randn(4, 9, 16), torch.arange(9) < torch.tensor([[9], [3], [5], [8]]))


@pytest.mark.parametrize("make", [graph_block, reading_block])
def test_blocks_of_other_models_give_the_same_gradients(
    make: Callable[[], tuple[Recomputable, tuple[Any, ...]]],
) -> None:
    def gradients(recomputes: bool) -> list[Tensor]:
        torch.manual_seed(2)
        block, (x, *others) = make()
        block.recomputes = recomputes
        x.requires_grad_()
        block.train()(x, *others).square().sum().backward()
        return [each.grad for each in (x, *block.parameters()) if each.grad is not None]

    for kept, again in zip(gradients(recomputes=False), gradients(recomputes=True), strict=True):
        assert torch.equal(kept, again)


def test_blocks_compute_twice_in_training_and_once_otherwise() -> None:
    model, calls = made(INNER, recomputes=True), []
    feed_forward = model.get_submodule("encoder.blocks.0.feed_forward")
    feed_forward.register_forward_pre_hook(lambda *_: calls.append(1))
    add_gradients(model, text_objective(model), [batch()], uncut([batch()]), "fp32")
    assert len(calls) == 2
    model.eval()
    with torch.no_grad():
        text_objective(model).log_probabilities(model, batch())
    assert len(calls) == 3


def test_a_deep_model_keeps_its_blocks_inputs_and_one_blocks_activations() -> None:
    deep = {**INNER, "encoder_layers": 12, "decoder_layers": 1}
    shallow = {**INNER, "encoder_layers": 1, "decoder_layers": 1}
    given = batch(64, 40)

    def bytes_of(settings: dict[str, Any], recomputes: bool) -> int:
        model = made(settings, recomputes)
        return activation_bytes(model, text_objective(model), given, "fp32")

    inputs = 11 * given.inputs.values.numel() * 16 * 4  # fp32
    assert bytes_of(deep, recomputes=True) - bytes_of(shallow, recomputes=True) <= 1.1 * inputs
    assert bytes_of(deep, recomputes=False) - bytes_of(shallow, recomputes=False) > 5 * inputs


def test_a_model_without_blocks_is_refused() -> None:
    with pytest.raises(InputError, match=r"training\.activation_checkpointing: Rnn has no blocks"):
        recompute_blocks(translator(model={"kind": "rnn", "d_model": 16}).model)
