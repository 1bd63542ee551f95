"""Where a token stands: sinusoidal, learned and rotary positions, and none; and what their pictures show.

Positions that know distances alone are in `transduce.attention.relative`, rotary ones among them.

Shapes: B batch, H heads, T positions, D model width, E width of a head.
"""

from functools import cache

import torch
from torch import Tensor, nn

from transduce.core.errors import InputError

BASE = 10_000.0


def frequencies(width: int, base: float = BASE, device: torch.device | None = None) -> Tensor:
    """(D/2,) angular frequencies in radians a position: base^(-2j/D), j = 0 .. D/2 - 1, in fp64.

    The cosine term uses the exponent 2j/D as well; some lecture notes print 2jd there, which is a misprint.
    """
    pair_J = torch.arange(0, width, 2, dtype=torch.float64, device=device)
    return base ** (-pair_J / width)


def sinusoidal(length: int, width: int, offset: int = 0, device: torch.device | None = None) -> Tensor:
    """(T, D) sinusoidal encoding of positions offset .. offset + T - 1 (Vaswani et al. 2017, section 3.5).

        p[t, 2j] = sin(t / 10000^(2j/D)),   p[t, 2j + 1] = cos(t / 10000^(2j/D))

    p[t + k] is p[t] turned by a rotation that depends on k alone: a row of clock hands, each at its own speed.
    """
    position_T = torch.arange(offset, offset + length, dtype=torch.float64, device=device)
    angle_TJ = position_T[:, None] * frequencies(width, device=device)
    return torch.stack((angle_TJ.sin(), angle_TJ.cos()), -1).flatten(1).float()


def clock(length: int, width: int, offset: int = 0) -> Tensor:
    """(T, D/2) in radians, 0 .. 2 pi: where the D/2 hands of the clock stand at each position, the fastest first.

    `sinusoidal` holds their sines and cosines in turn.
    """
    position_T = torch.arange(offset, offset + length, dtype=torch.float64)
    return (position_T[:, None] * frequencies(width)) % (2 * torch.pi)


def turn(steps: int, width: int) -> Tensor:
    """(D, D) in fp64, orthogonal: p[t + steps] = turn(steps, D) @ p[t] for every t, p the sinusoidal encoding.

    A block a hand: each (sin, cos) is turned by steps times its frequency.
    """
    angle_J = steps * frequencies(width)
    cos_J, sin_J = angle_J.cos(), angle_J.sin()
    block_J22 = torch.stack((torch.stack((cos_J, sin_J), -1), torch.stack((-sin_J, cos_J), -1)), -2)
    turned: Tensor = torch.block_diag(*block_J22)  # type: ignore[no-untyped-call]
    return turned


def dot_products(length: int, width: int) -> Tensor:
    """(T, T) in fp64: p_i . p_j of sinusoidal positions, the diagonal set to 0 so that the others can be told apart.

    They depend on |i - j| alone: sum_j cos(k f_j), and D/2 on the diagonal. The nearest is the largest; farther on they
    do not fall for ever.
    """
    table_TD = sinusoidal(length, width).double()
    return (table_TD @ table_TD.T).fill_diagonal_(0.0)


def rotate(x_BHTE: Tensor, offset: int = 0) -> Tensor:
    """Queries or keys turned by their position's angles (Su et al. 2021, equation 34): rotary positions.

    The dot product of a turned query and a turned key depends on the distance between them alone.
    """
    length, width = x_BHTE.shape[-2:]
    position_T = torch.arange(offset, offset + length, dtype=torch.float64, device=x_BHTE.device)
    angle_TJ = position_T[:, None] * frequencies(width, device=x_BHTE.device)
    cos_TJ, sin_TJ = angle_TJ.cos().to(x_BHTE.dtype), angle_TJ.sin().to(x_BHTE.dtype)
    even_BHTJ, odd_BHTJ = x_BHTE[..., 0::2], x_BHTE[..., 1::2]
    turned_even_BHTJ = even_BHTJ * cos_TJ - odd_BHTJ * sin_TJ
    turned_odd_BHTJ = even_BHTJ * sin_TJ + odd_BHTJ * cos_TJ
    return torch.stack((turned_even_BHTJ, turned_odd_BHTJ), -1).flatten(-2)


def turns(length: int, width: int) -> Tensor:
    """(T, E) fp32, T >= length: cosine and sine in turn of the angles that `rotate` turns by; not to be written to."""
    return _turns(max(64, 1 << (length - 1).bit_length()), width)


@cache
@torch.inference_mode(False)
def _turns(length: int, width: int) -> Tensor:
    sine_and_cosine_TE = sinusoidal(length, width, device=torch.device("cpu"))
    return sine_and_cosine_TE.view(length, -1, 2).flip(-1).flatten(1)


class Sinusoidal(nn.Module):
    """Adds the sinusoidal encoding: no parameters, any length."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.width = width
        self.register_buffer("table_TD", sinusoidal(512, width), persistent=False)
        self.table_TD: Tensor

    def forward(self, x_BTD: Tensor, offset: int = 0) -> Tensor:
        """x + p, where x's first position is number `offset`."""
        end = offset + x_BTD.shape[1]
        if end > len(self.table_TD):
            self.table_TD = sinusoidal(2 * end, self.width, device=self.table_TD.device)
        return x_BTD + self.table_TD[offset:end]


class Learned(nn.Module):
    """Adds a learned vector a position (W^p applied to the position's one-hot vector); reads `max_length` at most."""

    def __init__(self, width: int, max_length: int) -> None:
        super().__init__()
        self.weight_TD = nn.Parameter(torch.randn(max_length, width) * width**-0.5)

    def forward(self, x_BTD: Tensor, offset: int = 0) -> Tensor:
        """x + p.

        Raises:
            InputError: the sequence is longer than the table.
        """
        end = offset + x_BTD.shape[1]
        if end > len(self.weight_TD):
            raise InputError(
                f"This model has learned positions for {len(self.weight_TD)} tokens, but got {end}: shorten the text, "
                "or train with a larger model.max_length or another kind of positions."
            )
        return x_BTD + self.weight_TD[offset:end]


class NoPositions(nn.Module):
    """Adds nothing: for rotary positions, which turn queries and keys instead, and for models with none."""

    def forward(self, x_BTD: Tensor, offset: int = 0) -> Tensor:
        """x itself."""
        return x_BTD


def added_positions(kind: str, width: int, max_length: int) -> Sinusoidal | Learned | NoPositions:
    """Those that are added to embeddings, by name: sinusoidal, learned (at most `max_length`); otherwise none are."""
    if kind == "sinusoidal":
        return Sinusoidal(width)
    return Learned(width, max_length) if kind == "learned" else NoPositions()
