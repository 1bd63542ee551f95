"""How long OpenMP's threads spin while they wait for each other: not at all while other processes need the processors.

A parallel region ends when its last thread does. Threads that are done spin for some milliseconds, as waking takes
longer than most regions. Where another process has taken the processor of the last thread, they spin in its way: with
one busy process on two cores a training falls to a quarter of its speed. Threads that sleep at once cost a tenth on a
quiet machine. So a thread of this process looks now and then at what others use, and changes between the two.

GNU's OpenMP has no function for it. It reads GOMP_SPINCOUNT when it is loaded, and keeps the number in one place, which
is found by its value, and written. Nothing is done where the environment says OMP_WAIT_POLICY or GOMP_SPINCOUNT, where
the place is not found, or by a program that only imports this package.
"""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import NamedTuple, Self

from transduce.kernels.native import openmp

VARIABLE, POLICY = "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"
SPINS = 300_007  # some 3 ms, GNU's own default is 300,000; a number by which the place is found
FIRST, OFTEN = 0.1, 0.25  # seconds between two looks: in the first second, and later
BUSY, QUIET = 0.3, 0.15  # processors that others use: threads sleep above the one, and spin again below the other
LOOKS = 2  # that have to agree before threads spin again


class Usage(NamedTuple):
    """Seconds of processor time since the machine started, on the processors that this process may use.

    all: of everybody, and what a hypervisor took. own: of this process. at: when.
    """

    all: float
    own: float
    at: float

    @classmethod
    def now(cls) -> Self | None:
        """None where the system does not tell."""
        try:
            mine = {f"cpu{number}" for number in os.sched_getaffinity(0)}
            lines = Path("/proc/stat").read_text(encoding="ascii").splitlines()
            ticks = os.sysconf("SC_CLK_TCK")
        except (OSError, AttributeError, ValueError):
            return None
        rows = [line.split() for line in lines if line.startswith("cpu")]
        # user nice system idle iowait irq softirq steal
        used = sum(int(each) for row in rows if row[0] in mine for each in (*row[1:4], *row[6:9]))
        return cls(used / ticks, time.process_time(), time.monotonic())

    def others(self, later: Self) -> float:
        """How many processors others used until then."""
        return (later.all - self.all - (later.own - self.own)) / max(1e-9, later.at - self.at)


def prepare() -> bool:
    """To be called before OpenMP is loaded. Returns False where nothing will be done."""
    if _variables() or VARIABLE in os.environ or POLICY in os.environ or Usage.now() is None:
        return False
    os.environ[VARIABLE] = str(SPINS)
    return True


def watch() -> None:
    """Look at what others use, in a thread, for as long as this process lives."""
    if prepare():
        threading.Thread(target=_watch, daemon=True, name="spinning").start()


@dataclass
class Contention:
    """Whether others need the processors, by how many they used at each look; looks that say otherwise in a row."""

    busy: bool = False
    quiet_looks: int = 0

    def seen(self, others: float) -> bool:
        """One look more. Threads sleep at the first that finds others, and spin again after several without any."""
        self.quiet_looks = self.quiet_looks + 1 if others < QUIET else 0
        self.busy = others > BUSY or (self.busy and self.quiet_looks < LOOKS)
        return self.busy


def _watch(found: ctypes.c_ulonglong | None = None, ended: threading.Event | None = None) -> None:
    """Until `ended`. found: the place of the number; None = it is looked for, once the library is loaded."""
    ended = ended or threading.Event()
    before, begun, contention = Usage.now(), time.monotonic(), Contention()
    while before is not None and not ended.wait(FIRST if time.monotonic() - begun < 1 else OFTEN):
        after = Usage.now()
        if after is None:
            return
        busy, before = contention.seen(before.others(after)), after
        if found is None and _is_loaded():
            found = place_of_spins()
        if found is not None:
            found.value = 0 if busy else SPINS


def _is_loaded() -> bool:
    """Whether whoever brings the library has ended loading it; before, its memory may not be there yet."""
    importing = getattr(getattr(sys.modules.get("torch"), "__spec__", None), "_initializing", True)
    return openmp.is_provided() or not importing


@contextmanager
def watched(place: ctypes.c_ulonglong | None) -> Iterator[None]:
    """Watch while the block runs, for measurements; place: of the number, None = do nothing."""
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(place, ended), daemon=True)
    if place is not None:
        watcher.start()
    try:
        yield
    finally:
        ended.set()
        if place is not None:
            watcher.join()


def place_of_spins() -> ctypes.c_ulonglong | None:
    """Where the loaded library keeps the number; None if it is not loaded, or if that could be several places."""
    found = [
        first + 8 * place
        for first, size in _variables()
        for place, value in enumerate((ctypes.c_ulonglong * (size // 8)).from_address(first))
        if value == SPINS
    ]
    return ctypes.c_ulonglong.from_address(found[0]) if len(found) == 1 else None


class _Mapping(NamedTuple):
    """A line of /proc/self/maps: addresses, and whether this is the readable beginning of a libgomp."""

    first: int
    last: int
    can_be_read: bool
    begins: bool


HEADER = Struct("<5s27xQ14xHH")  # Elf64_Ehdr of elf.h: e_ident, e_phoff, e_phentsize, e_phnum
SEGMENT = Struct("<IIQQ8x8xQ8x")  # Elf64_Phdr: p_type, p_flags, p_offset, p_vaddr, p_memsz
ELF64 = b"\x7fELF\x02"
LOADED, WRITABLE = 1, 2  # PT_LOAD and PF_W


def _variables() -> list[tuple[int, int]]:
    """Address and bytes of the library's variables, as its headers tell them: no other memory is looked at.

    The linker would tell them, too (dl_iterate_phdr), but under its lock: while Python code runs there, a thread that
    imports a compiled module waits for that lock and holds Python's, and both wait for ever.
    """
    mappings = _mappings() if sys.maxsize > 1 << 32 else []
    spans = [span for each in mappings if each.begins for span in _written(each)]
    return [
        (_aligned(first), first + size - _aligned(first))
        for first, size in spans
        if size
        == sum(max(0, min(first + size, each.last) - max(first, each.first)) for each in mappings if each.can_be_read)
    ]


def _mappings() -> list[_Mapping]:
    """What is mapped into memory; nothing where the system does not tell."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        span, access, offset, _, _, *path = line.split(maxsplit=5)
        first, last = (int(each, 16) for each in span.split("-"))
        readable, ours = access[0] == "r", bool(path) and "libgomp" in Path(path[0]).name
        found.append(_Mapping(first, last, readable, readable and ours and int(offset, 16) == 0))
    return found


def _written(beginning: _Mapping) -> list[tuple[int, int]]:
    """Address and bytes of the parts of a loaded library that can be written, by the headers in its first page."""
    ident, place, size, count = HEADER.unpack(ctypes.string_at(beginning.first, HEADER.size))
    if ident != ELF64 or size != SEGMENT.size or place + size * count > beginning.last - beginning.first:
        return []
    segments = SEGMENT.iter_unpack(ctypes.string_at(beginning.first + place, size * count))
    loaded = [each for kind, *each in segments if kind == LOADED]
    base = beginning.first - min((address for _, offset, address, _ in loaded if offset == 0), default=0)
    return [(base + address, memory) for flags, _, address, memory in loaded if flags & WRITABLE]


def _aligned(address: int) -> int:
    return -(-address // 8) * 8
