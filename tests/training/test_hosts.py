"""Three hosts made of network namespaces that train one model, of which the link of one is cut."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))


@pytest.mark.slow
def test_a_cut_host_is_named_and_the_same_command_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    from hosts import Training
    from namespaces import Hosts, why_not

    if reason := why_not():
        pytest.skip(reason)
    with Hosts(3) as hosts:
        found = Training(hosts, tmp_path, hang_seconds=6).case("cut", 2, tmp_path / "run")
    assert found["named_after"] < 60
    assert "process 2 of 3, on host-2, has not moved for" in found["words"]
    assert found["ended_after"] < 60, "the host that is cut off leaves, too"
    assert found["whole"]
    assert found["same"]
