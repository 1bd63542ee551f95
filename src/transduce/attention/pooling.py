"""Attention pooling: learned queries turn a sequence of any length into a fixed number of vectors.

Shapes: B batch, S positions, D width of what is read, K width of keys and queries, R queries.
"""

import torch
from torch import Tensor, nn

from transduce.attention.capture import Role, Side, active_record
from transduce.attention.masks import padding
from transduce.attention.scaled_dot_product import attend_by
from transduce.core.registry import resolve


class AttentionPooling(nn.Module):
    """R learned queries read a padded sequence, with any score and normalizer.

        alpha_r = weigh(score(q_r, k_s) for all s),   m_r = sum_s alpha_rs x_s

    The self-attentive sentence embedding (Lin et al. 2017, equations 5 to 7), A = softmax(W_2 tanh(W_1 H^T)) and
    M = A H, is a special case: score "dot", keys tanh(W_1 h), and the rows of W_2 as queries.

    Args:
        score: name of a score in `transduce.attention.scores`, or your own class.
        normalizer: name of a normalizer in `transduce.attention.normalizers`, or your own class.
        key_width: K.
        queries: R.
        side: whose states x is; see `transduce.attention.capture`. The role is "other", because the queries are
            parameters.

    Raises:
        InputError: there is no score or normalizer with this name.
    """

    role: Role = "other"

    def __init__(self, score: str, normalizer: str, key_width: int, queries: int = 1, side: Side = "other") -> None:
        super().__init__()
        self.side = side
        self.query_RK = nn.Parameter(torch.randn(queries, key_width) * key_width**-0.5)
        self.score = resolve("attention.scores", score)(key_width, key_width)
        self.weigh = resolve("attention.normalizers", normalizer)(key_width)

    def forward(self, x_BSD: Tensor, real_BS: Tensor | None = None, key_BSK: Tensor | None = None) -> Tensor:
        """The vectors M (B, R, D). A capture records the weights alpha (B, 1, R, S)."""
        return self.read(x_BSD, real_BS, key_BSK)[0]

    def read(
        self, x_BSD: Tensor, real_BS: Tensor | None = None, key_BSK: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The vectors M (B, R, D), and the weights alpha (B, R, S).

        Args:
            x_BSD: the sequence.
            real_BS: bool, True = a real position, False = padding; None = all are real.
            key_BSK: the keys; None = x itself, with K = D.
        """
        allowed = None if real_BS is None else padding(real_BS)
        keys = self.score.keys((x_BSD if key_BSK is None else key_BSK)[:, None])
        read_BHRD, alpha_BHRS = self._read(keys, x_BSD[:, None], allowed)
        record = active_record()
        if record is not None:
            record.take(self, alpha_BHRS)
        return read_BHRD[:, 0], alpha_BHRS[:, 0]

    def _read(self, keys: Tensor, value_BHSD: Tensor, allowed: Tensor | None) -> tuple[Tensor, Tensor]:
        """All queries at once, or one after the other if the score or the normalizer is sequential."""
        query_BHRK = self.query_RK.expand(len(value_BHSD), 1, -1, -1)
        position_BR = torch.arange(len(self.query_RK), device=keys.device).expand(len(value_BHSD), -1)
        if not (self.score.sequential or self.weigh.sequential):
            return attend_by(self.score, self.weigh, query_BHRK, keys, value_BHSD, allowed, position_BR)
        reads, alphas = [], []
        alpha_BH1S = None
        for r in range(len(self.query_RK)):
            query_BH1K, position_B1 = query_BHRK[:, :, r : r + 1], position_BR[:, r : r + 1]
            read_BH1D, alpha_BH1S = attend_by(
                self.score, self.weigh, query_BH1K, keys, value_BHSD, allowed, position_B1, alpha_BH1S
            )
            reads.append(read_BH1D)
            alphas.append(alpha_BH1S)
        return torch.cat(reads, 2), torch.cat(alphas, 2)


def redundancy(alpha_BRS: Tensor) -> Tensor:
    """(B,) in fp32: ||A A^T - I||^2 of each row's weights A (R, S), in the Frobenius norm (Lin et al. 2017, eq. 8).

    It is 0 where each query reads one position, and no two the same.
    """
    alpha_BRS = alpha_BRS.float()
    overlap_BRR = alpha_BRS @ alpha_BRS.mT - torch.eye(alpha_BRS.shape[1], device=alpha_BRS.device)
    return overlap_BRR.square().sum((1, 2))
