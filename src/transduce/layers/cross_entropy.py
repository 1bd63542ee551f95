"""Cross-entropy with label smoothing, which computes its gradient in the same pass over the logits.

The output layer's product and the cross-entropy together, a few hundred rows at a time. All logits are never held.

The gradient is computed in the same pass, while the logits are in the processor's cache. What is stored for the
backward pass has the size of the hidden states and of the matrix.

Sampled cross-entropy, which approximates the cross-entropy over the whole vocabulary for a fraction of the work.

The sample contains all words to be predicted, and K others drawn without replacement, which represent all remaining
words (Bengio & Senecal 2008, "Adaptive importance sampling"; Jean et al. 2015, "On using very large target vocabulary",
section 3):

    log Z  ~  log (sum_{v predicted} exp s_v  +  (V - P) / K  sum_{v drawn} exp s_v)

The estimate of the sum is unbiased, so its logarithm is slightly low on average. Label smoothing needs the mean of all
logits. That is the logit of the mean row of the matrix, so it is computed exactly.

The divergence of two predictions of the same tokens, which R-Drop minimizes (Wu et al. 2021).

Shapes: N predicted positions, D width, V vocabulary, P distinct words to be predicted, S words in the sample.
"""

import math
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from transduce.kernels.matmul import linear
from transduce.kernels.native import cross_entropy as native

ROWS = 512  # rows of logits at a time on a CPU: of 8,000 words in bf16 8 MB
ELEMENTS = 2**26  # logits at a time elsewhere
ROUND = 64  # on a CPU in bf16 rows come in multiples of this: oneDNN makes a program for each number that it meets

CHUNK = 64  # rows at a time: 64 x 8,000 fp32 logits stay in the processor's cache


IMPOSSIBLE = -5e8  # a logit below this says never
IGNORED = -1  # the target of a position that is not predicted, such as padding


def smoothed_cross_entropy(logits_NV: Tensor, target_N: Tensor, smoothing: float = 0.0) -> Tensor:
    """The sum over N of the label-smoothed cross-entropy (Szegedy et al. 2016, section 7), a scalar in nats.

        loss = -(1 - e) log p(y) - e / V * sum_v log p(v)

    Words whose logits are below `IMPOSSIBLE` get no share of e, and V does not count them: a model that can never say a
    word, by a bias of -1e9, is not to be taught to.

    It is computed in fp32 for any dtype of the logits. Its backward can run only once.

    Args:
        logits_NV: the logits.
        target_N: int64 target ids. Positions whose target is `IGNORED` add nothing and get no gradient.
        smoothing: e.
    """
    if native.can_compare(logits_NV):
        return native.smoothed_cross_entropy(logits_NV, target_N, smoothing)
    loss: Tensor = _SmoothedCrossEntropy.apply(logits_NV, target_N, smoothing)  # type: ignore[no-untyped-call]
    return loss


def loss_and_gradient(logits_NV: Tensor, target_N: Tensor, smoothing: float = 0.0) -> tuple[Tensor, Tensor]:
    """`smoothed_cross_entropy` in fp64 and its gradient (N, V), which may overwrite the logits."""
    if native.can_compare(logits_NV):
        return native.loss_and_gradient(logits_NV, target_N, smoothing)
    return _in_chunks(logits_NV, target_N, smoothing)


