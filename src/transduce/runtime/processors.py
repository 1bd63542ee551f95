"""How many processors this process may use: those that it is bound to, and of these what its container may use."""

import math
import os
from pathlib import Path

VARIABLE = "OMP_NUM_THREADS"
GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def processors() -> int:
    """At least 1: what `taskset` leaves, and what a container's quota is, rounded up."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(bound, quota())))


def limit_threads() -> None:
    """Let libraries start no more threads than a container's quota has processors; to be called before they are loaded.

    What the environment says stays. They see by themselves what `taskset` leaves.
    """
    if processors() < (os.cpu_count() or 1) and math.isfinite(quota()):
        os.environ.setdefault(VARIABLE, str(processors()))


def quota(groups: Path = GROUPS, own: Path = OWN) -> float:
    """Processors that the control groups of this process allow, of versions 1 and 2; infinite without a limit."""
    try:
        lines = [line.split(":", 2) for line in own.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError):
        return math.inf
    found = [math.inf]
    for _, controllers, path in lines:
        inside = [Path(path.lstrip("/")), *Path(path.lstrip("/")).parents]
        if not controllers:
            found += [_of_version_2(groups / each) for each in inside]
        elif "cpu" in controllers.split(","):
            found += [_of_version_1(groups / folder / each) for folder in ("cpu", controllers) for each in inside]
    return min(found)


def _of_version_2(folder: Path) -> float:
    try:
        most, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        return math.inf if most == "max" else int(most) / int(period)
    except (OSError, ValueError):
        return math.inf


def _of_version_1(folder: Path) -> float:
    try:
        most, period = (
            int((folder / f"cpu.cfs_{name}_us").read_text(encoding="ascii")) for name in ("quota", "period")
        )
        return most / period if most > 0 else math.inf
    except (OSError, ValueError):
        return math.inf
