"""The training objective of models that fill: predict hidden words of a target from the others, and its length.

    n words, k ~ uniform{1 .. n} of them hidden at random     (Ghazvininejad et al. 2019, section 3.2)
    loss = words / hidden words * sum over hidden words of -log p(word) + sum over targets of -log p(n)

The first factor, taken over the batch, keeps the loss on the scale of one that sees every word.
Shapes: B batch, T words, N hidden words, V vocabulary, L lengths.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from transduce.attention.reinforce import choices, surrogate
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.collate import Batch, words
from transduce.layers.cross_entropy import smoothed_cross_entropy
from transduce.models.protocols import Fills
from transduce.objectives.protocols import Loss


class Hidden(NamedTuple):
    """What is hidden of a batch's words.

    places: (B, T) bool, True = hidden.
    scale: words / hidden words of the whole batch, also where this is of a part of it.
    """

    places: Tensor
    scale: Tensor


@dataclass(frozen=True)
class MaskedLm:
    """smoothing: of the labels, of the words' part of the loss."""

    unit: ClassVar[str] = "token"
    smoothing: float = 0.0

    def draw(self, model: Fills, batch: Batch) -> Hidden:
        """What is hidden of the words."""
        return hide_some(batch)

    def rows(self, drawn: Hidden, place: slice, part: Batch) -> Hidden:
        return Hidden(drawn.places[place, : part.targets.values.shape[1] - 2], drawn.scale)

    def loss(self, model: Fills, batch: Batch, drawn: Hidden) -> Loss:
        """The loss above.

        Raises:
            InputError: the batch has no source.
        """
        if batch.inputs is None:
            raise InputError("[model] kind: a model that fills needs a source; language modelling has none.")
        target = words(batch.targets)
        hidden_BT, scale = drawn
        with choices() as made:
            memory = model.remember(batch.inputs)
            length_BL = model.lengths(memory, target.values.shape[1])
            logits_NV = model.fill(target, hidden_BT, memory)
        told_N, told_B = target.values[hidden_BT], length_BL.gather(1, target.lengths[:, None])[:, 0]
        loss = scale * smoothed_cross_entropy(logits_NV, told_N, self.smoothing) - told_B.sum()
        if made.log_probability is None:
            return Loss(loss, loss.detach())
        with torch.no_grad():
            normed_NV = logits_NV.log_softmax(-1, dtype=torch.float32)
            words_BT = torch.zeros(hidden_BT.shape, device=hidden_BT.device)
            words_BT[hidden_BT] = normed_NV.gather(1, told_N[:, None])[:, 0]
            reward_B = scale * words_BT.sum(1) + told_B
        return Loss(loss + surrogate(made.log_probability, reward_B, target.lengths + 1), loss.detach())

    @torch.inference_mode()
    def log_probabilities(self, model: Fills, batch: Batch) -> Tensor:
        """(B, T - 1): of each word, all words hidden, given the length; at the end token, of the length."""
        target = words(batch.targets)
        memory, hidden_BT = model.remember(batch.inputs), target.mask()
        rows, longest = hidden_BT.shape
        each_BT = torch.zeros(rows, longest + 1, dtype=torch.float64, device=hidden_BT.device)
        length_B1 = target.lengths[:, None]
        each_BT.scatter_(1, length_B1, model.lengths(memory, longest).gather(1, length_B1).double())
        if bool(hidden_BT.any()):
            seen = Padded(target.values, target.lengths.clamp(min=1))  # attention needs something to attend to
            normed_NV = model.fill(seen, hidden_BT, memory).log_softmax(-1, dtype=torch.float32)
            each_BT[:, :-1][hidden_BT] = normed_NV.gather(1, target.values[hidden_BT][:, None])[:, 0].double()
        return each_BT


def hide_some(batch: Batch) -> Hidden:
    """Draw what is hidden of the words of `batch`."""
    target = words(batch.targets)
    hidden_BT = hide(target)
    return Hidden(hidden_BT, target.lengths.sum() / hidden_BT.sum())


def hide(target: Padded) -> Tensor:
    """(B, T) bool: k of each row's n words, where every k from 1 to n and every choice of k words is equally likely."""
    noise_BT = torch.rand(target.values.shape, device=target.values.device)
    rank_BT = noise_BT.masked_fill(~target.mask(), torch.inf).argsort(1).argsort(1)
    share_B1 = torch.rand(len(target.lengths), 1, device=noise_BT.device)
    count_B1 = 1 + (share_B1 * target.lengths[:, None]).long()
    return (rank_BT < count_B1) & target.mask()
