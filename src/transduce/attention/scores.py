"""Scores: functions that say how well a key matches a query.

    dot             e = q . k
    scaled_dot      e = q . k / sqrt(E)
    cosine          e = g (q . k) / (|q| |k|)
    bilinear        e = q^T W k
    additive        e = v^T tanh(W q + U k)
    location_aware  e = v^T tanh(W q + U k + L f + b),   f = a convolution of the previous weights

A recipe names one of these as `score`, or your own subclass of `AttentionScore` as `my_file:MyScore`.

Shapes: B batch, H heads, T queries, S keys, E width of a query, F width of a key, A hidden width, C filters.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from transduce.kernels.matmul import Linear

COSINE_START = 10.0
SHORTEST = 1e-3  # the least norm to divide by: near 0 the gradient of the direction would be unbounded
FILTERS, FILTER_WIDTH = 10, 31


class AttentionScore(nn.Module):
    """Base class of all scores.

    Args:
        query_width: E.
        key_width: F.
    """

    sequential = False
    """True if a query's scores depend on the previous query's weights, so that queries are processed one at a time."""
    formula = ""
    """As the explorer shows it, where k is what `keys` keeps of a key, which stood in the state h."""

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__()

    def keys(self, key_BHSF: Tensor) -> Tensor:
        """What `forward` needs of the keys (B, H, S, F), computed once for all queries; by default the keys."""
        return key_BHSF

    def forward(self, query_BHTE: Tensor, keys: Tensor, previous_BHTS: Tensor | None = None) -> Tensor:
        """Scores e (B, H, T, S): a real number for each query and key.

        Args:
            query_BHTE: the queries.
            keys: the result of `keys`.
            previous_BHTS: the weights of the previous query, for a sequential score; None before the first query.
        """
        raise NotImplementedError


class Dot(AttentionScore):
    """q . k, without parameters, for queries and keys of the same width ("dot", Luong et al. 2015)."""

    formula = "q · k"

    def __init__(self, query_width: int, key_width: int) -> None:
        assert query_width == key_width, "a dot product takes two vectors of one width"
        super().__init__(query_width, key_width)

    def forward(self, query_BHTE: Tensor, keys: Tensor, previous_BHTS: Tensor | None = None) -> Tensor:
        """(B, H, T, S)."""
        return query_BHTE @ keys.transpose(-1, -2)


class ScaledDot(Dot):
    """q . k / sqrt(E), with variance 1 if q and k have variance 1 (Vaswani et al. 2017, equation 1)."""

    formula = "q · k / √E"

    def forward(self, query_BHTE: Tensor, keys: Tensor, previous_BHTS: Tensor | None = None) -> Tensor:
        """(B, H, T, S)."""
        return super().forward(query_BHTE * query_BHTE.shape[-1] ** -0.5, keys)


class Cosine(Dot):
    """g (q . k) / (|q| |k|), with a learned gain g (Graves et al. 2014, equations 5 and 6, which call g key strength).

    Without the gain, scores between -1 and 1 could not give a peaked softmax.
    """

    formula = "g (q · k) / |q|,  k = h / |h|"

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        self.gain = nn.Parameter(torch.tensor(COSINE_START))

    def keys(self, key_BHSF: Tensor) -> Tensor:
        """The keys, normalized to length 1."""
        return functional.normalize(key_BHSF, dim=-1, eps=SHORTEST)

    def forward(self, query_BHTE: Tensor, keys: Tensor, previous_BHTS: Tensor | None = None) -> Tensor:
        """(B, H, T, S)."""
        return self.gain * super().forward(functional.normalize(query_BHTE, dim=-1, eps=SHORTEST), keys)


class Bilinear(AttentionScore):
    """q^T W k, a dot product with a learned matrix ("general", Luong et al. 2015)."""

    formula = "q · k,  k = W h"

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        self.weight_EF = nn.Parameter(nn.init.xavier_uniform_(torch.empty(query_width, key_width)))

    def keys(self, key_BHSF: Tensor) -> Tensor:
        """W k, (B, H, S, E)."""
        return key_BHSF @ self.weight_EF.mT

    def forward(self, query_BHTE: Tensor, keys: Tensor, previous_BHTS: Tensor | None = None) -> Tensor:
        """(B, H, T, S)."""
        return query_BHTE @ keys.transpose(-1, -2)


class Additive(AttentionScore):
    """v^T tanh(W q + U k): one hidden layer over query and key, as wide as the key (Bahdanau et al. 2015, A.1.2)."""

    formula = "vᵀ tanh(W q + k),  k = U h"

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        hidden = key_width
        self.query = Linear(query_width, hidden, bias=False)
        self.key = Linear(key_width, hidden, bias=False)
        self.reader_A = nn.Parameter(torch.randn(hidden) * hidden**-0.5)

    def keys(self, key_BHSF: Tensor) -> Tensor:
        """U k, (B, H, S, A)."""
        return self.key(key_BHSF)

    def forward(self, query_BHTE: Tensor, keys: Tensor, previous_BHTS: Tensor | None = None) -> Tensor:
        """(B, H, T, S)."""
        hidden_BHTSA = self.query(query_BHTE)[..., :, None, :] + keys[..., None, :, :]
        return hidden_BHTSA.tanh() @ self.reader_A.to(hidden_BHTSA.dtype)


class LocationAware(Additive):
    """`additive`, which also uses the weights of the previous query (Chorowski et al. 2015, equations 8 and 9)."""

    formula = "vᵀ tanh(W q + k + L f + b),  k = U h"
    sequential = True

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        self.filters = nn.Conv1d(1, FILTERS, FILTER_WIDTH, padding=FILTER_WIDTH // 2, bias=False)
        self.location = Linear(FILTERS, key_width)

    def forward(self, query_BHTE: Tensor, keys: Tensor, previous_BHTS: Tensor | None = None) -> Tensor:
        """(B, H, T, S). For the first query, f = 0."""
        hidden_BHTSA = self.query(query_BHTE)[..., :, None, :] + keys[..., None, :, :]
        return (hidden_BHTSA + self._located(previous_BHTS)).tanh() @ self.reader_A.to(hidden_BHTSA.dtype)

    def _located(self, previous_BHTS: Tensor | None) -> Tensor:
        if previous_BHTS is None:
            return self.location.bias
        filtered_NCS = self.filters(previous_BHTS.flatten(0, 2)[:, None].to(self.location.weight.dtype))
        return self.location(filtered_NCS.mT).unflatten(0, previous_BHTS.shape[:3])
