"""How much memory there is, how much a step needs, and whether an error says that there was too little."""

import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transduce.data.collate import Batch
from transduce.objectives.protocols import Objective
from transduce.training.precision import autocast

UNKNOWN = 4 * 2**30  # taken to be free where no system call tells
PROCESSOR = ("DefaultCPUAllocator", "can't allocate memory", "bad_alloc")  # of torch's own allocator and C++'s


def is_out_of_memory(error: BaseException) -> bool:
    """Whether torch failed for want of memory: on an accelerator a type of its own, on the processor by its words."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in PROCESSOR)


def free_bytes(device: torch.device) -> int:
    """What could be allocated on `device` now. Of the processor's memory others may want some, too."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    found = [_free_of_machine(), _free_of_group()]
    return min((each for each in found if each is not None), default=UNKNOWN)


def _free_of_machine() -> int | None:
    """Linux and Windows say what is available; of a machine that says only how much it has, half."""
    if sys.platform == "win32":
        return _free_on_windows()
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file():
        lines = dict(line.split(":", 1) for line in meminfo.read_text(encoding="ascii").splitlines())
        if "MemAvailable" in lines:
            return int(lines["MemAvailable"].split()[0]) * 1024
    import os

    if "SC_PHYS_PAGES" in os.sysconf_names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    return None


def _free_on_windows() -> int | None:
    import ctypes

    class Status(ctypes.Structure):
        _fields_ = (
            ("length", ctypes.c_ulong),
            ("load", ctypes.c_ulong),
            *((name, ctypes.c_ulonglong) for name in ("total", "available", "c", "d", "e", "f", "g")),
        )

    status = Status(length=ctypes.sizeof(Status))
    windows: Any = getattr(ctypes, "windll")  # noqa: B009 (only there on Windows)
    return int(status.available) if windows.kernel32.GlobalMemoryStatusEx(ctypes.byref(status)) else None


def _free_of_group(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int | None:
    """What a container's limit leaves (Linux control groups, version 2); None without a limit."""
    try:
        path = next(line for line in own.read_text().splitlines() if line.startswith("0::")).removeprefix("0::/")
        folder = root / path
        limit = (folder / "memory.max").read_text().strip()
        if limit == "max":
            return None
        counts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        held = int((folder / "memory.current").read_text()) - int(counts["inactive_file"])  # files go when asked to
        return max(0, int(limit) - held)
    except (OSError, StopIteration, KeyError, ValueError):
        return None


def activation_bytes(model: nn.Module, objective: Objective, batch: Batch, precision: str) -> int:
    """What the backward pass keeps of one forward pass over `batch`, measured by running it."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    weights = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    device = batch.device
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor), autocast(precision, device):
        objective.loss(model, batch, objective.draw(model, batch))
    return sum(size for place, size in kept.items() if place not in weights)
