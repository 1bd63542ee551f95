"""What a model that predicts the next token is trained on: its cross-entropy, and with R-Drop its consistency.

Shapes: B batch, T target positions, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeGuard

import torch
from torch import Tensor, nn

from transduce.attention.reinforce import Choices, choices, surrogate
from transduce.core.errors import InputError
from transduce.core.padded import Padded, map_tree
from transduce.data.collate import Batch
from transduce.kernels.matmul import linear
from transduce.layers.cross_entropy import (
    IGNORED,
    Sample,
    linear_cross_entropy,
    sample,
    sampled_cross_entropy,
    smoothed_cross_entropy,
    symmetric_divergence,
)
from transduce.models.protocols import PredictsByProduct, stands_in
from transduce.objectives.protocols import Loss

NO_PRODUCT = (
    "training.sampled_words: the model must predict the next token by a product with a matrix, and without a "
    "pointer: leave it out."
)


@dataclass(frozen=True)
class NextToken:
    """Teacher forcing: the cross-entropy of each target token given all true ones before it.

    With r_drop = a > 0 the batch passes twice, under two dropouts (Wu et al. 2021, equations 2 to 4, halved, so that
    the loss keeps its scale):

        1/2 (CE_1 + CE_2) + a/4 (KL(p_1 || p_2) + KL(p_2 || p_1))

    Where attention chose, what is minimised has the gradient of the cross-entropy by way of the choices as well.

    smoothing: of the labels (Szegedy et al. 2016, section 7).
    sampled_words: how many stand for the whole vocabulary (`transduce.layers.cross_entropy`); None = all.
    """

    unit: ClassVar[str] = "token"
    smoothing: float = 0.0
    r_drop: float = 0.0
    sampled_words: int | None = None

    def draw(self, model: Any, batch: Batch) -> Sample | None:
        """The words that stand for the vocabulary."""
        return None if self.sampled_words is None else sample(_next_tokens(batch.targets), self.sampled_words)

    def rows(self, drawn: Sample | None, place: slice, part: Batch) -> Sample | None:
        """The same words for every part."""
        return drawn

    def loss(self, model: Any, batch: Batch, drawn: Sample | None) -> Loss:
        """As above.

        Raises:
            InputError: sampled words of a model whose logits are no product.
        """
        if self.sampled_words is not None and not _predicts_by_product(model):
            raise InputError(NO_PRODUCT)
        next_BT = _next_tokens(batch.targets)
        if self.r_drop:
            return self._twice(model, batch, next_BT)
        with choices() as made:
            loss, logits = _cross_entropy(model, batch, next_BT, self.smoothing, drawn)
        return Loss(_with_choices(loss, made, logits, next_BT), loss.detach())

    def of_logits(self, logits_BTV: Tensor, made: Choices, batch: Batch) -> Loss:
        """The cross-entropy of logits that are there, with the choices of attention on the way to them."""
        next_BT = _next_tokens(batch.targets)
        loss = smoothed_cross_entropy(logits_BTV.flatten(0, 1), next_BT.flatten(), self.smoothing)
        return Loss(_with_choices(loss, made, lambda: logits_BTV, next_BT), loss.detach())

    @torch.inference_mode()
    def log_probabilities(self, model: Any, batch: Batch) -> Tensor:
        """(B, T - 1): of each target token after the first."""
        return _chosen(_logits(model, batch), batch)

    def _twice(self, model: Any, batch: Batch, next_BT: Tensor) -> Loss:
        """R-Drop."""
        source = _doubled(batch.inputs) if batch.inputs else None
        with choices() as made:
            logits_BTV = _logits(model, Batch(source, _doubled(batch.targets), batch.units))
        next_N = next_BT.flatten()
        loss = smoothed_cross_entropy(logits_BTV.flatten(0, 1), next_N.repeat(2), self.smoothing)
        one_NV, other_NV = (half.flatten(0, 1) for half in logits_BTV.chunk(2))
        divergence = symmetric_divergence(one_NV, other_NV, next_N != IGNORED)
        minimised = _with_choices(loss, made, lambda: logits_BTV, next_BT.repeat(2, 1)) / 2
        return Loss(minimised + self.r_drop / 4 * divergence, loss.detach() / 2)


@dataclass(frozen=True)
class CarriedNextToken(NextToken):
    """The same over a running text, each batch going on from the state that the one before left in the model.

    No gradient flows back into an earlier batch (truncated back-propagation through time). Without a state, rows are
    texts by themselves.

    memory: how many positions a state that grows with them keeps.
    """

    memory: int = 1

    def loss(self, model: Any, batch: Batch, drawn: Sample | None) -> Loss:
        """Without the state after it."""
        return self.loss_and_state(model, batch, drawn)[0]

    def loss_and_state(self, model: Any, batch: Batch, drawn: Sample | None) -> tuple[Loss, Any]:
        """The loss, and the state after the batch, without gradient."""
        next_BT = _next_tokens(batch.targets)
        with choices() as made:
            hidden_BTD, weight_VD, state = self._extend(model, batch)
            loss = _product_cross_entropy(hidden_BTD, weight_VD, next_BT, self.smoothing, drawn)
        minimised = _with_choices(loss, made, lambda: linear(hidden_BTD, weight_VD), next_BT)
        return Loss(minimised, loss.detach()), map_tree(Tensor.detach, state)

    def log_probabilities(self, model: Any, batch: Batch) -> Tensor:
        """(B, T - 1): of each target token after the first."""
        return self.evaluated(model, batch)[0]

    @torch.inference_mode()
    def evaluated(self, model: Any, batch: Batch) -> tuple[Tensor, Any]:
        """The same, and the state after the batch."""
        hidden_BTD, weight_VD, state = self._extend(model, batch)
        return _chosen(linear(hidden_BTD, weight_VD), batch), state

    def _extend(self, model: Any, batch: Batch) -> tuple[Tensor, Tensor, Any]:
        state = model.initial_state(batch.examples) if batch.state is None else batch.state
        return model.extend(_said(batch), state, self.memory)


def _cross_entropy(
    model: nn.Module, batch: Batch, next_BT: Tensor, smoothing: float, sample: Sample | None
) -> tuple[Tensor, Callable[[], Tensor]]:
    """The loss, and how to get the logits (B, T, V), which are not held where they are a product."""
    if _predicts_by_product(model) and (found := model.before_logits(batch.inputs, _said(batch))):
        hidden_BTD, weight_VD = found
        loss = _product_cross_entropy(hidden_BTD, weight_VD, next_BT, smoothing, sample)
        return loss, lambda: linear(hidden_BTD, weight_VD)
    if sample:
        raise InputError(NO_PRODUCT)
    logits_BTV = _logits(model, batch)
    return smoothed_cross_entropy(logits_BTV.flatten(0, 1), next_BT.flatten(), smoothing), lambda: logits_BTV


def _product_cross_entropy(
    hidden_BTD: Tensor, weight_VD: Tensor, next_BT: Tensor, smoothing: float, sample: Sample | None
) -> Tensor:
    given = hidden_BTD.flatten(0, 1), weight_VD, next_BT.flatten()
    return sampled_cross_entropy(*given, sample, smoothing) if sample else linear_cross_entropy(*given, smoothing)


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
    return model(batch.inputs, _said(batch))


def _chosen(logits_BTV: Tensor, batch: Batch) -> Tensor:
    """(B, T) fp64: the log-probability of each target token after the first; 0 behind a row's end."""
    normed_BTV = logits_BTV.log_softmax(-1, dtype=torch.float32)
    chosen_BT = normed_BTV.gather(-1, batch.targets.values[:, 1:, None])[..., 0].double()
    return chosen_BT.masked_fill(~batch.targets.mask()[:, 1:], 0.0)


def _said(batch: Batch) -> Padded:
    """The target but for its last token: what each next one is predicted from."""
    return Padded(batch.targets.values[:, :-1], batch.targets.lengths - 1)


def _next_tokens(target: Padded) -> Tensor:
    """(B, T - 1): the token after each position, `IGNORED` behind a row's end."""
    return target.values[:, 1:].masked_fill(~target.mask()[:, 1:], IGNORED)


def _doubled(sequences: Padded) -> Padded:
    return Padded(torch.cat((sequences.values,) * 2), torch.cat((sequences.lengths,) * 2))
