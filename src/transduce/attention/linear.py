"""Linear attention (Katharopoulos et al. 2020): phi(q) . phi(k), with phi = elu + 1, replaces the softmax's exp(q . k).

    alpha_ts = phi(q_t) . phi(k_s) / sum_s phi(q_t) . phi(k_s)                          (equation 3)
    o_t      = phi(q_t) (sum_s phi(k_s) v_s^T) / phi(q_t) . sum_s phi(k_s)              (equation 5)

Keys and values are summarized in two sums, whose size does not depend on the number of keys. There are three ways to
compute with them, which agree:

- over all keys at once: `summarise` and `read`;
- causally and in parallel, for training: `attend_causally`;
- one position after another, in constant time and memory: `attend_recurrently` (equations 16 to 20).

Sums are computed in fp32, or in fp64 for fp64 input, also under autocast.

Shapes: B batch, H heads, T queries, S keys, E width of a head's keys, F width of its values, D model width; N chunks of
C positions each, M = N + 1 ends of chunks.
"""

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.attention import masks
from transduce.attention.capture import Role, Side, active_record
from transduce.kernels.matmul import Linear

CHUNK = 64


class Summary(NamedTuple):
    """The sums that linear attention keeps of keys and values.

    values: (B, H, E, F), sum_s phi(k_s) v_s^T.
    mass: (B, H, E), sum_s phi(k_s).
    features: (B, H, S, E), the phi(k_s) themselves. Kept only while attention weights are captured, else None.
    """

    values: Tensor
    mass: Tensor
    features: Tensor | None = None


def feature_map(x: Tensor) -> Tensor:
    """phi(x) = elu(x) + 1, any shape. It stays above 0 even where elu(x) = exp(x) - 1 would round to -1."""
    features: Tensor = _FeatureMap.apply(x)  # type: ignore[no-untyped-call]
    return features


def linear_weights(query_BHTE: Tensor, feature_BHSE: Tensor, allowed: Tensor | None = None) -> Tensor:
    """The weights alpha (B, H, T, S), computed explicitly for display and for tests (equation 3).

    Args:
        query_BHTE: the queries.
        feature_BHSE: phi of the keys.
        allowed: bool, broadcastable to (B, H, T, S), True = may attend; None = all may.
    """
    with _without_autocast(query_BHTE):
        alpha_BHTS = feature_map(_wide(query_BHTE)) @ feature_BHSE.mT
        if allowed is not None:
            alpha_BHTS = alpha_BHTS * allowed
        return alpha_BHTS / _above_zero(alpha_BHTS.sum(-1, keepdim=True))


def summarise(key_BHSE: Tensor, value_BHSF: Tensor, real_BS: Tensor | None = None) -> Summary:
    """The sums over all keys.

    Args:
        key_BHSE: the keys.
        value_BHSF: the values.
        real_BS: bool, True = may be attended to. Other positions add exactly 0. None = all may.
    """
    with _without_autocast(key_BHSE):
        feature_BHSE = _features(key_BHSE, real_BS)
        return Summary(feature_BHSE.mT @ _wide(value_BHSF), feature_BHSE.sum(2))


def read(query_BHTE: Tensor, summary: Summary) -> Tensor:
    """The output (B, H, T, F) of queries that all read the same summary (equation 5)."""
    with _without_autocast(query_BHTE):
        feature_BHTE = feature_map(_wide(query_BHTE))
        mass_BHT1 = feature_BHTE @ summary.mass[..., None]
        return feature_BHTE @ summary.values / _above_zero(mass_BHT1)


