"""Run uvicorn with a graceful stop: new requests are refused, accepted ones are answered, then it ends."""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from types import FrameType
from typing import NoReturn

import uvicorn
from fastapi import FastAPI

from transduce.core.errors import InputError
from transduce.runtime.settings import switch_interval
from transduce.serve.app import create_app
from transduce.serve.models import Models
from transduce.serve.settings import ServeSettings

STANDARD_ERROR = 2  # the file descriptor
WAITING = 1000  # lines for a reader that is slower than the server
OFTEN, PERIOD = 60, 60  # as many lines from one place in the code, in so many seconds
LAST = f" (At most {OFTEN} such lines are logged in {PERIOD} s.)"
PATIENCE = 1.0  # seconds for the last lines, when the server ends

BACKLOG = 1024  # connections that wait to be accepted
GRACE = 5  # seconds for connections to close after the last answer
SETTLED = 0.05  # seconds in which an accepted connection becomes one that uvicorn knows
SWITCH = 0.001  # seconds that a thread with a text may keep the event loop waiting, Python's own choice being 0.005
KEEP_ALIVE = 75  # seconds that a connection may rest; closed sooner, it is closed in the face of a slow client

log = logging.getLogger("transduce.serve")


def run(
    models: Models,
    settings: ServeSettings,
    host: str,
    port: int,
    page: str | None = None,
    tell: Callable[[str], None] = print,
) -> None:
    """Serve until SIGTERM or SIGINT; a second one ends at once. Port 0 takes any free one.

    Raises:
        InputError: the port cannot be had.
    """
    app = create_app(models, page, settings)
    logging.basicConfig(level=logging.INFO, handlers=[ServerLog(app.state.service.measures.unlogged.inc)])
    listening = listen(host, port)
    listening.listen(BACKLOG)  # whoever is told the address may come at once
    shown = f"[{host}]" if ":" in host else host
    tell(f"http://{shown}:{listening.getsockname()[1]}")
    with switch_interval(SWITCH):
        Stopping(config_of(app)).run(sockets=[listening])
    if app.state.service.batches.alive:
        _exit_now()


def _exit_now() -> NoReturn:
    """End the process though a thread still computes: the interpreter would unload the libraries under it and crash."""
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, AttributeError):  # full, or closed
            stream.flush()
    os._exit(0)


def config_of(app: FastAPI) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_config=None,  # through the handlers that are there
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
    )


class Stopping(uvicorn.Server):
    """A server that refuses requests after the first signal and ends when the last one is answered."""

    received: signal.Signals | None = None  # which came, until the log says so

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came. What it interrupts may hold the log's lock."""
        drain = self.config.app.state.service.drain  # type: ignore[union-attr]
        if drain.closed_at is not None:
            self.should_exit = self.force_exit = True
            return
        drain.close()
        self.received = signal.Signals(sig)

    async def on_tick(self, counter: int) -> bool:
        """Ten times a second."""
        service = self.config.app.state.service  # type: ignore[union-attr]
        drain = service.drain
        if self.received:
            log.info("%s: finishing.", self.received.name)
            self.received = None
        if drain.closed_at is not None:
            late = time.monotonic() - drain.closed_at > service.settings.drain
            self.should_exit = self.should_exit or drain.inside == 0 or late
        return await super().on_tick(counter)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, let connections end within GRACE and stop the service; then cut what is still open.

        asyncio waits for each request's task, and one that writes to a client who does not read has no end.
        """
        for server in self.servers:
            server.close()
        await asyncio.sleep(SETTLED)  # connections that were accepted last are told to close like the others
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to an address.

    Raises:
        InputError: it cannot be had.
    """
    if not 0 <= port < 1 << 16:  # others would be taken modulo that
        raise InputError(f"{host}, port {port}: a port is a number from 0 to 65535. Choose another --port.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listening = socket.socket(family, kind, protocol)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
    except (OSError, OverflowError) as error:
        raise InputError(f"{host}, port {port}: cannot listen there: {error}. Choose another --port.") from None
    return listening


class ServerLog(logging.Handler):
    """Writes from a thread of its own: the event loop would stop for everybody while a pipe is full.

    Args:
        file: the file descriptor.
        left_out: called for each line for which there is no room, or of whose kind there are too many.
    """

    def __init__(self, left_out: Callable[[], None], file: int = STANDARD_ERROR) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self._file, self._left_out = file, left_out
        self._lines: SimpleQueue[bytes | threading.Event] = SimpleQueue()  # unlike Queue, safe while garbage is freed
        self._since, self._seen = 0.0, Counter[tuple[str, int]]()
        threading.Thread(target=self._write, name="transduce-log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """One line, or several with a traceback."""
        seen = self._count(record)
        if seen > OFTEN or self._lines.qsize() >= WAITING:
            self._left_out()
            return
        line = self.format(record) + (LAST if seen == OFTEN else "")
        self._lines.put(f"{line}\n".encode("utf-8", "backslashreplace"))

    def flush(self) -> None:
        """Wait until all is written, but not for long: perhaps nobody reads."""
        written = threading.Event()
        self._lines.put(written)
        written.wait(PATIENCE)

    def _count(self, record: logging.LogRecord) -> int:
        """How many records the same place has made in this period."""
        if record.created - self._since > PERIOD:
            self._since, self._seen = record.created, Counter()
        place = record.pathname, record.lineno
        self._seen[place] += 1
        return self._seen[place]

    def _write(self) -> None:
        while True:
            line = self._lines.get()
            if isinstance(line, threading.Event):
                line.set()
                continue
            with suppress(OSError):  # closed, or full and not to be waited for
                while line:
                    line = line[os.write(self._file, line) :]
