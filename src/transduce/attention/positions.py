"""Absolute positions: two sinusoidal encodings, learned and none; the rotation of rotary positions; data for figures.

Relative positions, including rotary ones, are in `transduce.attention.relative`.

Shapes: B batch, H heads, T positions, D model width, E width of a head.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from transduce.core.errors import InputError
from transduce.kernels import sinusoids
from transduce.kernels.sinusoids import BASE


def frequencies(width: int, base: float = BASE, device: torch.device | None = None) -> Tensor:
    """(D/2,) in fp64: see `transduce.kernels.sinusoids`."""
    frequency_J = torch.empty((width + 1) // 2, dtype=torch.float64, device=device)
    return frequency_J.copy_(torch.from_numpy(sinusoids.frequencies(width, base)))


def sinusoidal(length: int, width: int, offset: int = 0, device: torch.device | None = None) -> Tensor:
    """(T, D) sinusoidal encoding of positions offset .. offset + T - 1 (Vaswani et al. 2017, section 3.5).

        p[t, 2j] = sin(t / 10000^(2j/D)),   p[t, 2j + 1] = cos(t / 10000^(2j/D))

    p[t + k] is p[t] rotated by an angle that depends only on k, like the hands of a clock that move at different
    speeds.
    """
    # Where the table is too large for its model file, it is refused before NumPy makes it (`core.skip_init`).
    table_TD = torch.empty(length, 2 * ((width + 1) // 2), dtype=torch.float32, device=device)
    return table_TD.copy_(torch.from_numpy(sinusoids.sinusoids(length, width, offset)))


def tensor2tensor(length: int, width: int, offset: int = 0, device: torch.device | None = None) -> Tensor:
    """(T, D) sinusoidal encoding as the library Tensor2Tensor has it, and fairseq after it (M2M-100, NLLB).

        p[t, j] = sin(t f_j),   p[t, D/2 + j] = cos(t f_j),   f_j = 10000^(-j / (D/2 - 1)),   j = 0 .. D/2 - 1

    All sines stand before all cosines, and the lowest frequency is exactly 1/10000.
    """
    table_TD = torch.empty(length, 2 * (width // 2), dtype=torch.float32, device=device)
    return table_TD.copy_(torch.from_numpy(sinusoids.tensor2tensor(length, width, offset)))


def tensor2tensor_at(position: Tensor, width: int) -> Tensor:
    """(.., D): `tensor2tensor` of positions of any shape."""
    place_J = torch.arange(width // 2, dtype=torch.float64, device=position.device)
    angle = position.double()[..., None] * BASE ** (-place_J / max(1, width // 2 - 1))
    return torch.cat((angle.sin(), angle.cos()), -1).float()


def clock(length: int, width: int, offset: int = 0) -> Tensor:
    """(T, D/2) angles in radians, 0 .. 2 pi, of the D/2 clock hands at each position, the fastest first.

    `sinusoidal` contains their sines and cosines, alternating.
    """
    return clock_of(frequencies(width), length, offset)


def clock_of(frequency_J: Tensor, length: int, offset: int = 0) -> Tensor:
    """(T, J): `clock` with hands of these frequencies, in radians per position."""
    position_T = torch.arange(offset, offset + length, dtype=torch.float64)
    return (position_T[:, None] * frequency_J) % (2 * torch.pi)


def turn(steps: int, width: int) -> Tensor:
    """(D, D) orthogonal matrix in fp64: p[t + steps] = turn(steps, D) @ p[t] for every t, p the sinusoidal encoding.

    It is block-diagonal: each pair (sin, cos) is rotated by steps times its frequency.
    """
    angle_J = steps * frequencies(width)
    cos_J, sin_J = angle_J.cos(), angle_J.sin()
    block_J22 = torch.stack((torch.stack((cos_J, sin_J), -1), torch.stack((-sin_J, cos_J), -1)), -2)
    turned: Tensor = torch.block_diag(*block_J22)  # type: ignore[no-untyped-call]
    return turned


def dot_products(length: int, width: int) -> Tensor:
    """(T, T) in fp64: p_i . p_j of sinusoidal positions. The diagonal is set to 0 to make the others distinguishable.

    They depend only on k = |i - j|: sum_j cos(k f_j), which is D/2 on the diagonal. Neighbours have the largest
    product; it does not fall monotonically at larger distances.
    """
    table_TD = sinusoidal(length, width).double()
    return (table_TD @ table_TD.T).fill_diagonal_(0.0)


def rotate(x_BHTE: Tensor, offset: int = 0, frequency_J: Tensor | None = None) -> Tensor:
    """Queries or keys rotated by the angles of their positions (rotary positions; Su et al. 2021, equation 34).

    The dot product of a rotated query and a rotated key depends only on the distance between them.

    frequency_J: (E/2,) fp64, in radians per position. None = `frequencies`.
    """
    length, width = x_BHTE.shape[-2:]
    position_T = torch.arange(offset, offset + length, dtype=torch.float64, device=x_BHTE.device)
    return _rotated(x_BHTE, position_T[:, None] * _on(x_BHTE, width, frequency_J))


def rotate_evenly(x_BHTE: Tensor, position: int, frequency_J: Tensor | None = None) -> Tensor:
    """All queries or keys rotated by the angles of one position, which may be negative; see `rotate`."""
    return _rotated(x_BHTE, position * _on(x_BHTE, x_BHTE.shape[-1], frequency_J)[None])


def _on(x_BHTE: Tensor, width: int, frequency_J: Tensor | None) -> Tensor:
    return frequencies(width, device=x_BHTE.device) if frequency_J is None else frequency_J.to(x_BHTE.device)


def _rotated(x_BHTE: Tensor, angle_TJ: Tensor) -> Tensor:
    cos_TJ, sin_TJ = angle_TJ.cos().to(x_BHTE.dtype), angle_TJ.sin().to(x_BHTE.dtype)
    even_BHTJ, odd_BHTJ = x_BHTE[..., 0::2], x_BHTE[..., 1::2]
    turned_even_BHTJ = even_BHTJ * cos_TJ - odd_BHTJ * sin_TJ
    turned_odd_BHTJ = even_BHTJ * sin_TJ + odd_BHTJ * cos_TJ
    return torch.stack((turned_even_BHTJ, turned_odd_BHTJ), -1).flatten(-2)


ENCODINGS: dict[str, Callable[..., Tensor]] = {"sinusoidal": sinusoidal, "tensor2tensor": tensor2tensor}


class Sinusoidal(nn.Module):
    """Adds the sinusoidal encoding (Vaswani et al. 2017, section 3.5). It has no parameters and takes any length.

    Args:
        width: D, an even number.
        first: the position of the first token.
        encoding: `sinusoidal` or `tensor2tensor`.
    """

    def __init__(self, width: int, first: int = 0, encoding: Callable[..., Tensor] = sinusoidal) -> None:
        super().__init__()
        self.width, self.first, self.encoding = width, first, encoding
        self.register_buffer("table_TD", encoding(512, width, first), persistent=False)
        self.table_TD: Tensor

    def forward(self, x_BTD: Tensor, offset: int = 0) -> Tensor:
        """x + p (B, T, D), where the first position of x is number `offset`."""
        end = offset + x_BTD.shape[1]
        if end > len(self.table_TD):
            self.table_TD = self.encoding(2 * end, self.width, self.first, device=self.table_TD.device)
        return x_BTD + self.table_TD[offset:end]


class Learned(nn.Module):
    """Adds a learned vector for each of up to `max_length` positions: W^p times the position's one-hot vector."""

    def __init__(self, width: int, max_length: int) -> None:
        super().__init__()
        self.weight_TD = nn.Parameter(torch.randn(max_length, width) * width**-0.5)

    def forward(self, x_BTD: Tensor, offset: int = 0) -> Tensor:
        """x + p (B, T, D), where the first position of x is number `offset`.

        Raises:
            InputError: the sequence is longer than the table.
        """
        end = offset + x_BTD.shape[1]
        if end > len(self.weight_TD):
            raise InputError(sinusoids.too_few(len(self.weight_TD), end))
        return x_BTD + self.weight_TD[offset:end]


class NoPositions(nn.Module):
    """Adds nothing: for relative positions, and for models without positions."""

    def forward(self, x_BTD: Tensor, offset: int = 0) -> Tensor:
        return x_BTD


def added_positions(kind: str, width: int, max_length: int, first: int = 0) -> Sinusoidal | Learned | NoPositions:
    """The module that adds positions to embeddings: `kind` is one of `ENCODINGS` or "learned"; others add nothing.

    first: the position of the first token, for the kinds of `ENCODINGS`.
    """
    if kind in ENCODINGS:
        return Sinusoidal(width, first, ENCODINGS[kind])
    return Learned(width, max_length) if kind == "learned" else NoPositions()
