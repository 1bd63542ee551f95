"""Layers that share weights: as one layer applied again and again, saved once, and seen one by one."""

from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from pydantic import ValidationError
from torch import nn

from random_models import model_file, sentences, translator
from transduce.attention import capture
from transduce.core.errors import InputError
from transduce.core.model_file import save_model_file
from transduce.data.columns import Specs
from transduce.layers.ssru_stack import SsruStack
from transduce.layers.stack import Stack, StackConfig
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.pipeline.pipeline import Pipeline, load
from transduce.recipe.training import TrainingConfig
from transduce.training.sharding import check_shardable

LAYERS = 3
SIZES = {"d_model": 8, "heads": 2, "feed_forward": 12, "dropout": 0.0}


def stacks(positions: str) -> tuple[Stack, Stack]:
    """One whose layers share their weights, and one whose layers have copies of them."""
    torch.manual_seed(0)
    config = StackConfig.model_validate({**SIZES, "positions": positions})
    shared = Stack(config.model_copy(update={"shared_layers": True}), LAYERS, cross=True, causal=True)
    for weight in shared.parameters():
        nn.init.normal_(weight, std=0.3)
    apart = Stack(config, LAYERS, cross=True, causal=True)
    apart.load_state_dict(shared.state_dict())
    return shared, apart


@pytest.mark.parametrize("positions", ["sinusoidal", "shaw", "t5"])
def test_they_compute_what_copies_compute_and_learn_from_all_places(positions: str) -> None:
    shared, apart = stacks(positions)
    x_BTD, source_BSD = torch.randn(2, 5, 8), torch.randn(2, 4, 8)
    outputs = []
    for stack in (shared, apart):
        output_BTD, _ = stack.extend_causally(x_BTD, None, stack.keys_values(source_BSD))
        output_BTD.square().sum().backward()
        outputs.append(output_BTD)
    assert torch.equal(*outputs)
    copies = dict(apart.named_parameters())
    for name, weight in shared.named_parameters():
        places = [name.replace("blocks.0", f"blocks.{layer}") for layer in range(LAYERS)]
        gradients = [copies[place].grad for place in dict.fromkeys(places) if place in copies]
        torch.testing.assert_close(weight.grad, torch.stack(gradients).sum(0))


def test_a_stack_has_the_weights_of_one_layer_and_starts_as_one_layer_does() -> None:
    for kind in (Stack, SsruStack):
        config = StackConfig.model_validate({**SIZES, "shared_layers": True})
        torch.manual_seed(3)
        one = dict(kind(config, 1).named_parameters())
        torch.manual_seed(3)
        three = kind(config, 3)
        several = dict(three.named_parameters())
        assert one.keys() == several.keys()
        assert all(torch.equal(one[name], several[name]) for name in one)
        assert len({id(block) for block in three.blocks}) == 3


@pytest.mark.parametrize("kind", ["transformer", "ssru_transformer"])
def test_a_model_file_has_them_once_and_predicts_the_same(kind: str, tmp_path: Path) -> None:
    model = {"kind": kind, "d_model": 16, "heads": 2, "feed_forward": 24, "encoder_layers": 3, "decoder_layers": 2}
    pipeline = translator(model={**model, "tied": "none", "shared_layers": True})
    save_model_file(tmp_path / "model.safetensors", model_file(pipeline))
    loaded = load(tmp_path / "model.safetensors")
    assert not [name for name, _ in loaded.model.named_parameters() if "blocks.1" in name]
    texts = sentences(5, seed=2)
    assert [each.text for each in loaded.predict(texts)] == [each.text for each in pipeline.predict(texts)]
    with capture(loaded.model) as record:
        loaded.predict("ba de fi")
    first, second, third = (record[f"encoder.blocks.{layer}.self_attention"][0] for layer in range(3))
    assert not torch.equal(first, second)
    assert not torch.equal(second, third)


def test_more_layers_than_a_file_has_weights_are_refused() -> None:
    model = {"d_model": 16, "heads": 2, "feed_forward": 24, "encoder_layers": 3, "decoder_layers": 3}
    pipeline = translator(model={**model, "tied": "none", "shared_layers": True})
    content = model_file(pipeline)
    content.config["model"]["encoder_layers"] = 10**6
    with pytest.raises(InputError, match="encoder_layers = 1000000, but the file has"):
        Pipeline(content)
    deep = translator(model={**model, "tied": "none", "shared_layers": True, "encoder_layers": 70})
    assert len(deep.model.encoder.blocks) == 70 > len(model_file(deep).weights)


def test_statistics_of_batches_cannot_be_shared() -> None:
    with pytest.raises(ValidationError, match="a batch norm has statistics of its own in each layer"):
        StackConfig.model_validate({**SIZES, "shared_layers": True, "norm_kind": "batch"})


def test_shards_of_single_blocks_are_refused() -> None:
    config = TrainingConfig.model_validate({"updates": 1, "parallel": "fsdp", "optimizer": "adamw"})
    for shared in (False, True):
        model = Transformer(TransformerConfig.model_validate({**SIZES, "shared_layers": shared}), Specs.of_tokens(9, 9))
        with pytest.raises(InputError, match=r"model.shared_layers: ") if shared else nullcontext():
            check_shardable(config, model)
