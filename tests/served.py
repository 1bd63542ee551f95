"""A real server on a free port, with a tiny random model, for tests over real sockets."""

import asyncio
import gc
import os
import re
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from typing import Any

import httpx

from random_models import model_file, translator
from transduce.core.model_file import save_model_file
from transduce.serve.app import create_app
from transduce.serve.models import PLAIN, Models
from transduce.serve.run import Stopping, config_of, listen
from transduce.serve.served_model import ModelUse
from transduce.serve.service import Service
from transduce.serve.settings import ServeSettings
from transduce.serve.work import Answer, WorkItem, answer

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
CODES = {"kind": "translation", "source": "de", "target": "en"}


def write_model(path: Path, seed: int = 3, **sections: Any) -> Path:
    """A random translator from German to English, as a file."""
    save_model_file(path, model_file(translator(seed=seed, task=CODES, **sections)))
    return path


class Server:
    """What a test sees of a running server."""

    def __init__(self, address: str, service: Service) -> None:
        self.address, self.service = address, service
        self.client = httpx.Client(base_url=address, timeout=60)

    def post(self, path: str, **values: Any) -> httpx.Response:
        """JSON in."""
        return self.client.post(path, json=values)

    def metric(self, line: str) -> float:
        """The value behind the beginning of a line of /metrics."""
        found = [each for each in self.client.get("/metrics").text.splitlines() if each.startswith(f"{line} ")]
        return float(found[0].split()[-1]) if found else 0.0


@contextmanager
def serving(
    models: Sequence[str | Path], page: str | None = None, use: ModelUse = PLAIN, **settings: Any
) -> Iterator[Server]:
    """A server in a thread of its own; stopped gracefully, with its gate open, or a failed test would wait for it."""
    app = create_app(Models.open(models, use), page, ServeSettings(threads=1, **settings))
    server = Stopping(config_of(app))
    listening = listen("127.0.0.1", 0)
    listening.listen(1024)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    running = Server(f"http://127.0.0.1:{listening.getsockname()[1]}", app.state.service)
    try:
        yield running
    finally:
        running.client.close()
        if isinstance(gate := running.service.batches.run, Gate):
            gate.open()
        server.should_exit = True
        thread.join(120)
        assert not thread.is_alive(), everything_that_runs()


def everything_that_runs() -> str:
    """The stack of every thread and of every event loop's tasks: why a server does not stop."""
    stacks = [f"thread {ident}\n{''.join(traceback.format_stack(top))}" for ident, top in sys._current_frames().items()]
    for loop in [each for each in gc.get_objects() if isinstance(each, asyncio.AbstractEventLoop)]:
        written = StringIO(f"{loop}\n")
        written.seek(0, os.SEEK_END)
        for task in asyncio.all_tasks(loop):
            task.print_stack(file=written)
        stacks.append(written.getvalue())
    return "\n\n".join(stacks)


def start(*arguments: str | Path, command: Sequence[str] = ("-m", "transduce")) -> tuple["subprocess.Popen[str]", str]:
    """A server as a process, and its address. command: what Python is given."""
    written = [sys.executable, *command, "serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(written, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    assert process.stderr is not None
    told = []
    for line in process.stderr:
        told.append(line)
        found = re.search(r"Serving on (http://[^,]+)", line)
        if found:
            address = found[1]
            break
    else:
        raise AssertionError(f"the server did not start: {told}")
    for _ in range(200):
        try:
            httpx.get(f"{address}/health")
            break
        except httpx.ConnectError:
            time.sleep(0.05)
    return process, address


class Gate:
    """Stands before the model: batches wait until it opens, and what came through is seen."""

    def __init__(self, run: Callable[[Sequence[WorkItem]], list[list[Answer]]] = answer) -> None:
        self._run = run
        self._open = threading.Event()
        self.reached = threading.Event()
        self.batches: list[list[str]] = []

    def __call__(self, works: Sequence[WorkItem]) -> list[list[Answer]]:
        self.batches.append([text for work in works for text in work.texts])
        self.reached.set()
        assert self._open.wait(600)
        return self._run(works)

    def open(self) -> None:
        self._open.set()
