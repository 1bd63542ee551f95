"""OpenMP's threads sleep instead of spinning while other processes need the processors."""

import os
import subprocess
import sys
import time

import pytest

from transduce.runtime import spinning
from transduce.runtime.spinning import BUSY, QUIET, SPINS, Contention, Usage, place_of_spins, prepare

PROCESSORS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
LINUX = pytest.mark.skipif(Usage.now() is None, reason="this system does not say what processes use")
SPINNING = """
import sys, time, torch
from transduce.runtime.spinning import place_of_spins
place = place_of_spins()
assert place is not None and place.value == int(sys.argv[1]), place
torch.set_num_threads(2)
a = torch.ones(256, 256)
for spins in (place.value, 0):
    place.value = spins
    own = time.process_time()
    for _ in range(100):
        a @ a  # the second thread then waits for the next one
        time.sleep(0.002)
    print(time.process_time() - own)
"""


def child(code: str, **variables: str) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    done = subprocess.run(
        [sys.executable, "-c", code, str(SPINS)],
        env=environment | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@LINUX
@pytest.mark.skipif(PROCESSORS < 2, reason="on one processor threads do not spin")
def test_the_place_is_found_and_says_how_long_threads_spin() -> None:
    spinning, sleeping = map(float, child(SPINNING, GOMP_SPINCOUNT=str(SPINS)))
    assert sleeping < 0.6 * spinning, (spinning, sleeping)


@LINUX
@pytest.mark.parametrize("name", ["GOMP_SPINCOUNT", "OMP_WAIT_POLICY"])
def test_what_the_environment_says_stays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, "PASSIVE")
    monkeypatch.setattr(spinning, "_variables", list)  # as in a process that has not loaded OpenMP
    assert not prepare()
    assert {each: os.environ.get(each) for each in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")} == {
        "GOMP_SPINCOUNT": None,
        "OMP_WAIT_POLICY": None,
        name: "PASSIVE",
    }


def test_importing_the_package_changes_nothing() -> None:
    code = "import transduce, torch, os, threading; print('GOMP_SPINCOUNT' in os.environ, threading.active_count())"
    assert child(code) == ["False", "1"]


@LINUX
def test_the_command_prepares_it() -> None:
    code = (
        "import os, sys; sys.argv = ['transduce', '--version']\n"
        "from transduce.cli.app import main\n"
        "try: main()\nexcept SystemExit: print(os.environ['GOMP_SPINCOUNT'])"
    )
    assert child(code)[-1] == str(SPINS)


@LINUX
def test_a_busy_process_is_seen_and_our_own_work_is_not() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", "print(1, flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
    ) as busy:
        try:
            assert busy.stdout is not None
            busy.stdout.readline()
            before = Usage.now()
            time.sleep(0.5)
            after = Usage.now()
        finally:
            busy.kill()
    assert before is not None
    assert after is not None
    assert before.others(after) > BUSY
    assert Usage(10.0, 4.0, 0.0).others(Usage(13.0, 6.5, 2.0)) == pytest.approx(0.25)


def test_threads_sleep_at_once_and_spin_again_after_some_quiet() -> None:
    contention, between = Contention(), (QUIET + BUSY) / 2
    seen = [contention.seen(others) for others in (0, between, 1, between, 0, between, 0, 0, between)]
    assert seen == [False, False, True, True, True, True, True, False, False]


@LINUX
def test_nothing_is_done_once_openmp_is_loaded() -> None:
    code = (
        "import torch, os; from transduce.runtime.spinning import prepare\n"
        "print(prepare(), 'GOMP_SPINCOUNT' in os.environ)"
    )
    assert child(code) == ["False", "False"]


@LINUX
def test_it_is_looked_for_once_the_library_is_loaded() -> None:
    code = (
        "from transduce.runtime.spinning import _is_loaded\n"
        "print(_is_loaded())\n"
        "import torch\n"
        "print(_is_loaded())\n"
        "torch.__spec__._initializing = True\n"
        "print(_is_loaded())"
    )
    assert child(code) == ["False", "True", "False"]


def test_without_the_number_there_is_no_place() -> None:
    assert place_of_spins() is None


@LINUX
def test_only_the_librarys_own_memory_is_looked_at() -> None:
    code = (
        "import torch; from transduce.runtime.spinning import _variables\n"
        "print(*(f'{first:x}-{first + size:x}' for first, size in _variables()))\n"
        "print('all', *(line.split()[0] for line in open('/proc/self/maps')))\n"
        "print('own', *(line.split()[0] for line in open('/proc/self/maps') if 'libgomp' in line))"
    )
    words = child(code)
    everything, own = words.index("all"), words.index("own")
    spans, mapped, libraries = (_spans(part) for part in (words[:everything], words[everything + 1 : own], words[own:]))
    assert spans
    for first, last in spans:
        assert any(low <= first < high for low, high in libraries)
        assert any(low < last <= high for low, high in mapped)


@LINUX
def test_looking_for_the_place_never_stops_a_thread_that_imports() -> None:
    """The linker's lock and Python's: both threads would wait for ever."""
    code = (
        "import _ctypes, faulthandler, importlib.util, threading\n"
        "from transduce.runtime.spinning import place_of_spins\n"
        "faulthandler.dump_traceback_later(20, exit=True)\n"
        "module, done = importlib.util.find_spec('_bz2').origin, threading.Event()\n"
        "def look():\n"
        "    while not done.is_set():\n"
        "        place_of_spins()\n"
        "threading.Thread(target=look).start()\n"
        "for _ in range(200):\n"
        "    _ctypes.dlclose(_ctypes.dlopen(module, 2))\n"
        "done.set()\n"
        "print('done')"
    )
    assert child(code) == ["done"]


def _spans(words: list[str]) -> list[list[int]]:
    return [[int(number, 16) for number in word.split("-")] for word in words if "-" in word]
