"""Which kind of matrix product is fast on which processor.

AMX multiplies bf16 several times as fast as AVX-512 does fp32. The dot products of AVX-512 alone (vdpbf16ps) run twice
as fast as fp32 where AMD made the processor, and half as fast where Intel did: on a Xeon whose AMX is switched off, as
it may be on a rented machine, 2,048 x 2,048 matrices multiply at 151 GFLOP/s a core in fp32 and at 80 in bf16.
"""

from collections.abc import Mapping
from typing import Any

import torch

Capabilities = Mapping[str, Any]  # as torch.cpu.get_capabilities tells them


def capabilities() -> Capabilities:
    """Of this machine's processor."""
    found: Capabilities = torch.cpu.get_capabilities()
    return found


def foreign_x86(processor: Capabilities) -> bool:
    """Whether it is an x86 processor that Intel did not make."""
    return processor.get("architecture") == "x86_64" and "Intel" not in str(processor.get("cpu_name"))


def bf16_is_faster(processor: Capabilities) -> bool:
    """Whether it multiplies bf16 matrices faster than fp32 ones."""
    return bool(processor.get("amx_bf16") or (processor.get("avx512_bf16") and foreign_x86(processor)))
