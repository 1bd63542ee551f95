"""The objective of an encoder-decoder whose encoder also aligns: attention and CTC, weighted (Kim et al. 2017, equation
8).

    loss = (1 - w) (cross-entropy of the next token) - w log p_ctc(y | x)

An utterance with fewer encoder positions than CTC needs for its text has no alignment, and is learnt from by attention
alone. What is reported is the cross-entropy of the next token, which compares with that of a model without CTC.

Shapes: B batch, T target positions, V vocabulary, P encoder positions, U target tokens and the blank.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from transduce.attention.reinforce import choices
from transduce.core.padded import Padded
from transduce.data.collate import Batch, words
from transduce.layers.ctc import blank_of, ids_of, least_places, log_likelihood, log_probabilities_of, written
from transduce.models.protocols import PredictsJointly
from transduce.objectives.next_token import NextToken
from transduce.objectives.protocols import Loss, Undrawn


@dataclass(frozen=True)
class JointCtcLoss(Undrawn):
    """weight: w. smoothing: of the labels of the next token."""

    unit: ClassVar[str] = "token"
    weight: float
    smoothing: float = 0.0

    def loss(self, model: PredictsJointly, batch: Batch, drawn: None = None) -> Loss:
        before = Padded(batch.targets.values[:, :-1], batch.targets.lengths - 1)
        with choices() as made:
            logits_BTV, places = model.joint_logits(batch.inputs, before)
        attention = NextToken(self.smoothing).of_logits(logits_BTV, made, batch)
        aligned_B = alignment_log_likelihood(places, batch.targets)
        return attention._replace(
            minimised=(1 - self.weight) * attention.minimised - self.weight * aligned_B.sum(),
        )

    @torch.inference_mode()
    def log_probabilities(self, model: Any, batch: Batch) -> Tensor:
        """(B, T - 1): of each target token after the first, by attention alone."""
        return NextToken().log_probabilities(model, batch)


def alignment_log_likelihood(places: Padded, target: Padded) -> Tensor:
    """(B,) log p_ctc of targets with start and end, given logits (B, P, V); 0 where there is no alignment."""
    own = words(target)
    ids_BPU = ids_of(own.values, places.values.shape[1], blank_of(target.values))
    of_BPU, _ = log_probabilities_of(places.values, ids_BPU)
    each_B = log_likelihood(written(of_BPU, places.lengths, *own))
    return torch.where(places.lengths >= least_places(*own), each_B, 0.0)
