"""The pages where nobody has built them: built into the cache, and served to this machine."""

import sys
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rich.console import Console

from transduce.core.cache import cache_folder
from transduce.core.errors import InputError, Interrupted
from transduce.site.build import build
from transduce.site.demo_model import RECIPE, demo_model, is_finished

RUN = Path("runs/demo")  # where `transduce demo` trains


def pages(console: Console) -> Path:
    """The folder with the pages. Their model is that of `transduce demo`, if it was trained here, or is trained now.

    Raises:
        InputError: the cache cannot be written, or the model does not do what the pages say.
    """
    cache = cache_folder() / "site" / sha256(RECIPE.read_bytes()).hexdigest()[:12]
    run = RUN if is_finished(RUN) else cache / "run"
    if not is_finished(run):
        console.print("The pages run a small model, which is trained first: about three minutes, once.")
    folder = cache / "pages"
    build(folder, demo_model(run, [], console))
    return folder


class Handler(SimpleHTTPRequestHandler):
    """Files, without a line in the terminal for each, and without lists of what is in a folder."""

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def send_head(self) -> Any:
        """A file; 421 under another host's name, as pages elsewhere would ask for it; 404 for what is none."""
        if self.headers.get("host", "").rsplit(":", 1)[0] not in ("127.0.0.1", "localhost"):
            return self.send_error(421)
        try:
            return super().send_head()
        except ValueError:  # a NUL in a path
            return self.send_error(404)

    def list_directory(self, path: object) -> None:
        """404."""
        self.send_error(404)


class Server(ThreadingHTTPServer):
    """A server that says nothing of clients who leave."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """What went wrong, but for a connection that broke. A signal that came meanwhile ends the server."""
        error = sys.exc_info()[1]
        if isinstance(error, Interrupted):
            raise error
        if not isinstance(error, ConnectionError):
            super().handle_error(request, client_address)


def serve(folder: Path, port: int, ready: Callable[[str], None]) -> None:
    """Serves a folder to this machine alone until Ctrl-C; `ready` is called with the address.

    Raises:
        InputError: the port is taken.
    """
    try:
        server = Server(("127.0.0.1", port), partial(Handler, directory=str(folder)))
    except (OSError, OverflowError) as error:
        raise InputError(f"--port {port}: cannot listen there: {error}. 0 takes any free port.") from None
    with server:
        ready(f"http://127.0.0.1:{server.server_port}")
        try:
            server.serve_forever()
        except (KeyboardInterrupt, Interrupted):
            return
