"""More places where they are asked for, and a model that learns what stands where without being told.

That the whole is padding-proof, equal in any batch and differentiable everywhere, `test_contracts.py` shows.
"""

import pytest
import torch
from odd_twice import learn, right_of_100

from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.models.ctc import Ctc, CtcConfig
from transduce.objectives.ctc import CtcLoss
from transduce.search.settings import Search

SIZES = {"d_model": 32, "heads": 2, "feed_forward": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}


def tiny(places: int) -> Ctc:
    torch.manual_seed(4)
    return Ctc(CtcConfig.model_validate({**SIZES, "places": places}), Specs.of_tokens(12, 12))


@torch.inference_mode()
def test_a_row_has_as_many_places_as_its_source_gives_or_a_target_needs() -> None:
    model = tiny(3).eval()
    source = Padded(torch.randint(3, 12, (3, 5)), torch.tensor([5, 1, 2]))
    own = model.align(source)
    assert own.lengths.tolist() == [15, 3, 6]
    assert own.values.shape == (3, 15, 12)
    enough = model.align(source, torch.tensor([2, 3, 1]))
    assert torch.equal(enough.values, own.values)
    more = model.align(source, torch.tensor([17, 9, 2]))
    assert more.lengths.tolist() == [17, 9, 6]
    torch.testing.assert_close(more.values[2, :6], own.values[2, :6])
    alone = model.align(Padded(source.values[1:2, :1], source.lengths[1:2]), torch.tensor([9]))
    torch.testing.assert_close(more.values[1, :9], alone.values[0])


@pytest.mark.slow
def test_it_learns_how_many_and_which_words() -> None:
    model = tiny(4)  # up to two words for a source token, and a blank between equal ones
    learn(model, CtcLoss(), 200)
    for beam in (1, 3):
        assert right_of_100(model, Search(method="ctc", beam=beam)) >= 90
