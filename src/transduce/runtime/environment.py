"""What a figure was measured on."""

import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil
import torch

from transduce.kernels.cpu import bf16_is_faster, capabilities
from transduce.kernels.native import kernels
from transduce.version import __version__

LIBRARIES = ("torch", "numpy", "tokenizers", "pyarrow", "safetensors", "sacrebleu", "sacremoses", "pydantic")


def library_versions() -> dict[str, str]:
    """Of Transduce, Python and the libraries whose release can change a result."""
    ours = {"transduce": __version__, "python": platform.python_version()}
    return ours | {name: version(name) for name in LIBRARIES}


def machine() -> dict[str, Any]:
    """Processor, cores, threads, memory, and which kernels in C++ it runs."""
    capabilities = torch.cpu.get_capabilities()
    described: dict[str, Any] = {
        "system": platform.system(),
        "processor": str(capabilities.get("cpu_name") or platform.processor() or platform.machine()),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "memory_gib": round(psutil.virtual_memory().total / 2**30, 1),
    }
    found = kernels()
    described["kernels"] = found.__name__.rpartition(".")[2] if found else "none"
    if torch.cuda.is_available():
        described["accelerator"] = torch.cuda.get_device_name()
    return described


def source_commit() -> str | None:
    """The git commit of this code, with "-dirty" where it was changed since; None where it is not a checkout."""
    folder = Path(__file__).resolve().parents[3]
    if not (folder / ".git").exists():
        return None
    asked = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    try:
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def kernels_in_words() -> str:
    """Which kernels run here, on how many threads, and in which numbers `training.precision = "auto"` multiplies."""
    found = kernels()
    name = found.__name__.rpartition(".")[2] if found else "none (everything is done with torch)"
    threads = torch.get_num_threads()
    faster = "bf16" if bf16_is_faster(capabilities()) else "fp32"
    return f"{name}, {threads} thread{'' if threads == 1 else 's'}, {faster} is multiplied faster"


def peak_memory_bytes() -> int:
    """The most memory this process has held so far. psutil knows it on Windows only."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
