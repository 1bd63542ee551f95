"""Attention masks. A mask is a bool tensor in which True means "may attend", here and everywhere.

Shapes: B batch, T queries, S keys. Every mask broadcasts to (B, H, T, S), H heads.
"""

import torch
from torch import Tensor


def causal(queries: int, past: int = 0, device: torch.device | None = None) -> Tensor:
    """(1, 1, T, past + T): query t is at position past + t and may attend to itself and to all earlier positions.

    Masked self-attention (Vaswani et al. 2017, section 3.2.3).
    """
    position_T = torch.arange(past, past + queries, device=device)
    key_S = torch.arange(past + queries, device=device)
    return (key_S <= position_T[:, None])[None, None]


def padding(real_BS: Tensor) -> Tensor:
    """(B, 1, 1, S) from (B, S): every query of every head may attend to the real keys of its own sentence."""
    return real_BS[:, None, None, :]