def attend_causally(
    query_BHTE: Tensor, key_BHTE: Tensor, value_BHTF: Tensor, past: Summary | None = None, chunk: int = CHUNK
) -> tuple[Tensor, Summary]:
    """The output (B, H, T, F) of queries that read `past` and all positions up to their own, and the final summary.

    Within a chunk, C x C weights are computed explicitly; between chunks, only the sums are carried over. Time and
    memory grow linearly with T, and the work is done by matrix products.

    Args:
        query_BHTE: the queries.
        key_BHTE: the keys.
        value_BHTF: the values.
        past: the summary of earlier positions; None = there are none.
        chunk: C. It affects only speed and rounding.
    """
    length = query_BHTE.shape[2]
    chunk = min(chunk, length)
    with _without_autocast(query_BHTE):
        query_BHNCE, key_BHNCE = (_cut(feature_map(_wide(each)), chunk) for each in (query_BHTE, key_BHTE))
        value_BHNCF = _cut(_wide(value_BHTF), chunk)
        alpha_BHNCC = (query_BHNCE @ key_BHNCE.mT).tril()
        output_BHNCF, mass_BHNC1 = alpha_BHNCC @ value_BHNCF, alpha_BHNCC.sum(-1, keepdim=True)
        values_BHMEF = _carried(key_BHNCE.mT @ value_BHNCF, past.values if past else None)
        mass_BHME = _carried(key_BHNCE.sum(3), past.mass if past else None)
        if past or length > chunk:
            output_BHNCF = output_BHNCF + query_BHNCE @ values_BHMEF[:, :, :-1]
            mass_BHNC1 = mass_BHNC1 + query_BHNCE @ mass_BHME[:, :, :-1, :, None]
        output_BHTF = (output_BHNCF / _above_zero(mass_BHNC1)).flatten(2, 3)[:, :, :length]
        return output_BHTF, Summary(values_BHMEF[:, :, -1], mass_BHME[:, :, -1])


def attend_recurrently(query_BHE: Tensor, key_BHE: Tensor, value_BHF: Tensor, past: Summary) -> tuple[Tensor, Summary]:
    """`attend_causally` for one position: the output (B, H, F) and the new summary. `past` is not changed."""
    with _without_autocast(query_BHE):
        query_BHE, key_BHE = feature_map(_wide(query_BHE)), feature_map(_wide(key_BHE))
        values_BHEF = past.values + key_BHE[..., :, None] * _wide(value_BHF)[..., None, :]
        mass_BHE = past.mass + key_BHE
        read_BHF = (query_BHE[..., None, :] @ values_BHEF).squeeze(-2)
        return read_BHF / _above_zero((query_BHE * mass_BHE).sum(-1, keepdim=True)), Summary(values_BHEF, mass_BHE)


