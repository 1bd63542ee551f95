"""Lengths against their definition, and a model that learns to write all words at once.

That the whole is padding-proof, equal in any batch and differentiable everywhere, `test_contracts.py` shows.
"""

import math

import pytest
import torch
from odd_twice import learn, right_of_100

from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.models.non_autoregressive import NonAutoregressive, NonAutoregressiveConfig
from transduce.objectives.masked_lm import MaskedLm
from transduce.search.settings import Search

SIZES = {"d_model": 32, "heads": 2, "feed_forward": 32, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}


def tiny(reach: int) -> NonAutoregressive:
    torch.manual_seed(4)
    return NonAutoregressive(NonAutoregressiveConfig.model_validate({**SIZES, "reach": reach}), Specs.of_tokens(12, 12))


def test_lengths_by_their_definition() -> None:
    # A weight for every length from 0 to 400, one after the other: that of its difference's class, halved for every
    # token out of reach; then divided by their sum.
    for reach in (1, 2, 9):
        model = tiny(reach)
        source = Padded(torch.randint(3, 12, (3, 7)), torch.tensor([7, 1, 4]))
        with torch.no_grad():
            memory = model.remember(source)
        found_BL = model.lengths(memory, 25)
        for row, length in enumerate(source.lengths.tolist()):
            weights = []
            for target in range(400):
                difference = target - length
                nearest = max(-reach, min(reach, difference))
                chosen = float(memory.length_class[row, nearest + reach])
                weights.append(math.exp(chosen) * 0.5 ** abs(difference - nearest))
            expected = [math.log(weight / math.fsum(weights)) for weight in weights[:26]]
            torch.testing.assert_close(found_BL[row], torch.tensor(expected), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_it_learns_lengths_and_words() -> None:
    model = tiny(6)
    learn(model, MaskedLm(), 300)
    assert right_of_100(model, Search(method="mask_predict")) >= 90
