"""A link cut, slowed or losing packets, a host gone for good: is the host named, and are the bytes those of no fault?

    python benchmarks/hosts.py
    python benchmarks/hosts.py --faults cut/2 gone/1 ray-gone/2 --rounds 3

Three hosts made of network namespaces (`namespaces.py` says how, and what stands for a delay). A fault is written
KIND/HOST; host 0 keeps torchrun's store and trains as process 0.

Training: torchrun on each host, `--nnodes 3 --rdzv-backend c10d`. The fault begins while updates are made. Right is:
within 60 s a line of Transduce, said on another host, names the host, and no process trains any more; the run directory
holds whole files only; the link is restored, and the same command goes on to the bytes of a training without a fault. A
fault that passes, or that only slows the training down, need not be named: then the training must end with those bytes.

Bulk (`ray-`): a Ray cluster of the three, and `transduce predict --engine ray` on host 0. Right is: the host is named
within 60 s, and the output is that of one process. Prints a table, writes results/distributed/hosts.json where all
faults are asked for, exits 1 if a case is not right. Linux, root. `distributed_faults.py` is for processes of one
machine.
"""

import argparse
import itertools
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from namespaces import Hosts
from safetensors import safe_open
from trainers import record, sha256, trained, warm, write_work

WORLD = 3
PORT = 29500
WITHIN = 60.0  # seconds
LONGEST = 240.0
GRACE = 5.0  # seconds that torchrun has after its processes
HANG = 12.0  # TRANSDUCE_HANG_SECONDS where the default is not the question
BRIEF = 5.0  # seconds that a fault takes which passes
SHORT = (
    "training.updates=120",
    "training.validate_every=120",
    "training.decode_sentences=8",
    "training.checkpoint_every=20",
)
LINES = 40_960  # 20 blocks
RAY_PORT = 6379
RAY = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0", "RAY_AUTH_MODE": "disabled"}
LASTING = ("cut", "unplugged", "gone")  # which must be named; what is only slow may pass
AT = 40  # the checkpoint after which a fault begins


def _briefly(hosts: Hosts, host: int) -> None:
    hosts.cut(host)
    time.sleep(BRIEF)
    hosts.restore(host)


KINDS: dict[str, tuple[str, Callable[[Hosts, int], None]]] = {
    "cut": ("frames are dropped for good", lambda hosts, host: hosts.cut(host)),
    "unplugged": ("the link is down for good", lambda hosts, host: hosts.unplug(host)),
    "gone": ("no frame, and all processes killed", lambda hosts, host: (hosts.cut(host), hosts.kill(host))),
    "killed": ("all processes killed, the link is whole", lambda hosts, host: hosts.kill(host)),
    "loss": ("half of the frames are lost", lambda hosts, host: hosts.lose(host, 0.5)),
    "loss90": ("nine of ten frames are lost", lambda hosts, host: hosts.lose(host, 0.9)),
    "slow": ("256 kbit/s", lambda hosts, host: hosts.slow(host, 256)),
    "crawl": ("1 kbit/s", lambda hosts, host: hosts.slow(host, 1)),
    "blink": (f"frames are dropped for {BRIEF:.0f} s", _briefly),
}
FAULTS = (
    [f"{kind}/{host}" for kind in ("cut", "gone", "unplugged") for host in (0, 1, 2)]
    + ["killed/0", "killed/2", "loss/1", "loss90/2", "slow/2", "crawl/1", "blink/0"]
    + ["ray-cut/1", "ray-gone/2", "ray-loss/1", "ray-slow/2"]
)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", nargs="+", default=FAULTS, metavar="KIND/HOST", help=f"kinds: {', '.join(KINDS)}")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--hang-seconds", type=float, default=HANG, help="TRANSDUCE_HANG_SECONDS; 0 = the default")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the hosts are removed
    began, rows = time.monotonic(), []
    with tempfile.TemporaryDirectory() as name, Hosts(WORLD) as hosts:
        os.environ["TRANSDUCE_CACHE"] = f"{name}/cache"
        training, bulk = Training(hosts, Path(name), asked.hang_seconds), None
        print("fault       named after  all ended after  same bytes  words", flush=True)
        for number, fault in enumerate(asked.faults * asked.rounds):
            kind, host = fault.split("/")
            case = training.case
            if kind.startswith("ray-"):
                bulk = bulk or Bulk(hosts, training.folder / "whole", Path(name) / "lines", Path(name))
                case, kind = bulk.case, kind.removeprefix("ray-")
            rows.append(case(kind, int(host), Path(name) / f"{number}-{kind}-{host}"))
            right = sum(row["right"] for row in rows)
            if asked.faults == FAULTS:
                record("hosts", time.monotonic() - began, rows=rows, right=right, cases=len(rows), within=WITHIN)
    print(f"{right} of {len(rows)} right.")
    sys.exit(0 if right == len(rows) else 1)


