"""Which kind of matrix product is fast on which processor.

AMX multiplies bf16 several times as fast as AVX-512 multiplies fp32. Without AMX, the bf16 dot products of AVX-512
(vdpbf16ps) are twice as fast as fp32 on AMD processors, and half as fast on Intel processors. docs/speed.md has
figures.
"""

from collections.abc import Mapping
from typing import Any

import torch

Capabilities = Mapping[str, Any]  # the result of torch.cpu.get_capabilities


def capabilities() -> Capabilities:
    """The capabilities of this machine's processor."""
    return torch.cpu.get_capabilities()


def foreign_x86(processor: Capabilities) -> bool:
    """Whether it is an x86 processor not made by Intel."""
    return processor.get("architecture") == "x86_64" and "Intel" not in str(processor.get("cpu_name"))


def bf16_is_faster(processor: Capabilities) -> bool:
    """Whether it multiplies bf16 matrices faster than fp32 ones."""
    return bool(processor.get("amx_bf16") or (processor.get("avx512_bf16") and foreign_x86(processor)))
