"""Trainings by several processes, forked from one that has imported everything, so that each begins at once.

Like torchrun, this one keeps the store in which the processes find each other, and ends the others when one fails:
SIGTERM, and SIGKILL after a while. What torchrun adds, restarts and other machines, is not needed here. POSIX.
"""

import hashlib
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from records import save_measurement

GRACE = 30.0  # seconds between SIGTERM and SIGKILL, as torchrun's
LOOK = 0.05
RECIPE = """
[task]
metrics = ["bleu", "exact_match"]
[data]
root = "{root}"
train = [{{ source = "train.digits", target = "train.words" }}]
validation = {{ source = "valid.digits", target = "valid.words" }}
test = {{ held_out = {{ source = "test.digits", target = "test.words" }} }}
[tokenizer]
kind = "whitespace"
[batch]
tokens = 240
[model]
d_model = 16
heads = 2
encoder_layers = 1
decoder_layers = 1
feed_forward = 32
dropout = 0.1
inner_dropout = 0.1
[training]
threads = 1
updates = 50
optimizer = "adamw"
learning_rate = 5e-3
warmup = 10
accumulate = 2
average = 0.95
precision = "fp32"
best = "bleu"
validate_every = 25
decode_sentences = 20
checkpoint_every = 4
log_every = 5
"""
NEEDED = [
    "pyarrow.ipc",
    "sacrebleu",
    "tokenizers",
    "torch._dynamo",
    "torch.distributed.fsdp",
    "torch.distributed.tensor",
]
NEEDED += [f"transduce.{name}" for name in ("cli.app", "evaluation", "metrics.evaluate", "models.transformer")]
NEEDED += [f"transduce.{name}" for name in ("tasks.translation", "training.run", "training.sharding")]
NAMES = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def write_work(folder: Path) -> Path:
    """A recipe, and its corpus: 500 + 40 + 40 numbers, digit by digit, and their digits' names backwards."""
    drawn = random.Random(5)
    numbers = list(dict.fromkeys(str(drawn.randrange(10 ** drawn.randint(1, 8))) for _ in range(4000)))
    for name, chosen in (("train", numbers[:500]), ("valid", numbers[500:540]), ("test", numbers[540:580])):
        (folder / f"{name}.digits").write_text("".join(" ".join(number) + "\n" for number in chosen))
        words = (" ".join(NAMES[int(digit)] for digit in reversed(number)) for number in chosen)
        (folder / f"{name}.words").write_text("".join(f"{line}\n" for line in words))
    recipe = folder / "tiny.toml"
    recipe.write_text(RECIPE.format(root=folder))
    return recipe


def trained(world: int, recipe: Path, run: Path, *overrides: str) -> Path:
    """The run, trained to its end by so many processes. Raises RuntimeError where they fail."""
    trainers = Trainers(world, ["train", str(recipe), *overrides, "--run", str(run)], run.with_suffix(".told")).start()
    trainers.wait()
    if trainers.failed:
        raise RuntimeError(f"{run}: {trainers.ended}\n{trainers.told()}")
    return run


def record(name: str, seconds: float, **found: object) -> None:
    """What was measured, into results/distributed/."""
    save_measurement(f"distributed/{name}", seconds, **found)


def sha256(run: Path) -> str:
    """Of the model file."""
    return hashlib.sha256((run / "model.safetensors").read_bytes()).hexdigest()


def warm() -> None:
    """Import what trainings need. Nothing may be computed here: threads do not survive a fork."""
    for name in NEEDED:
        import_module(name)


@dataclass
class Trainers:
    """`transduce ARGUMENTS` in `world` processes.

    folder: of what they print, `0.out`, `0.err` and so on.
    before: called in each with its rank before it begins.
    """

    world: int
    arguments: list[str]
    folder: Path
    before: Callable[[int], None] = lambda rank: None
    environment: dict[str, str] = field(default_factory=dict)
    pids: list[int] = field(default_factory=list)
    ended: dict[int, int] = field(default_factory=dict)  # exit code by rank, negative: the signal
    _store: int = 0

    def start(self) -> "Trainers":
        """Fork them all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            for rank in range(self.world):
                self.pids.append(_forked(lambda rank=rank: self._train(rank, port, listener)))
            if self.world > 1:
                self._store = _forked(lambda: _keep_store(listener, port, self.world))
        return self

    def _train(self, rank: int, port: int, listener: socket.socket) -> None:
        listener.close()
        for name, number in (("out", 1), ("err", 2)):
            os.dup2(os.open(self.folder / f"{rank}.{name}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
        os.environ.update(self.environment)
        sys.modules["matplotlib"] = None  # type: ignore[assignment]  # as if not installed: no figures, which take long
        if self.world > 1:
            own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": self.world, "MASTER_PORT": port}
            os.environ.update({name: str(value) for name, value in own.items()})
            os.environ.update(MASTER_ADDR="127.0.0.1", TORCHELASTIC_USE_AGENT_STORE="True")
        from transduce.cli.app import main

        self.before(rank)
        sys.argv = ["transduce", *self.arguments]
        main()

    def wait(self, seconds: float = 1e9, grace: float = GRACE) -> bool:
        """Until all have ended, or one has failed and all others were made to; or so long. Whether they have ended.

        grace: see `stop`.
        """
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._reap()
            if any(code for code in self.ended.values()):
                self.stop(grace)
                return True
            if len(self.ended) == self.world:
                self._end_store()
                return True
            time.sleep(LOOK)
        return False

    def stop(self, grace: float = GRACE) -> None:
        """SIGTERM to all that are there, SIGKILL to those that stay for so many seconds."""
        self.signal(signal.SIGTERM, range(self.world))
        until = time.monotonic() + grace
        while len(self.ended) < self.world and time.monotonic() < until:
            self._reap()
            time.sleep(LOOK)
        self.kill()

    def kill(self) -> None:
        """SIGKILL to all."""
        self.signal(signal.SIGKILL, range(self.world))
        while len(self.ended) < self.world:
            self._reap()
            time.sleep(LOOK)
        self._end_store()

    @property
    def failed(self) -> bool:
        """Whether one ended in another way than well."""
        return any(self.ended.values())

    def told(self) -> str:
        """What they wrote to standard error."""
        return "".join((self.folder / f"{rank}.err").read_text(errors="replace") for rank in range(self.world))

    def signal(self, number: int, ranks: Iterable[int]) -> None:
        """Send it to those of them that have not ended."""
        for rank in ranks:
            if rank not in self.ended:
                os.kill(self.pids[rank], number)

    def _reap(self) -> None:
        for rank, pid in enumerate(self.pids):
            if rank not in self.ended:
                found, status = os.waitpid(pid, os.WNOHANG)
                if found:
                    self.ended[rank] = os.waitstatus_to_exitcode(status)

    def _end_store(self) -> None:
        if self._store:
            os.kill(self._store, signal.SIGKILL)
            os.waitpid(self._store, 0)
            self._store = 0


def _forked(work: Callable[[], None]) -> int:
    """A child that does this and nothing else."""
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _keep_store(listener: socket.socket, port: int, world: int) -> None:
    """The store of torch.distributed, until it is killed; as torchrun's agent does."""
    from torch.distributed import TCPStore

    store = TCPStore(
        "127.0.0.1", port, world, is_master=True, wait_for_workers=False, master_listen_fd=listener.fileno()
    )
    while store:
        signal.pause()
