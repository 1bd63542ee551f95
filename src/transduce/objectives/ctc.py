"""The training objective of models with CTC output: the probability of targets, summed over alignments.

    loss = -(1 - e) log p(y | x) - e T / P sum_p mean_v log p_p(v)          T target tokens, the end counted; P places

The second term is label smoothing (Szegedy et al. 2016, section 7) of the places, scaled to one term per token.
Shapes: B batch, P places, T target tokens, U target tokens and the blank.

The objective of an encoder-decoder whose encoder also aligns: attention and CTC, weighted (Kim et al. 2017, equation
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

from transduce.attention.reinforce import choices, surrogate
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.collate import Batch, words
from transduce.layers.ctc import (
    blank_of,
    ids_of,
    least_places,
    log_likelihood,
    log_probabilities_of,
    token_log_probabilities,
    written,
)
from transduce.models.protocols import Aligns, PredictsJointly
from transduce.objectives.next_token import NextToken
from transduce.objectives.protocols import Deterministic, Loss


@dataclass(frozen=True)
class CtcLoss(Deterministic):
    """smoothing: e."""

    unit: ClassVar[str] = "token"
    smoothing: float = 0.0

    def loss(self, model: Aligns, batch: Batch, drawn: None = None) -> Loss:
        """The loss above.

        Raises:
            InputError: the batch has no source.
        """
        if batch.inputs is None:
            raise InputError("[model] kind: a model that aligns needs a source; language modelling has none.")
        target = words(batch.targets)
        with choices() as made:
            places = model.align(batch.inputs, least_places(*target))
        ids_BPU = ids_of(target.values, places.values.shape[1], blank_of(batch.targets.values))
        of_BPU, mean_BP = log_probabilities_of(places.values, ids_BPU)
        each_B = log_likelihood(written(of_BPU, places.lengths, *target))
        share_B = (target.lengths + 1) / places.lengths
        smooth = (share_B * (mean_BP * places.mask()).sum(1)).sum()
        loss = -(1 - self.smoothing) * each_B.sum() - self.smoothing * smooth
        if made.log_probability is None:
            return Loss(loss, loss.detach())
        return Loss(loss + surrogate(made.log_probability, each_B.detach(), target.lengths + 1), loss.detach())

    @torch.inference_mode()
    def log_probabilities(self, model: Aligns, batch: Batch) -> Tensor:
        """(B, T - 1): of the words of each row, and of its end; each given those before, however they are placed."""
        own = words(batch.targets)
        places = model.align(batch.inputs, least_places(*own))
        normed_BPV = places.values.double().log_softmax(-1)
        ids_BPU = ids_of(own.values, normed_BPV.shape[1], blank_of(batch.targets.values))
        return token_log_probabilities(written(normed_BPV.gather(2, ids_BPU), places.lengths, *own))


@dataclass(frozen=True)
class JointCtcLoss(Deterministic):
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
