"""A Transduce model file read without Transduce: weights as NumPy arrays and the sizes they were trained with."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Weights by name, and the [model] table of the recipe."""
    with safe_open(str(path), "numpy") as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dict
        config = json.loads(file.metadata()["config"])
    return weights, config["model"]


def sinusoids(length: int, width: int) -> np.ndarray:
    """(T, D) float32: sine and cosine of each frequency side by side."""
    angle = np.arange(length)[:, None] * 10_000 ** (-np.arange(0, width, 2) / width)
    return np.stack((np.sin(angle), np.cos(angle)), -1).reshape(length, width).astype(np.float32)
