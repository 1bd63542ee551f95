"""Three hosts made of network namespaces that train one model, of which the link of one is cut."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))


@pytest.mark.slow
def test_a_cut_host_is_named_and_the_same_command_goes_on_to_the_same_bytes() -> None:
    from namespaces import why_not

    if reason := why_not():
        pytest.skip(reason)
    command = [sys.executable, str(BENCHMARKS / "hosts.py"), "--faults", "cut/2", "--hang-seconds", "6"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^cut/2 .* yes +process 2 of 3, on host-2, has not moved for \d+ s$", done.stdout, re.M), (
        done.stdout
    )
