"""The processes that train one model together: which one this is, and what they tell each other.

    torchrun --nproc-per-node 8 -m transduce train recipe.toml

All plan the same batches, and each takes its share of the rows of every batch. Gradients, losses and counts are sums
over rows, so the sums over processes are those of one process with the whole batch: how many there are changes neither
the order of the data nor the number of updates nor, but for rounding and the noise of dropout, what is learnt.
torch.distributed moves everything. A process alone asks it nothing.
"""

import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from transduce.core.errors import InputError, Interrupted, TransduceError
from transduce.data.batches import Rows
from transduce.runtime.watchdog import Pulse, Watchdog

Value = TypeVar("Value")
BUCKET = 2**23  # numbers that are summed at once
LOST = ("gloo", "NCCL", "Connection closed by peer", "Connection reset by peer", "Broken pipe")
LONGEST = timedelta(days=7)  # that torch.distributed waits: the watchdog sees earlier who stands still


@dataclass(frozen=True)
class ProcessGroup:
    """This process is number `rank` of `world`.

    resize: whether a training of another number of processes may be gone on with.
    lockstep: whether all must compute each batch, as each has a part of the weights only.
    pulse: for the watchdog.
    """

    rank: int = 0
    world: int = 1
    resize: bool = False
    lockstep: bool = False
    pulse: Pulse = field(default_factory=Pulse, compare=False)

    @property
    def first(self) -> bool:
        """Whether this is the process that writes files and speaks."""
        return self.rank == 0

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Around what all processes do at once."""
        with self.pulse.waiting():
            yield

    def share(self, rows: Rows) -> Rows | None:
        """The rows of a batch that this process trains on.

        Where there are fewer rows than processes: None, or in lockstep a row that stands in.
        """
        own = rows.share(self.rank, self.world) if self.world > 1 else rows
        if len(own.rows):
            return own
        return Rows(rows.stores[:1], rows.rows[:1], rows.follows, stands_in=True) if self.lockstep else None

    def total(self, *numbers: float) -> list[float]:
        """Each number summed over the processes, in double precision."""
        if self.world == 1:
            return list(numbers)
        sums = torch.tensor(numbers, dtype=torch.float64)
        with self._together():
            torch.distributed.all_reduce(sums)
        return [float(each) for each in sums]

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """The sum over the processes in the place of each gradient; one that nobody has, stays away.

        Those of weights that are split over the processes are summed already.
        """
        if self.world == 1:
            return
        trained = [each for each in parameters if each.requires_grad and not _is_split(each)]
        there = torch.tensor([each.grad is not None for each in trained], dtype=torch.uint8)
        with self._together():
            torch.distributed.all_reduce(there, torch.distributed.ReduceOp.MAX)
        summed = [each for each, used in zip(trained, there.tolist(), strict=True) if used]
        for bucket in _buckets(summed):
            flat = torch.cat([_gradient(each).reshape(-1) for each in bucket])
            with self._together():
                torch.distributed.all_reduce(flat)
            for each, part in zip(bucket, torch.split(flat, [each.numel() for each in bucket]), strict=True):
                each.grad = part.view_as(each).to(each.dtype)

    def gathered(self, value: Value) -> list[Value]:
        """What each process has, by rank."""
        if self.world == 1:
            return [value]
        found: list[Any] = [None] * self.world
        with self._together():
            torch.distributed.all_gather_object(found, value)
        return found

    def whole(self, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
        """Tensors that are split over the processes, joined in the first one's main memory; all must ask.

        One after the other, so that no device holds more than one whole tensor besides its parts. The others get
        nothing.
        """
        if not self.lockstep:
            return tensors
        found = {}
        for name, each in tensors.items():
            with self._together():
                joined: Tensor = each.full_tensor() if _is_split(each) else each  # type: ignore[attr-defined]
            if self.first:
                found[name] = joined.cpu()
        return found

    def joined_rows(self, own: Tensor) -> Tensor:
        """Rows that were shared as `share` does, in their order. Axis 0."""
        if self.world == 1:
            return own
        parts = self.gathered(own.cpu())
        whole = own.new_empty((sum(map(len, parts)), *own.shape[1:]))
        for rank, part in enumerate(parts):
            whole[rank :: self.world] = part.to(own)
        return whole

    def from_first(self, make: Callable[[], Value]) -> Value:
        """What the first process makes, for all. Where that fails, the others leave without a word.

        Raises:
            whatever `make` raises, in the first process; SystemExit in the others.
        """
        if self.world == 1:
            return make()
        message: list[Any] = [None]
        try:
            if self.first:
                message = [(True, make())]
        except BaseException:
            message = [(False, None)]
            raise
        finally:
            with self._together():
                torch.distributed.broadcast_object_list(message)
        made, value = message[0]
        if not made:
            raise SystemExit(1)
        return value

    def first_before_others(self, make: Callable[[], Value]) -> Value:
        """What each process makes for itself, the others once the first has filled the caches."""
        if self.world == 1:
            return make()
        own: list[Value] = []
        self.from_first(lambda: own.append(make()))
        return own[0] if self.first else make()

    def share_out(self, items: Sequence[Any], work: Callable[[list[Any]], Sequence[Any]]) -> list[Any]:
        """`work` on this process' share of the items; the results of all of them, in order, everywhere."""
        if self.world == 1:
            return list(work(list(items)))
        parts = self.gathered(work(list(items[self.rank :: self.world])))
        return [parts[place % self.world][place // self.world] for place in range(len(items))]

    def copy_from_first_in_place(self, tensors: Iterable[Tensor]) -> None:
        """The first process' values in each tensor."""
        if self.world > 1:
            for each in tensors:
                with self._together():
                    torch.distributed.broadcast(each, 0)

    def copy_from_first(self, own: dict[str, Tensor] | None) -> dict[str, Tensor]:
        """The first process' tensors, for all; the others have none to give."""
        given = own or {}
        kinds = self.from_first(
            lambda: [(key, each.shape, each.dtype, each.device.type) for key, each in given.items()]
        )
        found = {}
        for key, shape, dtype, device in kinds:
            found[key] = given[key].contiguous() if self.first else torch.empty(shape, dtype=dtype, device=device)
            with self._together():
                torch.distributed.broadcast(found[key], 0)
        return found


ALONE = ProcessGroup()


def _is_split(tensor: Tensor) -> bool:
    from torch.distributed.tensor import DTensor

    return isinstance(tensor, DTensor)


def _gradient(parameter: nn.Parameter) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _buckets(parameters: list[nn.Parameter]) -> Iterator[list[nn.Parameter]]:
    """Of one device and type, as many as fill a bucket; the order is that of the parameters."""
    bucket: list[nn.Parameter] = []
    for each in parameters:
        full = sum(other.numel() for other in bucket) + each.numel() > BUCKET
        if bucket and (full or (each.device, each.dtype) != (bucket[0].device, bucket[0].dtype)):
            yield bucket
            bucket = []
        bucket.append(each)
    if bucket:
        yield bucket


def refuse_several(what: str) -> None:
    """Raises InputError where torchrun started several processes for what one does. what: that, and what helps."""
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise InputError(f"{os.environ['WORLD_SIZE']} processes were started for {what}.")


def leave(group: ProcessGroup) -> None:
    """Ends this process with exit code 0 where it is one of several, whose work is done.

    An interpreter that ends in the ordinary way now and then aborts while threads of torch's wait for it, and torchrun
    would stop the process that is still writing.
    """
    if group.world > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


@contextmanager
def started_group(resize: bool = False) -> Iterator[ProcessGroup]:
    """The group that torchrun started this process in, by its environment; else this process alone.

    Inside, a process that stands still ends all of them; see `transduce.runtime.watchdog`.

    Raises:
        InputError: an environment that torchrun does not make.
        TransduceError: another process has gone; which one, and where it stood.
    """
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield ProcessGroup(resize=resize)
        return
    if missing := [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in os.environ]:
        raise InputError(
            f"WORLD_SIZE is {os.environ['WORLD_SIZE']}, but {', '.join(missing)} is not set: start several processes "
            "by torchrun --nproc-per-node N -m transduce train .., or unset WORLD_SIZE."
        )
    from torch.distributed.distributed_c10d import PrefixStore
    from torch.distributed.rendezvous import rendezvous

    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
    store, rank, world = next(rendezvous("env://"))
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    # A restart of torchrun keeps the store: without its number, processes would look for those of the last attempt.
    attempt = f"attempt/{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    shared = PrefixStore(f"{attempt}/group", store)
    torch.distributed.init_process_group(backend, store=shared, rank=rank, world_size=world, timeout=LONGEST)
    group = ProcessGroup(rank, world, resize)
    watchdog = Watchdog(PrefixStore(f"{attempt}/watchdog", store.clone()), rank, world, group.pulse)
    watchdog.start()
    try:
        yield group
    except Exception as error:
        if (lost := _lost_connection(error)) is not None:
            raise TransduceError(_gone(lost, watchdog)) from error
        if not isinstance(error, InputError | Interrupted):
            sys.stderr.write(f"transduce: process {rank} of {world}, on {socket.gethostname()}, fails. Its stack:\n")
            traceback.print_exc()
        raise
    finally:
        watchdog.stop()
        torch.distributed.destroy_process_group()


def _lost_connection(error: BaseException | None) -> BaseException | None:
    """The error by which torch.distributed says that another process has gone, if that is behind this one.

    Torchrun's SIGTERM often comes while it is on its way.
    """
    while error is not None:
        if isinstance(error, torch.distributed.DistError):
            return error
        if isinstance(error, RuntimeError) and any(words in str(error) for words in LOST):
            return error
        error = error.__context__
    return None


def _gone(error: BaseException, watchdog: Watchdog) -> str:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun's, which comes at once; it waits for half a minute
    watchdog.name_missing()
    return (
        f"Another process of this training has gone: {str(error).splitlines()[0]} The last checkpoint is intact; the "
        "same command goes on from there."
    )
