"""What a classifier is trained on: the cross-entropy of each example's label.

    loss = -sum_b [(1 - e) w_y log p(y_b | x_b) + e / C sum_c w_c log p(c | x_b)]   (Szegedy et al. 2016, section 7)

w are the weights of the labels, 1 by default. What is minimised has the model's own penalty of each example besides.
Likelihood and validation know neither e, nor w, nor the penalty.

Shapes: B batch, C labels.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.attention.reinforce import choices, surrogate
from transduce.data.collate import Batch
from transduce.models.protocols import Classifies, Penalizes
from transduce.objectives.protocols import Deterministic, Loss


@dataclass(frozen=True)
class LabelCrossEntropy(Deterministic):
    """smoothing: e. weights: w, one a label; none = 1 each."""

    unit: ClassVar[str] = "label"
    smoothing: float = 0.0
    weights: tuple[float, ...] = ()

    def loss(self, model: Classifies, batch: Batch, drawn: None = None) -> Loss:
        with choices() as made:
            logits_BC, penalty_B = _classified(model, batch.inputs)
        weight_C = logits_BC.new_tensor(self.weights) if self.weights else None
        loss = F.cross_entropy(logits_BC, batch.targets, weight_C, reduction="sum", label_smoothing=self.smoothing)
        minimised = loss if penalty_B is None else loss + penalty_B.sum()
        if made.log_probability is not None:
            reward_B = -F.cross_entropy(logits_BC.detach(), batch.targets, weight_C, reduction="none")
            minimised = minimised + surrogate(made.log_probability, reward_B, torch.ones_like(reward_B))
        return Loss(minimised, loss.detach())

    @torch.inference_mode()
    def log_probabilities(self, model: Classifies, batch: Batch) -> Tensor:
        """(B, 1): of each example's label."""
        normed_BC = model.classify(batch.inputs).double().log_softmax(-1)
        return normed_BC.gather(1, batch.targets[:, None])


def _classified(model: Classifies, inputs: object) -> tuple[Tensor, Tensor | None]:
    """Logits (B, C) in fp32, and the model's penalty (B,)."""
    if isinstance(model, Penalizes):
        logits_BC, penalty_B = model.classify_with_penalty(inputs)
        return logits_BC.float(), penalty_B
    return model.classify(inputs).float(), None
