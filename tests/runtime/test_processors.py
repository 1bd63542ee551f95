"""How many processors a process may use: by its binding, and by its container's quota."""

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from transduce.runtime.processors import quota


def groups(folder: Path, own: str, limits: dict[str, str]) -> float:
    for name, text in limits.items():
        path = folder / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "own").write_text(own)
    return quota(folder / "groups", folder / "own")


@pytest.mark.parametrize(
    ("own", "limits", "wanted"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/a/b\n", {"cpu.max": "max 100000\n", "a/cpu.max": "300000 100000\n", "a/b/cpu.max": "max 100000\n"}, 3.0),
        ("0::/a/b\n", {"a/cpu.max": "50000 100000\n", "a/b/cpu.max": "300000 100000\n"}, 0.5),
        ("0::/a\n", {"a/cpu.max": "nothing\n"}, math.inf),
        (
            "4:memory:/\n3:cpu,cpuacct:/d\n",
            {"cpu/d/cpu.cfs_quota_us": "200000\n", "cpu/d/cpu.cfs_period_us": "100000\n"},
            2.0,
        ),
        ("3:cpu,cpuacct:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, math.inf),
        ("", {}, math.inf),
    ],
)
def test_a_containers_quota(own: str, limits: dict[str, str], wanted: float, tmp_path: Path) -> None:
    assert groups(tmp_path, own, limits) == wanted


def test_without_control_groups_there_is_none(tmp_path: Path) -> None:
    assert quota(tmp_path, tmp_path / "own") == math.inf


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not bind processes")
def test_a_process_that_is_bound_to_one_processor_uses_one() -> None:
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from transduce.runtime.processors import processors\nprint(processors())"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "1\n"


def test_threads_are_as_many_as_the_quota(monkeypatch: pytest.MonkeyPatch) -> None:
    from transduce.runtime import processors

    monkeypatch.setattr(processors.os, "cpu_count", lambda: 8)
    monkeypatch.setattr(processors, "quota", lambda: 1.5)
    monkeypatch.setattr(processors.os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    processors.limit_threads()
    assert os.environ["OMP_NUM_THREADS"] == "2"
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    processors.limit_threads()
    assert os.environ["OMP_NUM_THREADS"] == "5"
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(processors, "quota", lambda: math.inf)
    processors.limit_threads()
    assert "OMP_NUM_THREADS" not in os.environ
