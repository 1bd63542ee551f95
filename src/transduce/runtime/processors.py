"""How many processors this process may use: those that it is bound to, and of these what its container may use."""

import math
import os
from pathlib import Path

from transduce.runtime.control_groups import GROUPS, OWN, own_groups

VARIABLE = "OMP_NUM_THREADS"


def processors() -> int:
    """At least 1: what `taskset` leaves, and what a container's quota is, rounded up."""
    bound = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, math.ceil(min(bound, quota())))


def limit_threads() -> None:
    """Let libraries start no more threads than a container's quota has processors; to be called before they are loaded.

    What the environment says stays. They see by themselves what `taskset` leaves.
    """
    if quota() < (os.cpu_count() or 1):
        os.environ.setdefault(VARIABLE, str(processors()))


def quota(groups: Path = GROUPS, own: Path = OWN) -> float:
    """Processors that the control groups of this process allow, of versions 1 and 2; infinite without a limit."""
    found = [math.inf]
    for controllers, group in own_groups(own).items():
        inside = [group, *group.parents]
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
