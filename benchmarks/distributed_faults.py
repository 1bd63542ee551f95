"""A process that dies, hangs, runs out of memory or gets bad data: is it named in time, and is nothing lost?

    python benchmarks/distributed_faults.py

Five faults, in 2 and 4 processes, with training.parallel ddp and fsdp: 20 cases. In each, one process other than the
first meets its fault after the first checkpoints:

- killed: SIGKILL from outside.
- stopped: SIGSTOP from outside, which stops all its threads.
- sleeps: its main thread waits for what never comes, while its other threads live.
- out of memory: its address space is limited (RLIMIT_AS), and every forward pass asks for more.
- bad data: its batch holds ids that no vocabulary has.

Right is: within 60 s standard error names the process, its machine and its last stack; no process ends with exit code
0; and the same command goes on to the bytes of a training without a fault. Prints a table, writes
results/distributed/faults.json, exits 1 if a case is not right. POSIX.
"""

import itertools
import os
import re
import resource
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import torch
from trainers import Trainers, record, sha256, trained, warm, write_work

SHORT = (
    "training.updates=40",
    "training.validate_every=40",
    "training.decode_sentences=8",
    "training.checkpoint_every=4",
)
FAULTS = ("killed", "stopped", "sleeps", "out of memory", "bad data")
AT = 9  # the update of the fault
WITHIN = 60.0  # seconds
LONGEST = 300.0


def main() -> None:
    """Measure, print, write."""
    began, rows = time.monotonic(), []
    warm()
    print("fault          processes  parallel  named after  exit codes        same bytes after")
    with tempfile.TemporaryDirectory() as name:
        os.environ["TRANSDUCE_CACHE"] = f"{name}/cache"
        recipe = write_work(Path(name))
        for world, parallel in itertools.product((2, 4), ("ddp", "fsdp")):
            settings = (*SHORT, f"training.parallel={parallel}")
            wanted = sha256(trained(world, recipe, Path(name) / f"whole-{world}-{parallel}", *settings))
            for fault in FAULTS:
                rows.append(one_case(fault, world, parallel, recipe, Path(name), settings, wanted))
                right = sum(row["right"] for row in rows)
                record("faults", time.monotonic() - began, rows=rows, right=right, cases=len(rows), within=WITHIN)
    print(f"{right} of {len(rows)} right.")
    sys.exit(0 if right == len(rows) else 1)


def one_case(
    fault: str, world: int, parallel: str, recipe: Path, folder: Path, settings: tuple[str, ...], wanted: str
) -> dict[str, Any]:
    """One row of the table, printed."""
    run, rank = folder / f"{fault}-{world}-{parallel}".replace(" ", "-"), world - 1
    met = run.with_suffix(".met")
    arguments = ["train", str(recipe), *settings, "--run", str(run)]
    trainers = Trainers(
        world, arguments, run.with_suffix(".fault"), before=lambda own: prepare(fault, own == rank, met)
    )
    trainers.start()
    begun = wait_for(lambda: fault_begun(fault, trainers, rank, run, met))
    listener = Listener(trainers, rank, world)
    listener.start()
    ended = trainers.wait(LONGEST)
    listener.stop()
    told = begun and listener.heard is not None
    seconds = listener.heard - met.stat().st_mtime if begun and listener.heard else LONGEST
    codes = sorted(set(trainers.ended.values()))
    trainers.kill()
    same = sha256(trained(world, recipe, run, *settings)) == wanted
    right = bool(told and ended and seconds <= WITHIN and 0 not in codes and same)
    row = {"fault": fault, "processes": world, "parallel": parallel, "named_after": round(seconds, 1)}
    row |= {"named": told, "exit_codes": codes, "same": same, "right": right}
    shown = f"{seconds:9.1f} s" if told else "  not named"
    print(f"{fault:13}  {world:9}  {parallel:8}  {shown}  {codes!s:16}  {'yes' if same else 'NO'}", flush=True)
    if not right:
        print(trainers.told()[-3000:], flush=True)
    return row


def prepare(fault: str, mine: bool, met: Path) -> None:
    """In the process that is to meet it: what makes the fault at its update. Those from outside need nothing."""
    if not mine or fault in ("killed", "stopped"):
        return
    from transduce.training import loop

    make_update = loop.make_update

    def faulty(config: Any, trained: Any, batches: Any, *others: Any) -> Any:
        if trained.progress.update + 1 == AT:
            met.touch()
            batches = make_fault(fault, trained.model, batches)
        return make_update(config, trained, batches, *others)

    loop.make_update = faulty


def make_fault(fault: str, model: torch.nn.Module, batches: Any) -> Any:
    """The batches, good or bad."""
    if fault == "sleeps":
        threading.Event().wait()
    if fault == "out of memory":
        held = psutil.Process().memory_info().vms
        resource.setrlimit(resource.RLIMIT_AS, (held + 2**24, held + 2**24))
        model.get_submodule("target_embedding").register_forward_pre_hook(lambda *_: torch.empty(2**30))
    if fault == "bad data":  # what `torch.nn.functional.embedding` refuses
        return [each._replace(inputs=each.inputs._replace(values=each.inputs.values + 10**6)) for each in batches]
    return batches


def fault_begun(fault: str, trainers: Trainers, rank: int, run: Path, met: Path) -> bool:
    """Whether it has; those from outside are made where the training has come far enough."""
    if fault in ("killed", "stopped"):
        if not any(int(each.stem[-8:]) >= AT - 1 for each in (run / "checkpoints").glob("update-*.safetensors")):
            return False
        met.touch()
        trainers.signal(signal.SIGKILL if fault == "killed" else signal.SIGSTOP, [rank])
    return met.exists()


class Listener(threading.Thread):
    """Looks when standard error names the process, with a machine and a stack.

    heard: then, by the clock; None = not yet.
    """

    def __init__(self, trainers: Trainers, rank: int, world: int) -> None:
        super().__init__(daemon=True)
        self.heard: float | None = None
        self._trainers, self._done = trainers, threading.Event()
        self._named = re.compile(rf"process {rank} of {world}, on \S+[^\n]*\n(Traceback|  File)")

    def run(self) -> None:
        """Until `stop`, and once more."""
        while self.heard is None:
            last = self._done.wait(0.1)
            if self._named.search(self._trainers.told()):
                self.heard = time.time()
            if last:
                return

    def stop(self) -> None:
        """All have ended."""
        self._done.set()
        self.join()


def wait_for(happened: Callable[[], bool], seconds: float = LONGEST) -> bool:
    """Whether it does, in so many seconds."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if happened():
            return True
        time.sleep(0.05)
    return False


if __name__ == "__main__":
    main()
