"""Nothing that a client sends makes the server fail."""

from pathlib import Path

import pytest
from hostile import check_description, send_malformed

from served import Server, serving


def test_malformed_bodies_are_never_the_servers_fault(server: Server) -> None:
    assert set(send_malformed(server.client, 500)) >= {200, 400}
    assert server.client.get("/health").status_code == 200


def test_the_description_holds(served_file: Path) -> None:
    pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    with serving([served_file], characters=300) as running:
        assert check_description(running.address, examples=6) >= 30
