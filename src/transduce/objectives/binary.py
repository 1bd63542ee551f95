"""What a model of vectors is trained on: the binary cross-entropy of each number of the answer.

    loss = -sum_{b, a, o} [y log p + (1 - y) log (1 - p)]                (Graves et al. 2014, section 4)

The answer stands at the last steps of each sequence; what a model says before is not looked at.

Shapes: B batch, T steps, F numbers of an input, A steps of answers, O numbers of an output.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.models.protocols import Processes
from transduce.objectives.protocols import Deterministic, Loss


@dataclass(frozen=True)
class BinaryCrossEntropy(Deterministic):
    """Nothing to set."""

    unit: ClassVar[str] = "bit"

    def loss(self, model: Processes, batch: Batch, drawn: None = None) -> Loss:
        targets: Padded = batch.targets
        logits_BAO = answer_logits(model, batch.inputs, targets.lengths)
        weight_BA1 = targets.mask()[..., None].float()
        loss_BAO = F.binary_cross_entropy_with_logits(logits_BAO, targets.values, reduction="none")
        loss = (loss_BAO * weight_BA1).sum()
        return Loss(loss, loss.detach())

    @torch.inference_mode()
    def log_probabilities(self, model: Processes, batch: Batch) -> Tensor:
        """(B, A * O): of each number of each answer."""
        targets: Padded = batch.targets
        logits_BAO = answer_logits(model, batch.inputs, targets.lengths).double()
        nats_BAO = F.binary_cross_entropy_with_logits(logits_BAO, targets.values.double(), reduction="none")
        return -nats_BAO.masked_fill(~targets.mask()[..., None], 0.0).flatten(1)


def answer_logits(model: Processes, inputs: Padded, answers_B: Tensor) -> Tensor:
    """(B, A, O) in fp32: what the model says at the last `answers_B` steps of each sequence; arbitrary behind them."""
    x_BTF, lengths_B = inputs
    logits_BTO, _ = model.process(x_BTF, model.initial(len(x_BTF)))
    place_A = torch.arange(int(answers_B.max()), device=x_BTF.device)
    step_BA = ((lengths_B - answers_B)[:, None] + place_A).clamp(max=x_BTF.shape[1] - 1)
    return logits_BTO.float().gather(1, step_BA[..., None].expand(-1, -1, logits_BTO.shape[2]))
