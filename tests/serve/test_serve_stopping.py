"""A server that is told to stop ends, whatever its clients do then."""

import asyncio
import socket
import threading
from pathlib import Path

from served import everything_that_runs
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
