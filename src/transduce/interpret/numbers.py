"""Tensors in JSON: row-major, little-endian fp32 in base64."""

import base64
from typing import Any

from torch import Tensor


def packed(tensor: Tensor) -> dict[str, Any]:
    """{"shape", "weights"} of a tensor of any shape."""
    return {"shape": list(tensor.shape), "weights": in_base64(tensor)}


def in_base64(tensor: Tensor) -> str:
    """The values of a tensor in base64, without its shape."""
    return base64.b64encode(tensor.detach().cpu().numpy().astype("<f4").tobytes()).decode()
