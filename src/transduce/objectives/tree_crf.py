"""What a chart parser is trained on: the probability of each sentence's tree and of its words' tags.

    - log p(y | x) - sum_n log p(t_n | x)

A label or tag of a held-out file that training never had is not known: the rest of the tree is what counts.

Shapes: B batch, N words, C labels, G tags.
"""

from typing import ClassVar

import torch
from torch import Tensor

from transduce.data.collate import Batch
from transduce.data.columns.binary_trees import TreeTargets
from transduce.layers.tree_crf import log_likelihood
from transduce.models.protocols import ScoresSpans
from transduce.objectives.protocols import Deterministic, Loss


class TreeLikelihood(Deterministic):
    """The negative log-likelihood of trees with their tags."""

    unit: ClassVar[str] = "tree"

    def loss(self, model: ScoresSpans, batch: Batch, drawn: None = None) -> Loss:
        loss = -self._of_trees(model, batch, torch.float32).sum()
        return Loss(loss, loss.detach())

    @torch.inference_mode()
    def log_probabilities(self, model: ScoresSpans, batch: Batch) -> Tensor:
        """(B, 1): of each tree with its tags."""
        return self._of_trees(model, batch, torch.float64)[:, None]

    def _of_trees(self, model: ScoresSpans, batch: Batch, dtype: torch.dtype) -> Tensor:
        states_BNH, tags = model.word_states(batch.inputs), batch.targets.tags
        scores_BNNC = model.span_scores(states_BNH, tags.lengths).to(dtype)
        tag_scores_BNG = model.tag_scores(states_BNH).to(dtype)
        return tree_log_probabilities(scores_BNNC, tag_scores_BNG, batch.targets)


def tree_log_probabilities(scores_BNNC: Tensor, tag_scores_BNG: Tensor, targets: TreeTargets) -> Tensor:
    """(B,): log p of the trees and their tags."""
    words = scores_BNNC.shape[1]
    tree_B = log_likelihood(scores_BNNC, targets.labels[:, :words, :words], targets.tags.lengths)
    return tree_B + tag_log_probabilities(tag_scores_BNG, targets).sum(1)


def tag_log_probabilities(tag_scores_BNG: Tensor, targets: TreeTargets) -> Tensor:
    """(B, N): of each word's tag; 0 where it is not known, and behind the last word."""
    tag_BN, real_BN = targets.tags.values, targets.tags.mask()
    each_BN = tag_scores_BNG.log_softmax(2).gather(2, tag_BN.clamp(min=0)[..., None])[..., 0]
    return each_BN.masked_fill(~real_BN | (tag_BN < 0), 0.0)
