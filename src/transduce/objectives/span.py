"""What a model that points into a text is trained on: the cross-entropy of a span's first and last token.

    loss = -sum_b [log p(start_b | x_b) + log p(end_b | x_b)]            (Seo et al. 2017, section 2.6)

Shapes: B batch, S positions of the text.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.data.collate import Batch
from transduce.models.protocols import Points
from transduce.objectives.protocols import Deterministic, Loss


@dataclass(frozen=True)
class SpanCrossEntropy(Deterministic):
    """Nothing to set."""

    unit: ClassVar[str] = "span"

    def loss(self, model: Points, batch: Batch, drawn: None = None) -> Loss:
        sides = zip(model.point(batch.inputs), batch.targets.unbind(1), strict=True)
        loss = torch.stack([F.cross_entropy(logits_BS.float(), at_B, reduction="sum") for logits_BS, at_B in sides])
        return Loss(loss.sum(), loss.sum().detach())

    @torch.inference_mode()
    def log_probabilities(self, model: Points, batch: Batch) -> Tensor:
        """(B, 1): of each example's span."""
        sides = zip(model.point(batch.inputs), batch.targets.unbind(1), strict=True)
        each = [logits_BS.double().log_softmax(-1).gather(1, at_B[:, None]) for logits_BS, at_B in sides]
        return each[0] + each[1]