def _in_chunks(logits_NV: Tensor, target_N: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    total = torch.zeros((), dtype=torch.float64, device=logits_NV.device)
    gradient_NV = torch.empty_like(logits_NV)
    for start in range(0, len(logits_NV), CHUNK):
        rows = slice(start, start + CHUNK)
        loss, gradient_NV[rows] = _loss_and_gradient(logits_NV[rows].float(), target_N[rows, None], smoothing)
        total += loss
    return total, gradient_NV


class _SmoothedCrossEntropy(torch.autograd.Function):
    """d loss / d logits = softmax(logits) - (1 - e) onehot(y) - e / V."""

    @staticmethod
    def forward(ctx: Any, logits_NV: Tensor, target_N: Tensor, smoothing: float) -> Tensor:
        total, gradient_NV = _in_chunks(logits_NV, target_N, smoothing)
        ctx.save_for_backward(gradient_NV)
        return total.float()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (gradient_NV,) = ctx.saved_tensors
        return gradient_NV.mul_(gradients[0]), None, None


def _loss_and_gradient(logits_NV: Tensor, target_N1: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The loss of these rows, summed, and its gradient (N, V)."""
    real_N1 = target_N1 != IGNORED
    target_N1 = target_N1.clamp(min=0)
    possible_NV = logits_NV > IMPOSSIBLE
    possible_N1 = possible_NV.sum(1, keepdim=True)
    highest_N1 = logits_NV.amax(1, keepdim=True)
    shifted_NV = logits_NV - highest_N1
    right_N1 = shifted_NV.gather(1, target_N1)
    mean_N1 = shifted_NV.where(possible_NV, 0.0).sum(1, keepdim=True) / possible_N1
    probability_NV = shifted_NV.exp_()
    mass_N1 = probability_NV.sum(1, keepdim=True)
    loss_N1 = mass_N1.log() - (1 - smoothing) * right_N1 - smoothing * mean_N1
    gradient_NV = probability_NV.div_(mass_N1).sub_(possible_NV * (smoothing / possible_N1))
    gradient_NV.scatter_add_(1, target_N1, torch.full_like(right_N1, smoothing - 1))
    return (loss_N1 * real_N1).sum(dtype=torch.float64), gradient_NV.mul_(real_N1)


def linear_cross_entropy(
    hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, smoothing: float = 0.0, bias_V: Tensor | None = None
) -> Tensor:
    """`smoothed_cross_entropy(hidden_ND @ weight_VD.T + bias_V, target_N, smoothing)`, a scalar in nats.

    Under autocast, products use its dtype and sums use fp32. Its backward can run only once, and gives no gradient for
    the bias.

    Args:
        hidden_ND: hidden states.
        weight_VD: the matrix of the output layer.
        target_N: int64 target ids; `IGNORED` positions add nothing.
        smoothing: label smoothing.
        bias_V: added to the logits; None = no bias.
    """
    device = hidden_ND.device.type
    lower = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else hidden_ND.dtype
    loss: Tensor = _LinearCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden_ND, weight_VD, target_N, smoothing, None if bias_V is None else bias_V.to(lower), lower
    )
    return loss


class _LinearCrossEntropy(torch.autograd.Function):
    """With G = d loss / d logits:   d hidden = G W,   d W = G^T hidden."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden_ND: Tensor,
        weight_VD: Tensor,
        target_N: Tensor,
        smoothing: float,
        bias_V: Tensor | None,
        lower: torch.dtype,
    ) -> Tensor:
        given = hidden_ND.to(lower), weight_VD.to(lower), target_N, smoothing, bias_V
        with torch.autocast(hidden_ND.device.type, enabled=False):
            if not any(ctx.needs_input_grad[:2]):
                return _loss(*given)
            total, *gradients = _loss_and_gradients(*given)
        ctx.save_for_backward(*gradients)
        ctx.dtypes = hidden_ND.dtype, weight_VD.dtype
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dloss: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        dhidden_ND, dweight_VD = (
            each.mul_(dloss).to(to) for each, to in zip(ctx.saved_tensors, ctx.dtypes, strict=True)
        )
        return dhidden_ND, dweight_VD, None, None, None, None


def _loss(hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, smoothing: float, bias_V: Tensor | None) -> Tensor:
    rows = _rows(weight_VD)
    total = torch.zeros((), dtype=torch.float64, device=hidden_ND.device)
    for some_CD, target_C in zip(torch.split(hidden_ND, rows), torch.split(target_N, rows), strict=True):
        total += smoothed_cross_entropy(linear(some_CD, weight_VD, bias_V), target_C, smoothing)
    return total.float()


def _loss_and_gradients(
    hidden_ND: Tensor, weight_VD: Tensor, target_N: Tensor, smoothing: float, bias_V: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The loss, and its gradients for the hidden states (in their dtype) and the matrix (in fp32)."""
    rows, count = _rows(weight_VD), len(hidden_ND)
    if more := -count % ROUND if hidden_ND.dtype is torch.bfloat16 and hidden_ND.device.type == "cpu" else 0:
        hidden_ND, target_N = F.pad(hidden_ND, (0, 0, 0, more)), F.pad(target_N, (0, more), value=IGNORED)
    total = torch.zeros((), dtype=torch.float64, device=hidden_ND.device)
    dhidden: list[Tensor] = []
    dweight_VD: Tensor | None = None
    for some_CD, target_C in zip(torch.split(hidden_ND, rows), torch.split(target_N, rows), strict=True):
        loss, gradient_CV = loss_and_gradient(linear(some_CD, weight_VD, bias_V), target_C, smoothing)
        total += loss
        dhidden.append(linear(gradient_CV, weight_VD.T))
        part_VD = linear(gradient_CV.T, some_CD.T)
        dweight_VD = part_VD.float() if dweight_VD is None else dweight_VD.add_(part_VD)
    assert dweight_VD is not None
    return total.float(), (torch.cat(dhidden) if len(dhidden) > 1 else dhidden[0])[:count], dweight_VD


def _rows(weight_VD: Tensor) -> int:
    return ROWS if weight_VD.device.type == "cpu" else max(ROWS, ELEMENTS // len(weight_VD))


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


def symmetric_divergence(one_NV: Tensor, other_NV: Tensor, real_N: Tensor) -> Tensor:
    """The sum over the real positions of KL(p || q) + KL(q || p), a scalar in nats (Wu et al. 2021, equation 2).

    p and q are the softmax of the two logits. The sum is computed in fp32 for any dtype of the logits, one chunk at a
    time, with the gradient in the same pass. Its backward can run only once.

    Args:
        one_NV: logits of p.
        other_NV: logits of q.
        real_N: bool, True = a real position.
    """
    divergence: Tensor = _SymmetricDivergence.apply(one_NV, other_NV, real_N)  # type: ignore[no-untyped-call]
    return divergence


class _SymmetricDivergence(torch.autograd.Function):
    """With d = log p - log q, the gradient of p's logits is p (d - KL(p || q)) + p - q; that of q's is symmetric."""

    @staticmethod
    def forward(ctx: Any, one_NV: Tensor, other_NV: Tensor, real_N: Tensor) -> Tensor:
        total = torch.zeros((), dtype=torch.float64, device=one_NV.device)
        one_gradient_NV, other_gradient_NV = torch.empty_like(one_NV), torch.empty_like(other_NV)
        for start in range(0, len(one_NV), CHUNK):
            rows = slice(start, start + CHUNK)
            log_p_NV = one_NV[rows].log_softmax(-1, dtype=torch.float32)
            log_q_NV = other_NV[rows].log_softmax(-1, dtype=torch.float32)
            real_N1 = real_N[rows, None]
            apart_NV = (log_p_NV - log_q_NV).mul_(real_N1)
            p_NV, q_NV = log_p_NV.exp_(), log_q_NV.exp_()
            forth_N1 = (p_NV * apart_NV).sum(-1, keepdim=True)
            back_N1 = -(q_NV * apart_NV).sum(-1, keepdim=True)
            difference_NV = (p_NV - q_NV).mul_(real_N1)
            one_gradient_NV[rows] = p_NV * (apart_NV - forth_N1) + difference_NV
            other_gradient_NV[rows] = q_NV * (-apart_NV - back_N1) - difference_NV
            total += (forth_N1 + back_N1).sum(dtype=torch.float64)
        ctx.save_for_backward(one_gradient_NV, other_gradient_NV)
        return total.float()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        one_NV, other_NV = ctx.saved_tensors
        return one_NV.mul_(gradients[0]), other_NV.mul_(gradients[0]), None
