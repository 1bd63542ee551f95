"""A server that is told to stop ends, whatever its clients do then."""

import asyncio
import fcntl
import signal
import socket
import threading
from pathlib import Path

import httpx

from served import everything_that_runs, start
from transduce.serve.app import create_app
from transduce.serve.models import Models
from transduce.serve.run import Stopping, config_of
from transduce.serve.settings import ServeSettings

MANY = b"GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n" * 300


def test_a_client_that_came_last_and_reads_nothing_is_not_waited_for(served_file: Path) -> None:
    """Such a connection began after all others were told to close, and its answers fill every buffer."""
    app = create_app(Models.open([served_file]), None, ServeSettings(threads=1))
    server, stop = Stopping(config_of(app)), app.state.service.stop
    ours, theirs = socket.socketpair()
    ours.sendall(MANY)

    async def stop_late() -> None:
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: server.config.http_protocol_class(server.config, server.server_state, {}), theirs
        )
        while not server.server_state.tasks:
            await asyncio.sleep(0.01)
        await stop()

    app.state.service.stop = stop_late
    thread = threading.Thread(target=server.run, kwargs={"sockets": []})
    thread.start()
    server.should_exit = True
    thread.join(10)
    try:
        assert not thread.is_alive(), everything_that_runs()
    finally:
        ours.close()


def test_a_full_pipe_on_standard_error_stops_nothing(served_file: Path) -> None:
    process, address = start(served_file)
    assert process.stderr is not None
    fcntl.fcntl(process.stderr, fcntl.F_SETPIPE_SZ, 4096)  # nobody reads on
    host, port = address.removeprefix("http://").split(":")
    for _ in range(100):
        with socket.create_connection((host, int(port)), timeout=10) as bad:
            bad.sendall(b"\0\r\n\r\n")
            assert b"400 Bad Request" in bad.recv(100)
    measured = httpx.get(f"{address}/metrics").text
    assert "transduce_dropped_log_lines_total 40.0" in measured
    process.send_signal(signal.SIGTERM)
    try:
        assert process.wait(20) == 0
    finally:
        process.kill()
