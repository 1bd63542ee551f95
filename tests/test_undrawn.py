"""Models that are built to be filled from a file."""

import pytest
import torch
from torch import nn

from random_models import model_file, translator
from transduce.layers.recurrent import Lstm
from transduce.pipeline import Pipeline
from transduce.undrawn import Undrawn


def test_nothing_is_drawn_while_it_is_entered() -> None:
    before = torch.get_rng_state()
    with Undrawn():
        layers = [nn.Linear(3, 4), nn.Embedding(5, 6), nn.LSTM(3, 4), Lstm(3, 4)]
        drawn = [torch.randn(3), torch.rand((2, 2), dtype=torch.float64), torch.empty(4).normal_()]
    assert torch.equal(torch.get_rng_state(), before)
    assert [list(each.shape) for each in drawn] == [[3], [2, 2], [4]]
    assert drawn[1].dtype is torch.float64
    assert not any(each.any() for each in drawn)
    for layer in layers:
        assert all(parameter.isfinite().all() and parameter.requires_grad for parameter in layer.parameters())
    assert nn.Linear(3, 4).weight.any(), "afterwards all is drawn as ever"


@pytest.mark.parametrize("kind", ["transformer", "rnn", "convolution"])
def test_loading_leaves_a_programs_random_numbers_alone(kind: str) -> None:
    file = model_file(translator(model={"kind": kind, "d_model": 16}))
    before = torch.get_rng_state()
    loaded = Pipeline(file)
    assert torch.equal(torch.get_rng_state(), before)
    for name, weight in loaded.model.named_parameters():
        assert torch.equal(weight, file.weights[name])
