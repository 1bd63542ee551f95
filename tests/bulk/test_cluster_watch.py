"""Who is named of the machines of a cluster that do not answer."""

import socket
import time
from collections.abc import Callable
from typing import Any

import pytest

from transduce.bulk import ray_engine
from transduce.bulk.ray_engine import ClusterWatch


def node(number: int, port: int) -> dict[str, Any]:
    where = {"NodeManagerHostname": f"host-{number}", "NodeManagerAddress": "127.0.0.1", "NodeManagerPort": port}
    return {"NodeID": f"{number:04x}", "Alive": True, **where}


def wait_for(happened: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_machine_that_does_not_answer_is_named_once_and_again_when_it_is_given_up(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ray_engine, "OFTEN", 0.02)
    looks, told = list[int](), list[str]()

    def nodes() -> list[dict[str, Any]]:
        looks.append(1)
        return found

    def said(words: str) -> bool:
        told.append(capsys.readouterr().err)
        return words in "".join(told)

    with socket.create_server(("127.0.0.1", 0)) as listening, socket.create_server(("127.0.0.1", 0)) as closed:
        found = [node(0, listening.getsockname()[1]), node(1, closed.getsockname()[1])]
        watch = ClusterWatch(nodes, silent=0.2)
        watch.start()
        wait_for(lambda: len(looks) > 20)
        assert not said("transduce")
        closed.close()
        wait_for(lambda: said("host-1 (127.0.0.1) has not answered for"))
        before = len(looks)
        wait_for(lambda: len(looks) > before + 20)
        found[1]["Alive"] = False
        wait_for(lambda: said("host-1 (127.0.0.1) has gone from the Ray cluster"))
        watch.stop()
    assert "".join(told).count("has not answered") == 1
    assert "host-0" not in "".join(told)
    assert not watch.is_alive()
