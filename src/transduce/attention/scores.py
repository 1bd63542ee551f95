"""How well a key answers a query: a table of equations.

    dot             e = q . k
    scaled_dot      e = q . k / sqrt(E)
    cosine          e = g (q . k) / (|q| |k|)
    bilinear        e = q^T W k
    additive        e = v^T tanh(W q + U k)
    location_aware  e = v^T tanh(W q + U k + L f + b),   f = the last weights through a convolution

A recipe names a score as above, and your own class as `my_file:MyScore`: a subclass of `Score` with its `forward`.

Shapes: B batch, H heads, T queries, S keys, E width of a query, F width of a key, A hidden width, C filters.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from transduce.kernels.matmul import Linear

COSINE_START = 10.0
SHORTEST = 1e-3  # a shorter vector counts as this long: the direction of 0 would have a gradient without bound
FILTERS, FILTER_WIDTH = 10, 31


class Score(nn.Module):
    """What every score is.

    Args:
        query_width: E.
        key_width: F.
    """

    sequential = False
    """True: a query's scores depend on the weights of the query before it, so that queries go one at a time."""

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__()

    def keys(self, key_BHSF: Tensor) -> Tensor:
        """What `forward` needs of the keys, computed once for all queries: the keys themselves unless overridden."""
        return key_BHSF

    def forward(self, query_BHTE: Tensor, keys: Tensor, previous_BHTS: Tensor | None = None) -> Tensor:
        """e (B, H, T, S): any real number for each query and key.

        Args:
            keys: what `keys` made of them.
            previous_BHTS: the weights of the query before each one, for a sequential score; None before the first.
        """
        raise NotImplementedError


class Dot(Score):
    """q . k: no parameters; queries and keys of one width (Luong et al. 2015, "dot")."""

    def __init__(self, query_width: int, key_width: int) -> None:
        assert query_width == key_width, "a dot product takes two vectors of one width"
        super().__init__(query_width, key_width)

    def forward(self, query_BHTE: Tensor, keys: Tensor, previous_BHTS: Tensor | None = None) -> Tensor:
        """(B, H, T, S)."""
        return query_BHTE @ keys.transpose(-1, -2)


class ScaledDot(Dot):
    """q . k / sqrt(E), of variance 1 where q and k have it (Vaswani et al. 2017, equation 1)."""

    def forward(self, query_BHTE: Tensor, keys: Tensor, previous_BHTS: Tensor | None = None) -> Tensor:
        """(B, H, T, S)."""
        return super().forward(query_BHTE * query_BHTE.shape[-1] ** -0.5, keys)


class Cosine(Dot):
    """g (q . k) / (|q| |k|), g learned: a cosine alone, between -1 and 1, could not make the softmax peak.

    Graves et al. 2014, equations 5 and 6, where g is the key strength.
    """

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        self.gain = nn.Parameter(torch.tensor(COSINE_START))

    def keys(self, key_BHSF: Tensor) -> Tensor:
        """Keys of length 1."""
        return functional.normalize(key_BHSF, dim=-1, eps=SHORTEST)

    def forward(self, query_BHTE: Tensor, keys: Tensor, previous_BHTS: Tensor | None = None) -> Tensor:
        """(B, H, T, S)."""
        return self.gain * super().forward(functional.normalize(query_BHTE, dim=-1, eps=SHORTEST), keys)


class Bilinear(Score):
    """q^T W k: a dot product that learns which directions match (Luong et al. 2015, "general")."""

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        self.weight_EF = nn.Parameter(nn.init.xavier_uniform_(torch.empty(query_width, key_width)))

    def keys(self, key_BHSF: Tensor) -> Tensor:
        """W k, (B, H, S, E)."""
        return key_BHSF @ self.weight_EF.mT

    def forward(self, query_BHTE: Tensor, keys: Tensor, previous_BHTS: Tensor | None = None) -> Tensor:
        """(B, H, T, S)."""
        return query_BHTE @ keys.transpose(-1, -2)


class Additive(Score):
    """v^T tanh(W q + U k): one hidden layer over query and key, as wide as the key (Bahdanau et al. 2015, A.1.2)."""

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        hidden = key_width
        self.query = Linear(query_width, hidden, bias=False)
        self.key = Linear(key_width, hidden, bias=False)
        self.reader_A = nn.Parameter(torch.randn(hidden) * hidden**-0.5)

    def keys(self, key_BHSF: Tensor) -> Tensor:
        """U k, (B, H, S, A)."""
        projected: Tensor = self.key(key_BHSF)
        return projected

    def forward(self, query_BHTE: Tensor, keys: Tensor, previous_BHTS: Tensor | None = None) -> Tensor:
        """(B, H, T, S)."""
        hidden_BHTSA = self.query(query_BHTE)[..., :, None, :] + keys[..., None, :, :]
        return hidden_BHTSA.tanh() @ self.reader_A.to(hidden_BHTSA.dtype)


class LocationAware(Additive):
    """`additive` that also sees where the query before looked (Chorowski et al. 2015, equations 8 and 9)."""

    sequential = True

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__(query_width, key_width)
        self.filters = nn.Conv1d(1, FILTERS, FILTER_WIDTH, padding=FILTER_WIDTH // 2, bias=False)
        self.location = Linear(FILTERS, key_width)

    def forward(self, query_BHTE: Tensor, keys: Tensor, previous_BHTS: Tensor | None = None) -> Tensor:
        """(B, H, T, S); before the first query nothing was looked at, and f = 0."""
        hidden_BHTSA = self.query(query_BHTE)[..., :, None, :] + keys[..., None, :, :]
        return (hidden_BHTSA + self._located(previous_BHTS)).tanh() @ self.reader_A.to(hidden_BHTSA.dtype)

    def _located(self, previous_BHTS: Tensor | None) -> Tensor:
        if previous_BHTS is None:
            return self.location.bias
        filtered_NCS = self.filters(previous_BHTS.flatten(0, 2)[:, None].to(self.location.weight.dtype))
        located: Tensor = self.location(filtered_NCS.mT).unflatten(0, previous_BHTS.shape[:3])
        return located
