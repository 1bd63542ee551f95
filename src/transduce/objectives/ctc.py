"""The training objective of models with CTC output: the probability of targets, summed over alignments.

    loss = -(1 - e) log p(y | x) - e T / P sum_p mean_v log p_p(v)          T target tokens, the end counted; P places

The second term is label smoothing (Szegedy et al. 2016, section 7) of the places, scaled to one term per token.
Shapes: B batch, P places, T target tokens, U target tokens and the blank.
"""

from torch import Tensor

from transduce.attention.reinforce import choices, surrogate
from transduce.core.errors import InputError
from transduce.data.collate import Batch, words
from transduce.layers.ctc import blank_of, ids_of, least_places, log_likelihood, log_probabilities_of, written
from transduce.models.protocols import Aligns


def alignment_loss(model: Aligns, batch: Batch, smoothing: float) -> tuple[Tensor, Tensor]:
    """The loss to minimize, and the loss above; in nats, summed over the batch.

    They differ only with hard attention, by the REINFORCE term.

    Raises:
        InputError: the batch has no source.
    """
    if batch.source is None:
        raise InputError("[model] kind: a model that aligns needs a source; language modelling has none.")
    target = words(batch.target)
    with choices() as made:
        places = model.align(batch.source, least_places(*target))
    ids_BPU = ids_of(target.values, places.values.shape[1], blank_of(batch.target.values))
    of_BPU, mean_BP = log_probabilities_of(places.values, ids_BPU)
    each_B = log_likelihood(written(of_BPU, places.lengths, *target))
    share_B = (target.lengths + 1) / places.lengths
    loss = -(1 - smoothing) * each_B.sum() - smoothing * (share_B * (mean_BP * places.mask()).sum(1)).sum()
    if made.log_probability is None:
        return loss, loss.detach()
    return loss + surrogate(made.log_probability, each_B.detach(), target.lengths + 1), loss.detach()
