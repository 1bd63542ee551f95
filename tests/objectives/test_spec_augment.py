"""SpecAugment hides spans within their limits, the same ones whole and in parts, and nothing from likelihood."""

from typing import Any

import pytest
import torch
from torch import Tensor

from transduce.core.padded import Padded
from transduce.core.registry import resolve
from transduce.data.collate import Batch
from transduce.data.columns import ColumnSpec, Specs
from transduce.objectives.next_token import NextToken
from transduce.objectives.spec_augment import SpecAugment, SpecAugmentConfig
from transduce.training.microbatches import add_gradients

FEATURES = 12
CONFIG = SpecAugmentConfig(time_masks=2, time_width=6, time_share=0.25, feature_masks=1, feature_width=4)


def model() -> Any:
    torch.manual_seed(0)
    kind = resolve("models", "rnn")
    config = kind.Config(d_model=8, hidden=12, dropout=0.0)
    return kind(config, Specs(ColumnSpec("frames", FEATURES), ColumnSpec("tokens", 9)))


def batch() -> Batch:
    generator = torch.Generator().manual_seed(1)
    values = torch.randn(4, 40, FEATURES, generator=generator)
    targets = torch.randint(4, 9, (4, 5), generator=generator)
    return Batch(Padded(values, torch.tensor([40, 8, 30, 17])), Padded(targets, torch.tensor([5, 3, 5, 4])), 13)


def runs(hidden: Tensor) -> list[int]:
    """The lengths of the stretches of True."""
    edges = torch.diff(torch.cat((torch.tensor([0]), hidden.int(), torch.tensor([0]))))
    return ((edges == -1).nonzero() - (edges == 1).nonzero())[:, 0].tolist()


def test_spans_stay_within_their_limits_and_reach_them() -> None:
    objective, longest, widest = SpecAugment(NextToken(), CONFIG), [0] * 4, 0
    for seed in range(300):
        torch.manual_seed(seed)
        drawn = objective.draw(None, batch())
        for row, length in enumerate(batch().inputs.lengths.tolist()):
            found = runs(drawn.time[row])
            assert len(found) <= 2 and not drawn.time[row, length:].any()
            assert sum(found) <= 2 * min(6, length // 4)
            longest[row] = max([longest[row], *(found if len(found) == 2 else [])])
            widest = max([widest, *runs(drawn.features[row])])
    assert longest == [6, 2, 6, 4] and widest == 4


def test_the_same_is_hidden_for_the_same_seed() -> None:
    objective = SpecAugment(NextToken(), CONFIG)
    torch.manual_seed(3)
    first = objective.draw(None, batch())
    torch.manual_seed(3)
    again = objective.draw(None, batch())
    assert torch.equal(first.time, again.time) and torch.equal(first.features, again.features)
    assert not torch.equal(first.time, objective.draw(None, batch()).time)


@pytest.mark.parametrize("cuts", [[2, 2], [1, 3], [1, 1, 1, 1]])
def test_a_batch_in_parts_has_the_gradient_of_the_whole(cuts: list[int]) -> None:
    found = []
    for each in ([4], cuts):
        torch.manual_seed(5)
        built = model()
        torch.manual_seed(6)
        loss, _ = add_gradients(built, SpecAugment(NextToken(), CONFIG), [batch()], [each], "fp32")
        found.append([torch.tensor(loss), *(each.grad for each in built.parameters())])
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=1e-5)


def test_the_loss_is_that_of_what_is_left_and_likelihood_sees_all() -> None:
    built, plain = model().eval(), NextToken()
    objective = SpecAugment(plain, CONFIG)
    drawn = objective.draw(built, batch())
    values = batch().inputs.values.clone()
    for row in range(4):
        values[row, drawn.time[row]] = 0
        values[row, :, drawn.features[row]] = 0
    seen = batch()._replace(inputs=Padded(values, batch().inputs.lengths))
    assert torch.equal(objective.loss(built, batch(), drawn).reported, plain.loss(built, seen, None).reported)
    whole = plain.log_probabilities(built, batch())
    assert torch.equal(objective.log_probabilities(built, batch()), whole)
    assert objective.unit == "token"
