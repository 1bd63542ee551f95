"""Pages that nobody has built: `transduce explore` builds them with the demo's model, and serves them here alone."""

import http.client
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.request
from functools import partial

import pytest
from rich.console import Console

from transduce.core.errors import InputError, Interrupted
from transduce.site import on_call

SCRIPT = """
import sys
from pathlib import Path
from transduce.site import on_call
on_call.RUN = Path(sys.argv.pop(1))
from transduce.cli.app import main
main()
"""


@pytest.mark.skipif("TRANSDUCE_DEMO_RUN" in os.environ, reason="a run from elsewhere is another one by its recipe")
def test_explore_without_a_model_serves_the_pages(run, tmp_path):
    command = [sys.executable, "-c", SCRIPT, str(run), "explore", "--no-browser"]
    environment = {**os.environ, "TRANSDUCE_CACHE": str(tmp_path)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as served:
        try:
            told = ""
            while "Ctrl-C" not in told and (line := served.stdout.readline()):
                told += line
            address = re.search(r"http://127\.0\.0\.1:\d+", told)[0]
            for path in ("/", "/en/it.html", "/zh/it.html", "/assets/model.js"):
                with urllib.request.urlopen(address + path, timeout=60) as answer:
                    assert answer.status == 200
            served.send_signal(signal.SIGINT)
            assert served.wait(60) == 0 or served.returncode == -signal.SIGINT
        finally:
            served.kill()
    assert "trained first" not in told


def test_a_signal_that_comes_with_a_request_ends_the_server(tmp_path, monkeypatch):
    def interrupted(self, request, address):
        raise Interrupted("stopped by SIGINT.")

    def ask(address):
        port = int(address.rsplit(":", 1)[1])
        asking = http.client.HTTPConnection("127.0.0.1", port)
        asking.connect()  # is accepted once the server runs
        connections.append(asking)

    connections = []
    monkeypatch.setattr(on_call.Server, "process_request", interrupted)
    server = threading.Thread(target=on_call.serve, args=(tmp_path, 0, ask), daemon=True)
    server.start()
    server.join(30)
    assert not server.is_alive()


def test_a_port_that_is_taken_is_said_to_be(tmp_path):
    def second(address):
        with pytest.raises(InputError, match="cannot listen there"):
            on_call.serve(tmp_path, int(address.rsplit(":", 1)[1]), lambda _: None)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        on_call.serve(tmp_path, 0, second)


def test_a_port_that_is_none_is_refused(tmp_path):
    with pytest.raises(InputError, match="--port 70000"):
        on_call.serve(tmp_path, 70000, print)


def test_a_cache_that_cannot_be_written_is_said_to_be(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRANSDUCE_CACHE", str(tmp_path / "file"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="file"):
        on_call.pages(Console(quiet=True))


def test_no_list_no_foreign_host_and_no_trace_of_a_strange_path(tmp_path, capsys):
    (tmp_path / "a.txt").write_text("here")
    with on_call.Server(("127.0.0.1", 0), partial(on_call.Handler, directory=str(tmp_path))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for path, name, status in (
            ("/a.txt", "127.0.0.1", 200),
            ("/a.txt", "localhost", 200),
            ("/a.txt", "evil.example", 421),
            ("/", "127.0.0.1", 404),
            ("/%00", "127.0.0.1", 404),
        ):
            connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
            connection.request("GET", path, headers={"host": f"{name}:{server.server_port}"})
            assert connection.getresponse().status == status, (path, name)
            connection.close()
        server.shutdown()
    assert "Traceback" not in capsys.readouterr().err