class LinearAttention(nn.Module):
    """Multi-head linear attention, with the projections of `MultiHeadAttention`.

    Attention weights are computed only inside a capture, because the keys are kept only then. A capture therefore sees
    sources that were summarized, and sequences that were started, while it was active.

    Args:
        width: D, divisible by heads.
        heads: H.
        role, side: what it attends to; see `transduce.attention.capture`.
    """

    def __init__(self, width: int, heads: int, role: Role = "other", side: Side = "other") -> None:
        super().__init__()
        self.heads = heads
        self.role, self.side = role, side
        self.query = Linear(width, width)
        self.key_value = Linear(width, 2 * width)
        self.output = Linear(width, width)
        for projection in (self.query, self.key_value, self.output):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)

    def empty(self, rows: int) -> Summary:
        """An empty summary for `rows` sequences."""
        weight = _wide(self.query.weight)
        width = len(weight) // self.heads
        mass_BHE = weight.new_zeros(rows, self.heads, width)
        values_BHEF = weight.new_zeros(rows, self.heads, width, width)
        nothing_BHSE = weight.new_zeros(rows, self.heads, 0, width) if active_record() is not None else None
        return Summary(values_BHEF, mass_BHE, nothing_BHSE)

    def summarise(self, y_BSD: Tensor, real_BS: Tensor | None = None) -> Summary:
        """The summary of the keys and values of y (B, S, D).

        Args:
            y_BSD: the states to be attended to.
            real_BS: bool, True = a real position; None = all are.
        """
        key_BHSE, value_BHSF = self._keys_values(y_BSD)
        features = _features(key_BHSE, real_BS) if active_record() is not None else None
        return summarise(key_BHSE, value_BHSF, real_BS)._replace(features=features)

    def forward(self, x_BTD: Tensor, summary: Summary) -> Tensor:
        """The output (B, T, D) of positions x that all read the same summary."""
        query_BHTE = self._split(self.query(x_BTD))
        self._show(query_BHTE, summary.features, None)
        return self._join(read(query_BHTE, summary))

    def extend(self, x_BTD: Tensor, past: Summary | None) -> tuple[Tensor, Summary]:
        """The output (B, T, D) of T positions that follow those in `past`, and the summary after them.

        Each position reads all positions up to itself.

        Args:
            x_BTD: the new positions.
            past: the summary of the earlier positions; None = there are none.
        """
        query_BHTE, (key_BHTE, value_BHTF) = self._split(self.query(x_BTD)), self._keys_values(x_BTD)
        if past is not None and x_BTD.shape[1] == 1:
            read_BHF, now = attend_recurrently(query_BHTE[:, :, 0], key_BHTE[:, :, 0], value_BHTF[:, :, 0], past)
            read_BHTF = read_BHF[:, :, None]
        else:
            read_BHTF, now = attend_causally(query_BHTE, key_BHTE, value_BHTF, past)
        features = self._seen(key_BHTE, past)
        if features is not None:
            count = x_BTD.shape[1]
            self._show(query_BHTE, features, masks.causal(count, features.shape[2] - count, x_BTD.device))
        return self._join(read_BHTF), now._replace(features=features)

    @staticmethod
    def _seen(key_BHTE: Tensor, past: Summary | None) -> Tensor | None:
        """The features of all positions so far, if a capture is active or was active at the first position."""
        if past is None:
            return _features(key_BHTE) if active_record() is not None else None
        return None if past.features is None else torch.cat((past.features, _features(key_BHTE)), 2)

    def _show(self, query_BHTE: Tensor, features: Tensor | None, allowed: Tensor | None) -> None:
        record = active_record()
        if record is not None and features is not None:
            record.take(self, linear_weights(query_BHTE, features, allowed))

    def _keys_values(self, y_BSD: Tensor) -> tuple[Tensor, Tensor]:
        key_BSD, value_BSD = self.key_value(y_BSD).chunk(2, -1)
        return self._split(key_BSD), self._split(value_BSD)

    def _split(self, x_BTD: Tensor) -> Tensor:
        return torch.unflatten(x_BTD, -1, (self.heads, -1)).transpose(1, 2)

    def _join(self, read_BHTF: Tensor) -> Tensor:
        return self.output(read_BHTF.transpose(1, 2).flatten(2))


class _FeatureMap(torch.autograd.Function):
    """exp(min(x, 0)) + max(x, 0), whose derivative is min(phi, 1). Four times as fast as autograd's separate steps."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        features = x.clamp(max=0).exp_().add_(x.relu())
        ctx.save_for_backward(features)
        return features

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (features,) = ctx.saved_tensors
        return gradients[0] * features.clamp(max=1)


def _features(key_BHSE: Tensor, real_BS: Tensor | None = None) -> Tensor:
    feature_BHSE = feature_map(_wide(key_BHSE))
    return feature_BHSE if real_BS is None else feature_BHSE * real_BS[:, None, :, None]


def _cut(x_BHTE: Tensor, chunk: int) -> Tensor:
    """(B, H, N, C, E). The last chunk is padded with zeros, and a feature of 0 adds nothing."""
    missing = -x_BHTE.shape[2] % chunk
    return torch.unflatten(F.pad(x_BHTE, (0, 0, 0, missing)), 2, (-1, chunk))


def _carried(sums: Tensor, start: Tensor | None) -> Tensor:
    """(B, H, M, ..): `start` (0 if None), followed by its value after each of the N chunks."""
    first = torch.zeros_like(sums[:, :, 0]) if start is None else start
    return torch.cat((first[:, :, None], sums), 2).cumsum(2)


def _wide(x: Tensor) -> Tensor:
    """x in the dtype in which sums are computed: at least fp32."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _above_zero(mass: Tensor) -> Tensor:
    """The divisor, kept above 0: if all features underflow, the output is 0 and not 0 / 0."""
    return mass.clamp(min=torch.finfo(mass.dtype).tiny)


def _without_autocast(x: Tensor) -> torch.autocast:
    return torch.autocast(x.device.type, enabled=False)
