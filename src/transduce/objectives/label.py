"""What a classifier is trained on: the cross-entropy of each example's label.

    loss = -sum_b [(1 - e) log p(y_b | x_b) + e / C sum_c log p(c | x_b)]           (Szegedy et al. 2016, section 7)

Shapes: B batch, C labels.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.attention.reinforce import choices, surrogate
from transduce.data.collate import Batch
from transduce.models.protocols import Classifies
from transduce.objectives.protocols import Loss, Undrawn


@dataclass(frozen=True)
class LabelCrossEntropy(Undrawn):
    """smoothing: e."""

    unit: ClassVar[str] = "label"
    smoothing: float = 0.0

    def loss(self, model: Classifies, batch: Batch, drawn: None = None) -> Loss:
        """The loss above."""
        with choices() as made:
            logits_BC = model.classify(batch.inputs).float()
        loss = F.cross_entropy(logits_BC, batch.targets, reduction="sum", label_smoothing=self.smoothing)
        if made.log_probability is None:
            return Loss(loss, loss.detach())
        reward_B = -F.cross_entropy(logits_BC.detach(), batch.targets, reduction="none")
        return Loss(loss + surrogate(made.log_probability, reward_B, torch.ones_like(reward_B)), loss.detach())

    @torch.inference_mode()
    def log_probabilities(self, model: Classifies, batch: Batch) -> Tensor:
        """(B, 1): of each example's label."""
        normed_BC = model.classify(batch.inputs).double().log_softmax(-1)
        return normed_BC.gather(1, batch.targets[:, None])
