"""Embeddings of tokens and of the characters that they are written with.

    x_t = highway([e(w_t); max_j conv(c_t)_j])

Sources: Kim 2014 (convolution over characters), Srivastava et al. 2015 (highway), Seo et al. 2017 (both together).

Shapes: B batch, T positions, W characters of a token, C width of a character, F filters, D width of a token, N = B T.
"""

import torch
from torch import Tensor, nn

from transduce.attention.dropout import Dropout
from transduce.core.padded import Padded
from transduce.layers.embedding import Embedding


class Highway(nn.Module):
    """Layers of  g relu(W x + b) + (1 - g) x,  g = sigmoid(V x + c); at first they mostly carry x on."""

    def __init__(self, width: int, layers: int) -> None:
        super().__init__()
        self.transform = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.gate = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        for gate in self.gate:
            nn.init.constant_(gate.bias, -1.0)  # type: ignore[arg-type]

    def forward(self, x: Tensor) -> Tensor:
        """(.., D) -> (.., D)."""
        for transform, gate in zip(self.transform, self.gate, strict=True):
            share = gate(x).sigmoid()
            x = share * transform(x).relu() + (1 - share) * x
        return x


class CharacterConvolution(nn.Module):
    """The maximum over a token's characters of F filters of `kernel` characters."""

    def __init__(self, characters: int, width: int, filters: int, kernel: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, width, padding_idx=0)
        self.convolution = nn.Conv1d(width, filters, kernel, padding=kernel // 2)

    def forward(self, characters_BTW: Tensor) -> Tensor:
        """(B, T, F)."""
        embedded_NWC = self.embedding(characters_BTW.flatten(0, 1))
        found_NFW: Tensor = self.convolution(embedded_NWC.transpose(1, 2))
        return torch.unflatten(found_NFW.amax(-1).relu(), 0, characters_BTW.shape[:2])


class WordEmbedding(nn.Module):
    """Tokens and characters through a highway of two layers. `width` is D + F, or D without characters (F = 0)."""

    def __init__(
        self, tokens: Embedding, characters: int, character_width: int, filters: int, kernel: int, dropout: float
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.spelled = CharacterConvolution(characters, character_width, filters, kernel) if filters else None
        self.width = tokens.weight.shape[1] + filters
        self.highway = Highway(self.width, 2)
        self.dropout = Dropout(dropout)

    def forward(self, tokens: Padded, characters: Padded) -> Tensor:
        """Ids (B, T) and characters (B, T, W) -> (B, T, D + F)."""
        embedded_BTD: Tensor = self.tokens(tokens.values)
        if self.spelled is not None:
            embedded_BTD = torch.cat((embedded_BTD, self.spelled(characters.values)), -1)
        return self.highway(self.dropout(embedded_BTD))
