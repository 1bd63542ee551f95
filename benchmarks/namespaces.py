"""Hosts made of network namespaces on one machine, joined by a switch whose links can be cut, slowed and made to lose.

Each host has a network namespace, a host name, and one interface (`eth0`, 10.77.0.1 and so on) behind a pair of veth
devices, the other ends of which are joined by a bridge in a namespace of its own. Files and processors are those of the
machine, as with a shared file system.

A cut link and a lossy one drop frames in both directions, without a word to either side: by a classic BPF filter that
draws a number for each frame. A slow link is a token bucket (`tc` with tbf): what exceeds its rate waits in a queue. An
unplugged link is down, which the host sees. netem is not used, as many small kernels lack it; so no fault here reorders
frames, and a delay is one of bandwidth. Linux, root, `ip` and `tc` (iproute2).
"""

import os
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

NOTHING: dict[str, Path] = {}
QUEUE = 2_000_000  # bytes that wait before a slow link
DRAWN = 2**32  # numbers that the filter draws from
SWITCH = "switch"


def why_not() -> str:
    """Why no hosts can be made here; empty where they can."""
    if missing := [tool for tool in ("ip", "tc", "unshare") if shutil.which(tool) is None]:
        return f"{', '.join(missing)} is not installed"
    try:
        with Hosts(2) as hosts:
            hosts.cut(1)
    except (subprocess.CalledProcessError, OSError) as error:
        told = error.stderr if isinstance(error, subprocess.CalledProcessError) else error
        return f"no network namespaces can be made: {str(told).strip()}"
    return ""


class Hosts:
    """`count` hosts, numbered from 0. As a context, they are there from its beginning and gone at its end."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._prefix = f"transduce-{os.getpid()}-"

    def __enter__(self) -> "Hosts":
        try:
            self._make()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._remove()

    @staticmethod
    def address(host: int) -> str:
        """Its IP address."""
        return f"10.77.0.{host + 1}"

    @staticmethod
    def name(host: int) -> str:
        """What it calls itself."""
        return f"host-{host}"

    def start(
        self, host: int, command: list[str], own: dict[str, Path] = NOTHING, **options: Any
    ) -> subprocess.Popen[Any]:
        """A command, begun on a host.

        Args:
            own: folders that the host sees at another place, which the machine has, too: place -> folder.
            options: those of `subprocess.Popen`.
        """
        mounts = "".join(f"mount --bind '{folder}' '{place}' && " for place, folder in own.items())
        named = f'{mounts}hostname {self.name(host)} && exec "$@"'
        there = ["ip", "netns", "exec", self._space(host), "unshare", "--uts", "sh", "-c", named, "sh"]
        return subprocess.Popen([*there, *command], start_new_session=True, **options)

    def cut(self, host: int) -> None:
        """No frame comes or goes any more, and nobody is told."""
        self.lose(host, 1.0)

    def lose(self, host: int, share: float) -> None:
        """This share of the frames is lost, in each direction."""
        kept = min(round((1 - share) * DRAWN), DRAWN - 1)
        # load a random number; if it is below `kept`, let the frame pass (0), else drop it (2)
        program = f"4,32 0 0 4294963256,53 1 0 {kept},6 0 0 0,6 0 0 2"
        for way in ("ingress", "egress"):
            self._tc("filter", "replace", host, way, "prio", "1", "bpf", "da", "bytecode", program)

    def slow(self, host: int, kilobits: int) -> None:
        """So many kilobits a second pass, in each direction; the rest waits."""
        bucket = ["root", "tbf", "rate", f"{kilobits}kbit", "burst", "3000", "limit", str(QUEUE)]
        self._tc("qdisc", "replace", host, *bucket)
        _run("ip", "netns", "exec", self._space(host), "tc", "qdisc", "replace", "dev", "eth0", *bucket)

    def unplug(self, host: int) -> None:
        """The link is down, which the host sees."""
        _run("ip", "-n", self._space(SWITCH), "link", "set", f"port{host}", "down")

    def restore(self, host: int) -> None:
        """The link is whole again."""
        for way in ("ingress", "egress"):
            self._tc("filter", "delete", host, way, check=False)
        self._tc("qdisc", "delete", host, "root", check=False)
        _run("ip", "netns", "exec", self._space(host), "tc", "qdisc", "delete", "dev", "eth0", "root", check=False)
        _run("ip", "-n", self._space(SWITCH), "link", "set", f"port{host}", "up")

    def kill(self, host: int) -> None:
        """SIGKILL to all processes of a host, until there are none."""
        while found := self.processes(host):
            for each in found:
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            time.sleep(0.02)

    def processes(self, host: int) -> list[int]:
        """Their ids; those that have ended and were not waited for are not among them."""
        found = _run("ip", "netns", "pids", self._space(host), check=False).split()
        return [int(each) for each in found if _lives(each)]

    def _space(self, which: int | str) -> str:
        return f"{self._prefix}{which}"

    def _tc(self, kind: str, verb: str, host: int, *more: str, check: bool = True) -> None:
        _run("ip", "netns", "exec", self._space(SWITCH), "tc", kind, verb, "dev", f"port{host}", *more, check=check)

    def _make(self) -> None:
        switch = self._space(SWITCH)
        _run("ip", "netns", "add", switch)
        _run("ip", "-n", switch, "link", "add", "bridge", "type", "bridge")
        _run("ip", "-n", switch, "link", "set", "bridge", "up")
        for host in range(self.count):
            space, port = self._space(host), f"port{host}"
            _run("ip", "netns", "add", space)
            _run("ip", "-n", switch, "link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
            _run("ip", "-n", switch, "link", "set", port, "master", "bridge", "up")
            _run("ip", "-n", space, "address", "add", f"{self.address(host)}/24", "dev", "eth0")
            _run("ip", "-n", space, "link", "set", "lo", "up")
            _run("ip", "-n", space, "link", "set", "eth0", "up")
            self._tc("qdisc", "add", host, "clsact")

    def _remove(self) -> None:
        for which in (*range(self.count), SWITCH):
            if (Path("/run/netns") / self._space(which)).exists():
                if isinstance(which, int):
                    self.kill(which)
                _run("ip", "netns", "delete", self._space(which), check=False)


def _lives(process: str) -> bool:
    try:
        return ") Z " not in (Path("/proc") / process / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False


def _run(*command: str, check: bool = True) -> str:
    return subprocess.run(command, check=check, capture_output=True, text=True).stdout
