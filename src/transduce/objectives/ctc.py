"""The training objective of models with CTC output: the probability of targets, summed over alignments.

    loss = -(1 - e) log p(y | x) - e T / P sum_p mean_v log p_p(v)          T target tokens, the end counted; P places

The second term is label smoothing (Szegedy et al. 2016, section 7) of the places, scaled to one term per token.
Shapes: B batch, P places, T target tokens, U target tokens and the blank.
"""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from transduce.attention.reinforce import choices, surrogate
from transduce.core.errors import InputError
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
from transduce.models.protocols import Aligns
from transduce.objectives.protocols import Loss, Undrawn


@dataclass(frozen=True)
class CtcLoss(Undrawn):
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
