"""What a training makes small: the cross-entropy of each target token, and with R-Drop how dropout changes its mind.

Shapes: B batch, T target positions, V vocabulary.
"""

import torch
from torch import Tensor, nn

from transduce.data.collate import Batch
from transduce.errors import InputError
from transduce.layers.consistency import symmetric_divergence
from transduce.layers.cross_entropy import IGNORED, smoothed_cross_entropy
from transduce.models.protocols import Fills, Padded
from transduce.training.masked_words import masked_loss


def objective(model: nn.Module, batch: Batch, smoothing: float, r_drop: float) -> tuple[Tensor, Tensor]:
    """What is minimised, and the cross-entropy in it; both summed over the batch's target tokens, in nats.

    With r_drop = a > 0 the batch passes twice, under two dropouts (Wu et al. 2021, equations 2 to 4, halved, so that
    the loss keeps its scale):

        1/2 (CE_1 + CE_2) + a/4 (KL(p_1 || p_2) + KL(p_2 || p_1))

    A model that fills is asked for hidden words and lengths instead; see `transduce.training.masked_words`.

    Raises:
        InputError: R-Drop of a model that fills.
    """
    if isinstance(model, Fills):
        if r_drop:
            raise InputError("training.r_drop: only a model that predicts the next token can be trained with it.")
        loss = masked_loss(model, batch, smoothing)
        return loss, loss.detach()
    if not r_drop:
        loss = target_loss(model, batch, smoothing)
        return loss, loss.detach()
    source = _twice(batch.source) if batch.source else None
    logits_BTV = _logits(model, Batch(source, _twice(batch.target), batch.count))
    next_N = _next_tokens(batch.target).flatten()
    loss = smoothed_cross_entropy(logits_BTV.flatten(0, 1), next_N.repeat(2), smoothing) / 2
    one_NV, other_NV = (half.flatten(0, 1) for half in logits_BTV.chunk(2))
    divergence = symmetric_divergence(one_NV, other_NV, next_N != IGNORED)
    return loss + r_drop / 4 * divergence, loss.detach()


def target_loss(model: nn.Module, batch: Batch, smoothing: float = 0.0) -> Tensor:
    """Teacher forcing: the summed cross-entropy, in nats, of each target token given all true ones before it."""
    return smoothed_cross_entropy(_logits(model, batch).flatten(0, 1), _next_tokens(batch.target).flatten(), smoothing)


def _logits(model: nn.Module, batch: Batch) -> Tensor:
    target = batch.target
    return model(batch.source, Padded(target.values[:, :-1], target.lengths - 1))


def _next_tokens(target: Padded) -> Tensor:
    """(B, T - 1): the token after each position, `IGNORED` behind a row's end."""
    return target.values[:, 1:].masked_fill(~target.mask()[:, 1:], IGNORED)


def _twice(sequences: Padded) -> Padded:
    return Padded(torch.cat((sequences.values,) * 2), torch.cat((sequences.lengths,) * 2))
