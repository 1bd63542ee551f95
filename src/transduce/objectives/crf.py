"""What a tagger with a CRF is trained on: the probability of the whole row of labels of each text.

    loss = -sum_b log p(y_b1 .. y_bN | x_b)                    (Lafferty et al. 2001; Lample et al. 2016, section 2.2)

Likelihood has a term for each word, log p(y_n | y_1 .. y_{n-1}, x), as text has one for each token. A label of a
held-out file that training never had is not known, and the rows of labels that agree with the others are summed.

Shapes: B batch, N words, C labels.
"""

from typing import ClassVar

import torch
from torch import Tensor

from transduce.data.collate import Batch
from transduce.layers.crf import log_likelihood, log_likelihood_terms
from transduce.models.protocols import LabelsWords
from transduce.objectives.protocols import Deterministic, Loss


class CrfLikelihood(Deterministic):
    """The negative log-likelihood of rows of labels."""

    unit: ClassVar[str] = "word"

    def loss(self, model: LabelsWords, batch: Batch, drawn: None = None) -> Loss:
        labels, scores_BNC = batch.targets.ids, model.emissions(batch.inputs).float()
        loss = -log_likelihood(scores_BNC, labels.values, labels.lengths, model.chain.chain()).sum()
        return Loss(loss, loss.detach())

    @torch.inference_mode()
    def log_probabilities(self, model: LabelsWords, batch: Batch) -> Tensor:
        """(B, N): of each word's label after those before, those that are known side by side."""
        labels, scores_BNC = batch.targets.ids, model.emissions(batch.inputs).double()
        chain = model.chain.chain(torch.float64)
        each_BN = log_likelihood_terms(scores_BNC, labels.values, labels.lengths, chain)
        return each_BN.gather(1, (~batch.targets.known()).to(torch.int8).argsort(dim=1, stable=True))
