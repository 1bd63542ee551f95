"""How long a body may be, to the byte; which words before a key make it one; and when the door was closed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from served import Server, serving
from transduce.serve.guards import Drain


@pytest.fixture(scope="module")
def server(served_file: Path) -> Iterator[Server]:
    with serving([served_file], body_bytes=500, api_key="secret") as running:
        yield running


@pytest.mark.parametrize("told", ["length", "none"])
def test_a_body_may_be_as_long_as_it_may(told: str, server: Server) -> None:
    for size, fits in ((500, True), (501, False)):
        body = b'{"texts": ["ba"]}'.ljust(size)
        content = body if told == "length" else iter([body[:200], body[200:]])
        answer = server.client.post("/v1/predict?api_key=secret", content=content)
        assert (answer.status_code == 413) is not fits


@pytest.mark.parametrize(
    ("said", "status"),
    [("Bearer secret", 200), ("bearer secret", 200), ("Basic secret", 403), ("secret", 403), ("Bearer secrets", 403)],
)
def test_only_a_bearers_key_is_a_key(said: str, status: int, server: Server) -> None:
    answer = server.client.post("/v1/predict", json={"texts": ["ba"]}, headers={"authorization": said})
    assert answer.status_code == status


def test_a_door_was_closed_when_it_was_first() -> None:
    drain = Drain()
    assert drain.closed_at is None
    drain.closed_at = 1.0
    drain.close()
    assert drain.closed_at == 1.0
