"""The loss of models that align against its definition, one place after the other."""

import pytest
import torch
import torch.nn.functional as F

from text_columns import loss_of
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.data.columns import Specs
from transduce.models.ctc import Ctc, CtcConfig
from transduce.objectives.ctc import CtcLoss
from transduce.recipe.training import TrainingConfig

SIZES = {"d_model": 16, "heads": 2, "feed_forward": 24, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}


def tiny(**settings: str) -> Ctc:
    torch.manual_seed(2)
    return Ctc(CtcConfig.model_validate({**SIZES, "tied": "none", **settings}), Specs.of_tokens(11, 13))


def batch() -> Batch:
    torch.manual_seed(3)
    target = Padded(torch.randint(3, 13, (3, 8)), torch.tensor([5, 8, 2]))
    target.values[:, 0] = 1
    target.values[torch.arange(3), target.lengths - 1] = 2
    target.values[1, 3:5] = 7  # equal neighbours; with a source of 2 tokens, more tokens than places
    return Batch(Padded(torch.randint(3, 11, (3, 6)), torch.tensor([6, 2, 4])), target, 12)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_it_is_the_definition(smoothing: float) -> None:
    model, given = tiny(), batch()
    loss, told = loss_of(model, given, TrainingConfig(label_smoothing=smoothing))
    assert loss.item() == told.item()
    assert given.inputs is not None
    expected = 0.0
    for row in range(3):
        words = given.targets.values[row, 1 : int(given.targets.lengths[row]) - 1]
        length = given.inputs.lengths[row : row + 1]
        own = Padded(given.inputs.values[row : row + 1, : int(length)], length)
        needed = len(words) + int((words[1:] == words[:-1]).sum())
        with torch.no_grad():
            normed_PV = model.align(own, torch.tensor([needed])).values[0].log_softmax(-1)
        assert len(normed_PV) == max(2 * int(length), needed)
        ctc = F.ctc_loss(normed_PV[:, None], words[None], [len(normed_PV)], [len(words)], blank=1, reduction="sum")
        expected += (1 - smoothing) * float(ctc)
        expected -= smoothing * (len(words) + 1) * float(normed_PV.mean())
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_a_model_that_chooses_where_it_looks_learns_from_what_that_was_worth() -> None:
    loss, told = CtcLoss().loss(tiny(normalizer="hard").train(), batch())
    assert loss.item() != told.item()
    loss.backward()  # type: ignore[no-untyped-call]


def test_what_it_cannot_do_is_told() -> None:
    with pytest.raises(InputError, match="only a model that predicts the next token"):
        loss_of(tiny(), batch(), TrainingConfig(r_drop=5.0))
    with pytest.raises(InputError, match="needs a source"):
        CtcLoss().loss(tiny(), Batch(None, batch().targets, 12))
