"""Joint CTC: the loss against torch's ctc_loss and the cross-entropy of the decoder; what it leaves as it was."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.data.columns import ColumnSpec, Specs
from transduce.models.rnn import Rnn, RnnConfig
from transduce.models.transformer import Transformer, TransformerConfig
from transduce.objectives.ctc import JointCtcLoss
from transduce.objectives.next_token import NextToken
from transduce.objectives.text import text_objective
from transduce.recipe.training import TrainingConfig

FRAMES = Specs(ColumnSpec("frames", 5), ColumnSpec("tokens", 13))
KINDS = ["transformer", "rnn"]


def tiny(kind: str, specs: Specs = FRAMES, **settings: Any) -> Any:
    torch.manual_seed(2)
    if kind == "rnn":
        return Rnn(RnnConfig(d_model=8, hidden=12, dropout=0.0, **settings), specs)
    sizes = {"d_model": 8, "heads": 2, "feed_forward": 12, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0.0}
    return Transformer(TransformerConfig.model_validate({**sizes, **settings}), specs)


def batch() -> Batch:
    """The second row has 2 positions, fewer than its 6 tokens: CTC has no alignment for it."""
    torch.manual_seed(3)
    target = Padded(torch.randint(3, 13, (3, 8)), torch.tensor([5, 8, 2]))
    target.values[:, 0] = 1
    target.values[torch.arange(3), target.lengths - 1] = 2
    target.values[0, 1:3] = 7  # equal neighbours
    return Batch(Padded(torch.randn(3, 30, 5), torch.tensor([30, 8, 17])), target, 12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_it_is_the_definition(kind: str, smoothing: float) -> None:
    model, given = tiny(kind, ctc_weight=0.3), batch()
    objective = text_objective(model, TrainingConfig(label_smoothing=smoothing))
    found = objective.loss(model, given, None)
    attention = NextToken(smoothing).loss(model, given, None)
    aligned = 0.0
    for row in range(3):
        length = given.inputs.lengths[row : row + 1]
        own = Padded(given.inputs.values[row : row + 1, : int(length)], length)
        with torch.no_grad():
            normed_PV = model.align_encoder(own).values[0].log_softmax(-1)
        said = given.targets.values[row, 1 : int(given.targets.lengths[row]) - 1]
        counts = [len(normed_PV)], [len(said)]
        ctc = F.ctc_loss(normed_PV[:, None], said[None], *counts, blank=1, reduction="sum", zero_infinity=True)
        assert len(normed_PV) == -(-int(length) // 4)
        aligned += float(ctc)
    assert found.minimised.item() == pytest.approx(0.7 * attention.minimised.item() + 0.3 * aligned, rel=1e-5)
    assert found.reported.item() == pytest.approx(attention.reported.item(), rel=1e-6)
    found.minimised.backward()  # type: ignore[no-untyped-call]
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in model.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_likelihood_is_that_of_attention(kind: str) -> None:
    model, given = tiny(kind, ctc_weight=0.3).eval(), batch()
    found = text_objective(model).log_probabilities(model, given)
    torch.testing.assert_close(found, NextToken().log_probabilities(model, given))


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_weight_nothing_is_drawn_and_nothing_is_there(kind: str) -> None:
    joint, alone = tiny(kind, ctc_weight=0.3), tiny(kind)
    weights = {name: weight for name, weight in joint.named_parameters() if not name.startswith("ctc_output.")}
    assert weights.keys() == dict(alone.named_parameters()).keys() and len(weights) < len(joint.state_dict())
    for name, weight in alone.named_parameters():
        assert torch.equal(weight, weights[name]), name
    assert isinstance(text_objective(alone), NextToken)
    assert isinstance(text_objective(joint), JointCtcLoss)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_reads_tokens_has_none(kind: str) -> None:
    with pytest.raises(InputError, match=r"model\.ctc_weight is for a source of frames"):
        tiny(kind, Specs.of_tokens(11, 13), ctc_weight=0.3)


@pytest.mark.parametrize("setting", [{"r_drop": 1.0}, {"sampled_words": 5}])
def test_what_does_not_go_with_it_is_refused(setting: dict[str, Any]) -> None:
    model: nn.Module = tiny("rnn", ctc_weight=0.3)
    with pytest.raises(InputError, match=rf"training\.{next(iter(setting))}: cannot be used with model\.ctc_weight"):
        text_objective(model, TrainingConfig.model_validate(setting))
