"""Sampled cross-entropy, which approximates the cross-entropy over the whole vocabulary for a fraction of the work.

The sample contains all words to be predicted, and K others drawn without replacement, which represent all remaining
words (Bengio & Senecal 2008, "Adaptive importance sampling"; Jean et al. 2015, "On using very large target vocabulary",
section 3):

    log Z  ~  log (sum_{v predicted} exp s_v  +  (V - P) / K  sum_{v drawn} exp s_v)

The estimate of the sum is unbiased, so its logarithm is slightly low on average. Label smoothing needs the mean of all
logits. That is the logit of the mean row of the matrix, so it is computed exactly.

Shapes: N predicted positions, D width, V vocabulary, P distinct words to be predicted, S words in the sample.
"""

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.layers.cross_entropy import IGNORED
from transduce.layers.linear_cross_entropy import linear_cross_entropy


class Sample(NamedTuple):
    """A sample of a vocabulary of any size.

    predicted_P: ids of the words to be predicted, ascending.
    others: number of other words to draw, if there are as many.
    seed: seed of the draw.
    """

    predicted_P: Tensor
    others: int
    seed: int

    def words(self, vocabulary: int) -> tuple[Tensor, Tensor]:
        """The ids (S,), and for each the logarithm of the number of words that it represents."""
        left_V = torch.ones(vocabulary, dtype=torch.bool)
        left_V[self.predicted_P.cpu()] = False
        rest = left_V.nonzero()[:, 0]
        drawn = rest[torch.randperm(len(rest), generator=torch.Generator().manual_seed(self.seed))[: self.others]]
        log_S = torch.zeros(len(self.predicted_P) + len(drawn))
        if len(drawn):
            log_S[len(self.predicted_P) :] = math.log(len(rest) / len(drawn))
        device = self.predicted_P.device
        return torch.cat((self.predicted_P, drawn.to(device))), log_S.to(device)


def sample(target_N: Tensor, others: int) -> Sample:
    """A sample with the words of `target_N` that are not `IGNORED`, and a seed from torch's random generator."""
    return Sample(torch.unique(target_N[target_N != IGNORED]), others, int(torch.randint(2**62, ())))


def sampled_cross_entropy(
    hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, sample: Sample, smoothing: float = 0.0
) -> Tensor:
    """`linear_cross_entropy(hidden_ND, weight_VD, target_N, smoothing)` over the words of `sample`, a scalar in nats.

    The two are equal if the sample contains all words. Every target must be in the sample. Its backward can run only
    once.

    Args:
        hidden_ND: hidden states.
        weight_VD: the matrix of the output layer.
        target_N: int64 target ids; `IGNORED` positions add nothing.
        sample: the words that represent the vocabulary.
        smoothing: label smoothing.
    """
    word_S, log_S = sample.words(len(weight_VD))
    place_V = torch.empty(len(weight_VD), dtype=torch.long, device=word_S.device)
    place_V[word_S] = torch.arange(len(word_S), device=word_S.device)
    real_N, word_N = target_N != IGNORED, target_N.clamp(min=0)
    place_N = torch.where(real_N, place_V[word_N], IGNORED)
    loss = linear_cross_entropy(hidden_ND, weight_VD[word_S], place_N, bias_V=log_S)
    if not smoothing:
        return loss
    towards_ND = (F.embedding(word_N, weight_VD) - weight_VD.mean(0)) * real_N[:, None]
    return loss + smoothing * (hidden_ND * towards_ND).sum()
