"""What a classifier of nodes, or of words, is trained on: the cross-entropy of every one that has a label.

    loss = -sum_b sum_n log p(y_bn | x_b)                             (Tai et al. 2015, section 4.1)

With label smoothing as in `transduce.objectives.label`. Likelihood and validation know none.

Shapes: B batch, N nodes, C labels.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.data.collate import Batch
from transduce.models.protocols import Classifies
from transduce.objectives.protocols import Deterministic, Loss


@dataclass(frozen=True)
class NodeCrossEntropy(Deterministic):
    """smoothing: e."""

    unit: ClassVar[str] = "node"
    smoothing: float = 0.0

    def loss(self, model: Classifies, batch: Batch, drawn: None = None) -> Loss:
        known_BN = batch.targets.known()
        logits_MC = model.classify(batch.inputs)[known_BN].float()
        labels_M = batch.targets.ids.values[known_BN]
        loss = F.cross_entropy(logits_MC, labels_M, reduction="sum", label_smoothing=self.smoothing)
        return Loss(loss, loss.detach())

    @torch.inference_mode()
    def log_probabilities(self, model: Classifies, batch: Batch) -> Tensor:
        """(B, N): of the label of each node that has one, side by side."""
        known_BN, ids_BN = batch.targets.known(), batch.targets.ids.values
        normed_BNC = model.classify(batch.inputs).double().log_softmax(-1)
        each_BN = normed_BNC.gather(2, ids_BN.clamp(min=0)[..., None])[..., 0].masked_fill(~known_BN, 0.0)
        return each_BN.gather(1, (~known_BN).to(torch.int8).argsort(dim=1, stable=True))


@dataclass(frozen=True)
class WordCrossEntropy(NodeCrossEntropy):
    """The same of the words of a text."""

    unit: ClassVar[str] = "word"
