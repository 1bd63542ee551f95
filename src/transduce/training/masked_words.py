"""What a model that fills is trained on: some words of a target are hidden, and it tells them from the others.

    n words, k ~ uniform{1 .. n} of them hidden at random     (Ghazvininejad et al. 2019, section 3.2)
    loss = words / hidden words * sum over hidden words of -log p(word) + sum over targets of -log p(n)

The first factor, taken over the batch, keeps the loss on the scale of one that sees every word.
Shapes: B batch, T words, N hidden words, V vocabulary, L lengths.
"""

import torch
from torch import Tensor

from transduce.data.collate import Batch, words
from transduce.errors import InputError
from transduce.layers.cross_entropy import smoothed_cross_entropy
from transduce.models.protocols import Fills, Padded


def masked_loss(model: Fills, batch: Batch, smoothing: float) -> Tensor:
    """In nats, summed over the batch; the words' part is smoothed. What is hidden is drawn from torch's generator.

    Raises:
        InputError: the batch has no source.
    """
    if batch.source is None:
        raise InputError("[model] kind: a model that fills needs a source; language modelling has none.")
    target = words(batch.target)
    hidden_BT = hide(target)
    memory = model.remember(batch.source)
    length_BL = model.lengths(memory, target.values.shape[1])
    logits_NV = model.fill(target, hidden_BT, memory)
    told = smoothed_cross_entropy(logits_NV, target.values[hidden_BT], smoothing)
    return told * (target.lengths.sum() / len(logits_NV)) - length_BL.gather(1, target.lengths[:, None]).sum()


def hide(target: Padded) -> Tensor:
    """(B, T) bool: of each row's n words k, each number from 1 to n and each choice of k words equally likely."""
    noise_BT = torch.rand(target.values.shape, device=target.values.device)
    rank_BT = noise_BT.masked_fill(~target.mask(), torch.inf).argsort(1).argsort(1)
    share_B1 = torch.rand(len(target.lengths), 1, device=noise_BT.device)
    count_B1 = 1 + (share_B1 * target.lengths[:, None]).long()
    return (rank_BT < count_B1) & target.mask()