@dataclass
class Training:
    """Trainings of one recipe by torchrun on all hosts, beside one by as many processes of this machine."""

    hosts: Hosts
    folder: Path
    hang_seconds: float
    recipe: Path = field(init=False)
    wanted: str = field(init=False)

    def __post_init__(self) -> None:
        self.recipe = write_work(self.folder)
        warm()
        self.wanted = sha256(trained(WORLD, self.recipe, self.folder / "whole", *SHORT))

    @contextmanager
    def started(self, run: Path) -> "Iterator[Nodes]":
        """The command on each host."""
        told = run.with_suffix(".told")
        told.mkdir(exist_ok=True)
        environment = {**os.environ, "GLOO_SOCKET_IFNAME": "eth0", "OMP_NUM_THREADS": "1", "TRANSDUCE_FIGURES": "off"}
        if self.hang_seconds:
            environment["TRANSDUCE_HANG_SECONDS"] = str(self.hang_seconds)
        nodes = Nodes(told)
        try:
            for host in range(self.hosts.count):
                command = [sys.executable, "-m", *self._torchrun(host), "train", str(self.recipe), *SHORT, "--run"]
                with (told / str(host)).open("w") as file:
                    nodes.started.append(
                        self.hosts.start(host, [*command, str(run)], env=environment, stdout=file, stderr=file)
                    )
            yield nodes
        finally:
            for host, node in enumerate(nodes.started):
                self.hosts.kill(host)
                node.wait()

    def _torchrun(self, host: int) -> list[str]:
        there = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"{self.hosts.address(0)}:{PORT}", "--rdzv-id", "hosts"]
        there += ["--rdzv-conf", f"is_host={int(host == 0)}", "--local-addr", self.hosts.address(host)]
        return [
            "torch.distributed.run",
            "--nnodes",
            str(WORLD),
            "--nproc-per-node",
            "1",
            *there,
            "-m",
            "--",
            "transduce",
        ]

    def case(self, kind: str, host: int, run: Path) -> dict[str, Any]:
        """What comes of one fault: see `row`."""
        with self.started(run) as nodes:
            if not wait_for(lambda: newest(run) >= AT or nodes.ended()):
                raise RuntimeError(nodes.told())
            listener = Listener(lambda: nodes.told(but=host), host, time.monotonic())
            KINDS[kind][1](self.hosts, host)
            ended = listener.until(lambda: self._none_trains(nodes))
            listener.until(nodes.ended, GRACE)
            passed = nodes.ended() and not any(node.wait() for node in nodes.started)
            told = nodes.told()
        self.hosts.restore(host)
        whole = not broken(run)
        if not passed:
            with self.started(run) as nodes:
                wait_for(nodes.ended)
        same = whole and (run / "model.safetensors").exists() and sha256(run) == self.wanted
        right = same and (passed or (listener.in_time and ended <= LONGEST))
        if not right:
            print(told[-3000:], nodes.told()[-2000:], f"broken: {broken(run)}", sep="\n")
        return row(
            kind, host, listener, ended_after=round(ended, 1), passed=passed, whole=whole, same=same, right=right
        )

    def _none_trains(self, nodes: "Nodes") -> bool:
        """Whether no process is left but torchrun's, which may wait for minutes for its store."""
        agents = {node.pid for node in nodes.started}
        return all(agents.issuperset(self.hosts.processes(host)) for host in range(WORLD))


