"""Models that are built to be filled from a file."""

import pytest
import torch
from torch import nn

from random_models import model_file, translator
from transduce.core.skip_init import undrawn
from transduce.kernels.matmul import Linear
from transduce.layers.embedding import Embedding
from transduce.layers.recurrent import Lstm
from transduce.pipeline.pipeline import Pipeline


def test_parameters_are_not_drawn_while_it_is_entered_and_all_else_is() -> None:
    torch.manual_seed(1)
    expected = torch.randn(3), torch.empty(4).normal_()
    torch.manual_seed(1)
    before = torch.get_rng_state()
    with undrawn():
        layers = [Linear(3, 4), Embedding(5, 6), nn.Embedding(5, 6)]
        drawn = torch.randn(3), torch.empty(4).normal_()
        cell = Lstm(3, 4)
    assert torch.equal(torch.get_rng_state(), before)
    for layer in layers:
        assert all(parameter.requires_grad and not parameter.any() for parameter in layer.parameters())
    assert all(torch.equal(one, other) for one, other in zip(drawn, expected, strict=True))
    assert all(parameter.isfinite().all() for parameter in cell.parameters())
    assert nn.Linear(3, 4).weight.any(), "afterwards all is drawn as ever"


@pytest.mark.parametrize("kind", ["transformer", "rnn", "convolution"])
def test_loading_leaves_a_programs_random_numbers_alone(kind: str) -> None:
    file = model_file(translator(model={"kind": kind, "d_model": 16}))
    before = torch.get_rng_state()
    loaded = Pipeline(file)
    assert torch.equal(torch.get_rng_state(), before)
    for name, weight in loaded.model.named_parameters():
        assert torch.equal(weight, file.weights[name])
