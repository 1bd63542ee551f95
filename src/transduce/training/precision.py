"""In which numbers the training step multiplies."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import torch


def resolve_precision(wanted: str, device: torch.device) -> Literal["fp32", "bf16"]:
    """`auto` becomes bf16 where the hardware multiplies bf16 matrices, fp32 elsewhere; other values stay."""
    if wanted == "fp32" or (wanted == "auto" and not _multiplies_bf16(device)):
        return "fp32"
    return "bf16"


def autocast(precision: str, device: torch.device) -> AbstractContextManager[Any]:
    """Matrix products in bf16 inside, with fp32 weights, residual stream, norms, softmax and loss; or no change."""
    if precision == "fp32":
        return nullcontext()
    return torch.autocast(device.type, torch.bfloat16)


def _multiplies_bf16(device: torch.device) -> bool:
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type == "cpu":
        capabilities = torch.cpu.get_capabilities()
        return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))
    return False
