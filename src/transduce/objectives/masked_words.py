"""Masked language modelling: hidden words are predicted from those on both sides.

    words of the share r are hidden, whole (Devlin et al. 2019, section 3.1; whole words: their release of May 2019)
    a hidden piece reads: 80 % the mask, 10 % a piece drawn at random, 10 % itself
    loss = pieces / hidden pieces * sum over hidden pieces of -log p(piece | the row)

The first factor, taken over the batch, keeps the loss on the scale of one that predicts every piece. Likelihood hides
every word once, a seventh of a row's words at a time (pseudo-log-likelihood, Salazar et al. 2020, in fewer passes).

Shapes: B batch, S positions, N hidden pieces, V vocabulary.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.data.columns.masked_text import WordsOfText
from transduce.layers.cross_entropy import smoothed_cross_entropy
from transduce.models.protocols import PredictsMasked
from transduce.objectives.protocols import Loss

KEPT, RANDOM = 0.1, 0.1  # shares of the hidden pieces that read themselves, or any other
GROUPS = 7  # of a row's words, each hidden in a pass of its own: about 15 % at a time


class Masks(NamedTuple):
    """What is hidden of a batch, and what stands there instead.

    places: (B, S) bool, True = hidden. shown: (B, S) ids that the model reads.
    scale: pieces / hidden pieces of the whole batch, also where this is of a part of it.
    """

    places: Tensor
    shown: Tensor
    scale: Tensor


@dataclass(frozen=True)
class MaskedWords:
    """mask: the id of the token for what is hidden. ordinary: ids that may stand there at random.

    rate: the share of words that is hidden, at least one of each row. smoothing: of the labels.
    """

    unit: ClassVar[str] = "token"
    mask: int
    ordinary: tuple[int, ...]
    rate: float = 0.15
    smoothing: float = 0.0

    def draw(self, model: PredictsMasked, batch: Batch) -> Masks:
        """Which words are hidden, and what stands in their places."""
        text: WordsOfText = batch.inputs
        hidden_BS = hidden_words(text, self.rate)
        shown_BS = torch.where(hidden_BS, self._instead(text.pieces.values), text.pieces.values)
        return Masks(hidden_BS, shown_BS, text.known().sum() / hidden_BS.sum().clamp(min=1))

    def _instead(self, pieces_BS: Tensor) -> Tensor:
        """(B, S): the mask, any piece, or the same."""
        chance_BS = torch.rand(pieces_BS.shape, device=pieces_BS.device)
        ordinary = torch.tensor(self.ordinary, device=pieces_BS.device)
        any_BS = ordinary[torch.randint(len(ordinary), pieces_BS.shape, device=pieces_BS.device)]
        others_BS = torch.where(chance_BS < KEPT + RANDOM, any_BS, torch.full_like(pieces_BS, self.mask))
        return torch.where(chance_BS < KEPT, pieces_BS, others_BS)

    def rows(self, drawn: Masks, place: slice, part: Batch) -> Masks:
        width = part.inputs.pieces.values.shape[1]
        return Masks(drawn.places[place, :width], drawn.shown[place, :width], drawn.scale)

    def loss(self, model: PredictsMasked, batch: Batch, drawn: Masks) -> Loss:
        pieces: Padded = batch.inputs.pieces
        logits_NV = model.predict_masked(Padded(drawn.shown, pieces.lengths), drawn.places)
        loss = drawn.scale * smoothed_cross_entropy(logits_NV, pieces.values[drawn.places], self.smoothing)
        return Loss(loss, loss.detach())

    @torch.inference_mode()
    def log_probabilities(self, model: PredictsMasked, batch: Batch) -> Tensor:
        """(B, N) fp64: of each piece, its whole word and every seventh before and behind it hidden."""
        text: WordsOfText = batch.inputs
        pieces, known_BS = text.pieces, text.known()
        each_BS = torch.zeros(known_BS.shape, dtype=torch.float64, device=known_BS.device)
        for group in range(GROUPS):
            hidden_BS = known_BS & (text.words.values % GROUPS == group)
            if bool(hidden_BS.any()):
                shown = Padded(pieces.values.masked_fill(hidden_BS, self.mask), pieces.lengths)
                normed_NV = model.predict_masked(shown, hidden_BS).log_softmax(-1, dtype=torch.float32)
                each_BS[hidden_BS] = normed_NV.gather(1, pieces.values[hidden_BS][:, None])[:, 0].double()
        places_BN = (~known_BS).to(torch.int8).argsort(dim=1, stable=True)
        return each_BS.gather(1, places_BN)[:, : int(known_BS.sum(1).max())]


def hidden_words(text: WordsOfText, rate: float) -> Tensor:
    """(B, S) bool: the pieces of each row's share `rate` of words, at least one; every choice is equally likely."""
    words_BS, known_BS = text.words.values, text.known()
    count_B1 = words_BS.masked_fill(~known_BS, -1).amax(1, keepdim=True) + 1
    noise_BS = torch.rand(words_BS.shape, device=words_BS.device)  # of word w at place w
    place_S = torch.arange(words_BS.shape[1], device=words_BS.device)
    rank_BS = noise_BS.masked_fill(place_S >= count_B1, torch.inf).argsort(1).argsort(1)
    chosen_BS = rank_BS < (rate * count_B1).round().clamp(min=1)
    return known_BS & chosen_BS.gather(1, words_BS.clamp(min=0))
