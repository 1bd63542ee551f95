"""The training objective: cross-entropy of each target token, and with R-Drop the divergence of two dropout passes.

Shapes: B batch, T target positions, V vocabulary.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeGuard

import torch
from torch import Tensor, nn

from transduce.attention.reinforce import Choices, choices, surrogate
from transduce.core.errors import InputError
from transduce.core.padded import Padded
from transduce.data.collate import Batch
from transduce.kernels.matmul import linear
from transduce.layers.consistency import symmetric_divergence
from transduce.layers.cross_entropy import IGNORED, smoothed_cross_entropy
from transduce.layers.linear_cross_entropy import linear_cross_entropy
from transduce.layers.sampled_cross_entropy import Sample, sample, sampled_cross_entropy
from transduce.models.protocols import Aligns, Fills, PredictsByProduct, stands_in, writes_at_once
from transduce.objectives.ctc import alignment_loss
from transduce.objectives.masked_lm import Hidden, hide_some, masked_loss

NO_PRODUCT = (
    "training.sampled_words: the model must predict the next token by a product with a matrix, and without a "
    "pointer: leave it out."
)


class Drawn(NamedTuple):
    """Random choices for a whole batch, made before it may be split into microbatches.

    hidden: the hidden words, for a model that fills.
    sample: the words that represent the vocabulary, with training.sampled_words.
    """

    hidden: Hidden | None = None
    sample: Sample | None = None


class LossConfig(Protocol):
    """The settings of [training] that a loss reads."""

    @property
    def label_smoothing(self) -> float: ...
    @property
    def r_drop(self) -> float: ...
    @property
    def sampled_words(self) -> int | None: ...


def draw(model: nn.Module, batch: Batch, config: LossConfig) -> Drawn:
    """What `objective` needs of `batch`, by torch's generator."""
    if isinstance(model, Fills):
        return Drawn(hidden=hide_some(batch))
    count = config.sampled_words
    return Drawn(sample=sample(_next_tokens(batch.target), count)) if count is not None else Drawn()


def objective(model: nn.Module, batch: Batch, config: LossConfig, drawn: Drawn | None = None) -> tuple[Tensor, Tensor]:
    """The loss to minimize, and the cross-entropy in it; both summed over the batch's target tokens, in nats.

    With teacher forcing, each target token is predicted from all true tokens before it. With r_drop = a > 0, the batch
    passes twice with different dropout (Wu et al. 2021, equations 2 to 4, halved to keep the scale of the loss):

        1/2 (CE_1 + CE_2) + a/4 (KL(p_1 || p_2) + KL(p_2 || p_1))

    With hard attention, the loss also contains the REINFORCE term of the sampled choices. For a model that fills, the
    objective is `transduce.objectives.masked_lm`; for one that aligns, `transduce.objectives.ctc`.

    Args:
        model: the model.
        batch: the batch.
        config: the settings of the loss.
        drawn: the result of `draw`; None = draw here.

    Raises:
        InputError: R-Drop with a model that predicts no next token, or sampled words with a model whose logits are not
            a product.
    """
    smoothing, r_drop = config.label_smoothing, config.r_drop
    if writes_at_once(model) and r_drop:
        raise InputError("training.r_drop: only a model that predicts the next token can be trained with it.")
    if config.sampled_words is not None and not _predicts_by_product(model):
        raise InputError(NO_PRODUCT)
    drawn = drawn or draw(model, batch, config)
    if isinstance(model, Aligns):
        return alignment_loss(model, batch, smoothing)
    if isinstance(model, Fills):
        return masked_loss(model, batch, smoothing, drawn.hidden)
    next_BT = _next_tokens(batch.target)
    if not r_drop:
        with choices() as made:
            loss, logits = _cross_entropy(model, batch, next_BT, smoothing, drawn.sample)
        return _with_choices(loss, made, logits, next_BT), loss.detach()
    source = _twice(batch.source) if batch.source else None
    with choices() as made:
        logits_BTV = _logits(model, Batch(source, _twice(batch.target), batch.count))
    next_N = next_BT.flatten()
    loss = smoothed_cross_entropy(logits_BTV.flatten(0, 1), next_N.repeat(2), smoothing)
    one_NV, other_NV = (half.flatten(0, 1) for half in logits_BTV.chunk(2))
    divergence = symmetric_divergence(one_NV, other_NV, next_N != IGNORED)
    minimised = _with_choices(loss, made, lambda: logits_BTV, next_BT.repeat(2, 1)) / 2 + r_drop / 4 * divergence
    return minimised, loss.detach() / 2


def _cross_entropy(
    model: nn.Module, batch: Batch, next_BT: Tensor, smoothing: float, sample: Sample | None
) -> tuple[Tensor, Callable[[], Tensor]]:
    """The loss, and how to get the logits (B, T, V), which are not held where they are a product."""
    if _predicts_by_product(model) and (found := model.before_logits(batch.source, _said(batch))):
        hidden_BTD, weight_VD = found
        given = hidden_BTD.flatten(0, 1), weight_VD, next_BT.flatten()
        loss = sampled_cross_entropy(*given, sample, smoothing) if sample else linear_cross_entropy(*given, smoothing)
        return loss, lambda: linear(hidden_BTD, weight_VD)
    if sample:
        raise InputError(NO_PRODUCT)
    logits_BTV = _logits(model, batch)
    return smoothed_cross_entropy(logits_BTV.flatten(0, 1), next_BT.flatten(), smoothing), lambda: logits_BTV


def _predicts_by_product(model: nn.Module) -> TypeGuard[PredictsByProduct]:
    """Whether its product is what calling it gives: nobody has changed or looks at the latter alone."""
    looked_at = model._forward_hooks or model._forward_pre_hooks
    return isinstance(model, PredictsByProduct) and not looked_at and stands_in(model, "before_logits", "forward")


def _with_choices(loss: Tensor, made: Choices, logits: Callable[[], Tensor], next_BT: Tensor) -> Tensor:
    """The loss, and if attention chose, what teaches it to: a sentence's log-likelihood rewards its choices."""
    if made.log_probability is None:
        return loss
    with torch.no_grad():
        likelihood_BTV = logits().log_softmax(-1, dtype=torch.float32)
        likelihood_BT1 = likelihood_BTV.gather(-1, next_BT.clamp(min=0)[..., None])
        real_BT = next_BT != IGNORED
        reward_B = (likelihood_BT1[..., 0] * real_BT).sum(1)
    return loss + surrogate(made.log_probability, reward_B, real_BT.sum(1))


def _logits(model: nn.Module, batch: Batch) -> Tensor:
    logits_BTV: Tensor = model(batch.source, _said(batch))
    return logits_BTV


def _said(batch: Batch) -> Padded:
    """The target but for its last token: what each next one is predicted from."""
    return Padded(batch.target.values[:, :-1], batch.target.lengths - 1)


def _next_tokens(target: Padded) -> Tensor:
    """(B, T - 1): the token after each position, `IGNORED` behind a row's end."""
    return target.values[:, 1:].masked_fill(~target.mask()[:, 1:], IGNORED)


def _twice(sequences: Padded) -> Padded:
    return Padded(torch.cat((sequences.values,) * 2), torch.cat((sequences.lengths,) * 2))
