"""Frequencies of rotary positions that were stretched, so that a model reads longer texts than it was trained on.

    linear  f'_j = f_j / factor                                          (Chen et al. 2023, "position interpolation")
    llama3  f'_j = f_j                 where a wave is shorter than L / high
            f'_j = f_j / factor        where it is longer than L / low
            in between s f_j + (1 - s) f_j / factor,   s = (L / wave_j - low) / (high - low)     (Llama 3.1, its code)

with f_j = base^(-2j/E) radians per position, wave_j = 2 pi / f_j positions, L the length before.

Shapes: E width of a head, J = E/2.
"""

from typing import Literal, Self

import torch
from pydantic import Field, model_validator
from torch import Tensor

from transduce.attention.positions import frequencies
from transduce.core.config import Config


class RotaryScaling(Config):
    """The section [model.rotary_scaling]."""

    kind: Literal["linear", "llama3"]
    """linear: all frequencies are divided by the factor. llama3: only the low ones."""
    factor: float = Field(ge=1)
    """How many times longer texts become."""
    low_frequency_factor: float = Field(default=1.0, gt=0)
    """Of llama3: waves longer than original_length / low_frequency_factor are stretched in full."""
    high_frequency_factor: float = Field(default=4.0, gt=0)
    """Of llama3: waves shorter than original_length / high_frequency_factor stay as they are."""
    original_length: int = Field(default=8192, ge=1)
    """Of llama3: how many positions the model was trained on before."""

    @model_validator(mode="after")
    def _fits_the_kind(self) -> Self:
        if self.low_frequency_factor >= self.high_frequency_factor:
            raise ValueError(
                f"low_frequency_factor ({self.low_frequency_factor}) must be less than high_frequency_factor "
                f"({self.high_frequency_factor})"
            )
        own = {"low_frequency_factor", "high_frequency_factor", "original_length"}
        if self.kind == "linear" and (given := sorted(own & self.model_fields_set & self._changed())):
            raise ValueError(f'{", ".join(given)}: not read with kind = "linear". Leave it out')
        return self

    def _changed(self) -> set[str]:
        fields = type(self).model_fields.items()
        return {name for name, field in fields if getattr(self, name) != field.default}


def rotary_frequencies(width: int, base: float, scaling: RotaryScaling | None = None) -> Tensor:
    """(J,) fp64, in radians per position, the highest first: those of heads of `width` features."""
    frequency_J = frequencies(width, base)
    if scaling is None:
        return frequency_J
    stretched_J = frequency_J / scaling.factor
    return stretched_J if scaling.kind == "linear" else _blended(frequency_J, stretched_J, scaling)


def _blended(frequency_J: Tensor, stretched_J: Tensor, scaling: RotaryScaling) -> Tensor:
    low, high = scaling.low_frequency_factor, scaling.high_frequency_factor
    waves_J = scaling.original_length * frequency_J / (2 * torch.pi)  # how many pass in the original length
    kept_J = ((waves_J - low) / (high - low)).clamp(0, 1)
    return kept_J * frequency_J + (1 - kept_J) * stretched_J