@dataclass
class Bulk:
    """`transduce predict --engine ray` on clusters of all hosts, a new one for each case."""

    hosts: Hosts
    model: Path
    source: Path
    folder: Path
    wanted: bytes = field(init=False)

    def __post_init__(self) -> None:
        lines = (self.model.parent / "test.digits").read_text(encoding="utf-8").splitlines(keepends=True)
        self.source.write_text("".join(itertools.islice(itertools.cycle(lines), LINES)), encoding="utf-8")
        alone = self.folder / "alone.out"
        subprocess.run([*self._predict(alone), "--engine", "torch"], check=True, stdout=subprocess.DEVNULL)
        self.wanted = alone.read_bytes()

    def _predict(self, output: Path) -> list[str]:
        command = [sys.executable, "-m", "transduce", "predict", str(self.model), "--source", str(self.source)]
        return [*command, "--output", str(output)]

    def case(self, kind: str, host: int, folder: Path) -> dict[str, Any]:
        """What comes of one fault: see `row`."""
        environment = {**os.environ, "RAY_ADDRESS": f"{Hosts.address(0)}:{RAY_PORT}", **RAY}
        own = self._cluster(folder, environment)
        output, told = folder / "out", folder / "told"
        with told.open("w") as file:
            command = [*self._predict(output), "--engine", "ray"]
            node = self.hosts.start(0, command, own, env=environment, stdout=file, stderr=file)
        try:
            if not wait_for(lambda: self._computes(host) or node.poll() is not None) or node.poll() is not None:
                raise RuntimeError(f"no worker on {Hosts.name(host)}: {told.read_text()}")
            listener = Listener(told.read_text, host, time.monotonic())
            KINDS[kind][1](self.hosts, host)
            ended = listener.until(lambda: node.poll() is not None)
        finally:
            for each in range(WORLD):
                self.hosts.kill(each)
            code = node.wait()
            self.hosts.restore(host)
        same = output.exists() and output.read_bytes() == self.wanted
        whole = same or not output.exists()
        named = listener.in_time or kind not in LASTING
        right = code == 0 and same and named
        if not right:
            print(told.read_text()[-3000:])
        found = {"ended_after": round(ended, 1), "passed": code == 0 and listener.after is None}
        return row(f"ray-{kind}", host, listener, **found, whole=whole, same=same, right=right)

    def _cluster(self, folder: Path, environment: dict[str, str]) -> dict[str, Path]:
        """Started; where the first host finds its folder for Ray."""
        Path("/tmp/ray").mkdir(exist_ok=True)
        for host in range(WORLD):
            (own := folder / str(host)).mkdir(parents=True)
            where = ["--address", environment["RAY_ADDRESS"]]
            if host == 0:
                where = ["--head", "--port", str(RAY_PORT), "--include-dashboard", "false"]
            command = [str(Path(sys.executable).with_name("ray")), "start", *where, "--num-cpus", "1"]
            command += ["--node-ip-address", Hosts.address(host), "--object-store-memory", "100000000"]
            with (folder / f"{host}.ray").open("w") as file:
                node = self.hosts.start(host, command, {"/tmp/ray": own}, env=environment, stdout=file, stderr=file)
            if node.wait():
                raise RuntimeError((folder / f"{host}.ray").read_text())
        return {"/tmp/ray": folder / "0"}

    def _computes(self, host: int) -> bool:
        """Whether a worker of ours is on a host. Ray writes its class into the process's title."""
        for each in self.hosts.processes(host):
            with suppress(OSError):
                if b"RayActor" in (Path("/proc") / str(each) / "cmdline").read_bytes():
                    time.sleep(BRIEF)  # in which it is given lines
                    return True
        return False


@dataclass
class Nodes:
    """The commands on the hosts. told: where each writes what it says."""

    folder: Path
    started: list[subprocess.Popen[Any]] = field(default_factory=list)

    def told(self, but: int = -1) -> str:
        """What they said; `but`: without this host, from which nobody may hear any more."""
        hosts = (host for host in range(len(self.started)) if host != but)
        return "".join((self.folder / str(host)).read_text(errors="replace") for host in hosts)

    def ended(self) -> bool:
        """Whether all have."""
        return all(node.poll() is not None for node in self.started)


class Listener:
    """Looks when a line of Transduce names the host, by its name or its address.

    told: what was said so far. began: when the fault did. after: seconds until it was named; None = not yet.
    """

    def __init__(self, told: Callable[[], str], host: int, began: float) -> None:
        self.told, self._began = told, began
        self.after: float | None = None
        self.words = ""
        self._named = re.compile(
            rf"^transduce: .*({re.escape(Hosts.name(host))}|{re.escape(Hosts.address(host))})\b.*", re.M
        )

    @property
    def in_time(self) -> bool:
        return self.after is not None and self.after <= WITHIN

    def until(self, happened: Callable[[], bool], seconds: float = LONGEST) -> float:
        """Listens until that happens, or for so long; the seconds since the fault began."""
        wait_for(lambda: self._heard() and happened(), seconds)
        return time.monotonic() - self._began

    def _heard(self) -> bool:
        if self.after is None and (found := self._named.search(self.told())):
            self.after, self.words = time.monotonic() - self._began, found[0]
        return True


def row(kind: str, host: int, listener: Listener, **found: Any) -> dict[str, Any]:
    """One row of the table, printed."""
    after = None if listener.after is None else round(listener.after, 1)
    named = "not named" if after is None else f"{after:.1f} s"
    words = re.sub(r"(, so all leave|, which keeps|\. The last).*", "", listener.words.removeprefix("transduce: "))
    told = "passed" if found["passed"] else f"{found['ended_after']:.0f} s"
    print(f"{kind}/{host:<8} {named:>11}  {told:>15}  {'yes' if found['same'] else 'NO':10}  {words}", flush=True)
    return {"fault": kind, "host": host, "named_after": after, "words": words, **found}


def newest(run: Path) -> int:
    """The update of the newest checkpoint."""
    return max((int(each.stem[-8:]) for each in (run / "checkpoints").glob("update-*.safetensors")), default=0)


def broken(run: Path) -> list[str]:
    """Files of a run directory that are not whole."""
    found = [str(each) for each in run.rglob("*.tmp*")]
    for each in run.rglob("*.safetensors"):
        with safe_open(each, "np") as file:
            if not list(file.keys()):
                found.append(str(each))
    return found


def wait_for(happened: Callable[[], bool], seconds: float = LONGEST) -> bool:
    """Whether it does, in so many seconds."""
    until = time.monotonic() + seconds
    while not (there := happened()) and time.monotonic() < until:
        time.sleep(0.05)
    return there


if __name__ == "__main__":
    main()
