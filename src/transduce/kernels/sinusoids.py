"""Tables for positions, made by NumPy with torch and without it: sines and cosines, of sinusoidal and rotary ones.

Shapes: T positions, J = D/2 pairs of features, D width.
"""

import numpy as np
from numpy.typing import NDArray

BASE = 10_000.0


def frequencies(width: int, base: float = BASE) -> NDArray[np.float64]:
    """(D/2,) angular frequencies in radians per position: base^(-2j/D), j = 0 .. D/2 - 1.

    The cosine term uses the exponent 2j/D as well; some lecture notes print 2jd there, which is a misprint.
    """
    return base ** (-np.arange(0, width, 2, dtype=np.float64) / width)


def sinusoids(length: int, width: int, offset: int = 0) -> NDArray[np.float32]:
    """(T, D): p[t, 2j] = sin(t f_j), p[t, 2j + 1] = cos(t f_j), computed in fp64, for t = offset .. offset + T - 1."""
    return _sinusoids_at(np.arange(offset, offset + length, dtype=np.float64), frequencies(width))


def _sinusoids_at(position_T: NDArray[np.float64], frequency_J: NDArray[np.float64]) -> NDArray[np.float32]:
    angle_TJ = position_T[:, None] * frequency_J
    return np.stack((np.sin(angle_TJ), np.cos(angle_TJ)), -1).reshape(len(position_T), -1).astype(np.float32)


def tensor2tensor(length: int, width: int, offset: int = 0) -> NDArray[np.float32]:
    """(T, D): as `transduce.attention.positions.tensor2tensor`, computed in fp64."""
    place_J = np.arange(width // 2, dtype=np.float64)
    angle_TJ = np.arange(offset, offset + length)[:, None] * BASE ** (-place_J / max(1, width // 2 - 1))
    return np.concatenate((np.sin(angle_TJ), np.cos(angle_TJ)), -1).astype(np.float32)


def turns(length: int, width: int) -> NDArray[np.float32]:
    """(T, E) alternating cosines and sines of the same angles, by which queries and keys are rotated."""
    return turns_by(length, frequencies(width))


def turns_by(length: int, frequency_J: NDArray[np.float64]) -> NDArray[np.float32]:
    """`turns` by these frequencies, in radians per position."""
    sine_TE = _sinusoids_at(np.arange(length, dtype=np.float64), frequency_J)
    return np.ascontiguousarray(sine_TE.reshape(length, -1, 2)[..., ::-1]).reshape(length, -1)


def too_few(available: int, needed: int) -> str:
    """What is wrong where a table of learned positions ends before a sequence does."""
    return (
        f"This model has learned positions for {available} tokens, but got {needed}: shorten the text, "
        "or train with a larger model.max_length or another kind of positions."
    )
