"""Reads the arrays that the explorer's page is given."""

import base64
from typing import Any

import numpy as np


def from_base64(text: str, shape: list[int]) -> "np.ndarray[Any, np.dtype[np.float32]]":
    return np.frombuffer(base64.b64decode(text), "<f4").reshape(shape)
