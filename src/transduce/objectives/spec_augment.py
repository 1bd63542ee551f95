"""SpecAugment: training hides stretches of time and bands of features (Park et al. 2019), whatever it minimises.

    time_masks times    t ~ uniform{0 .. min(time_width, time_share * S)}, a ~ uniform{0 .. S - t}:  x[a : a + t] = 0
    feature_masks times f ~ uniform{0 .. feature_width},                   b ~ uniform{0 .. F - f}:  x[:, b : b + f] = 0

0 is the mean, as features are normalised. What is hidden is drawn for the whole batch by torch's generator, which an
update seeds; so a resumed training hides the same.
Shapes: B utterances, S frames, F features.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import torch
from pydantic import Field
from torch import Tensor

from transduce.core.config import Config
from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.objectives.protocols import Loss, Objective


class SpecAugmentConfig(Config):
    """How much training hides of each utterance; no masks, nothing."""

    time_masks: int = Field(default=2, ge=0)
    """Stretches of time."""
    time_width: int = Field(default=40, ge=0)
    """The longest stretch, in frames."""
    time_share: float = Field(default=0.2, ge=0, le=1)
    """The longest stretch, as a share of the utterance."""
    feature_masks: int = Field(default=2, ge=0)
    """Bands of neighbouring features."""
    feature_width: int = Field(default=8, ge=0)
    """The widest band, in features."""


class Masked(NamedTuple):
    """What is hidden: (B, S) and (B, F) bool, True = hidden; and what the loss itself drew."""

    time: Tensor
    features: Tensor
    inner: Any


@dataclass(frozen=True)
class SpecAugment:
    """An objective of text on utterances of which something is hidden; likelihood sees all."""

    unit: ClassVar[str] = "token"
    inner: Objective
    config: SpecAugmentConfig

    def draw(self, model: Any, batch: Batch) -> Masked:
        """What is hidden of the batch."""
        (values_BSF, lengths_B), config = batch.inputs, self.config
        rows, longest, width = values_BSF.shape
        limit_B = (lengths_B * config.time_share).long().clamp(max=config.time_width)
        time_BS = _spans(lengths_B, limit_B, longest, config.time_masks)
        width_B = torch.full((rows,), width, device=values_BSF.device)
        features_BF = _spans(width_B, width_B.clamp(max=config.feature_width), width, config.feature_masks)
        return Masked(time_BS, features_BF, self.inner.draw(model, batch))

    def rows(self, drawn: Masked, place: slice, part: Batch) -> Masked:
        time_BS = drawn.time[place, : part.inputs.values.shape[1]]
        return Masked(time_BS, drawn.features[place], self.inner.rows(drawn.inner, place, part))

    def loss(self, model: Any, batch: Batch, drawn: Masked) -> Loss:
        """The loss of what is left."""
        values_BSF, lengths_B = batch.inputs
        hidden_BSF = drawn.time[..., None] | drawn.features[:, None]
        seen = Padded(values_BSF.masked_fill(hidden_BSF, 0.0), lengths_B)
        return self.inner.loss(model, batch._replace(inputs=seen), drawn.inner)

    def log_probabilities(self, model: Any, batch: Batch) -> Tensor:
        """Of the whole utterances."""
        return self.inner.log_probabilities(model, batch)


def _spans(size_B: Tensor, limit_B: Tensor, longest: int, count: int) -> Tensor:
    """(B, longest) bool: `count` spans in each row, each of at most `limit_B` places among the first `size_B`."""
    place_S = torch.arange(longest, device=size_B.device)
    hidden_BS = torch.zeros(len(size_B), longest, dtype=torch.bool, device=size_B.device)
    for _ in range(count):
        share_2B = torch.rand(2, len(size_B), device=size_B.device)
        length_B = (share_2B[0] * (limit_B + 1)).long().minimum(limit_B)
        first_B = (share_2B[1] * (size_B - length_B + 1)).long().minimum(size_B - length_B)
        hidden_BS |= (place_S >= first_B[:, None]) & (place_S < (first_B + length_B)[:, None])
    return hidden_BS
