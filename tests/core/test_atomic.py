"""Whole or not there: full disks, size limits, killed writers."""

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from transduce.core.atomic import human_size, write_json, write_text
from transduce.core.errors import InputError, TransduceError
from transduce.core.tensor_file import read_tensors, write_tensors


def run(script: str, *arguments: object, before: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    if before:
        command = [
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            f'{before} exec "$@"',
            "sh",
            *command,
        ]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_text_is_written_as_it_is(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", "Übung\r\nzwei\x85drei\n")
    assert (tmp_path / "a.txt").read_bytes() == "Übung\r\nzwei\x85drei\n".encode()
    write_text(tmp_path / "a.txt", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]
    assert (tmp_path / "a.txt").read_text() == "new"


def test_json_is_readable_and_keeps_its_order(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": "ü", "a": [1]})
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == '{\n  "b": "ü",\n  "a": [\n    1\n  ]\n}\n'


@pytest.mark.parametrize("value", [float("nan"), {"a": float("inf")}, object()])
def test_what_json_cannot_say_is_refused_and_the_old_file_stays(tmp_path: Path, value: object) -> None:
    write_json(tmp_path / "a.json", 1)
    with pytest.raises(InputError, match="as JSON"):
        write_json(tmp_path / "a.json", value)
    assert (tmp_path / "a.json").read_text() == "1\n"


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "ordinary").touch()
    write_text(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "ordinary").stat().st_mode


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no folder"):
        write_text(tmp_path / "absent" / "a.txt", "")


def test_a_folder_in_the_way_is_reported_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(TransduceError, match="could not be written"):
        write_text(tmp_path / "a", "text")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


SIZE_LIMIT = """
import resource, signal, sys, torch
from transduce.core.errors import TransduceError
from transduce.core.tensor_file import write_tensors
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    write_tensors(sys.argv[1], {"big": torch.ones(1_000_000)}, {})
except TransduceError as error:
    print(error)
    sys.exit(error.exit_code)
"""


@pytest.mark.parametrize("existed", [True, False])
def test_a_write_that_the_system_cuts_off_leaves_what_was_there(tmp_path: Path, existed: bool) -> None:
    path = tmp_path / "model.safetensors"
    if existed:
        write_tensors(path, {"old": torch.zeros(3)}, {})
    done = run(SIZE_LIMIT, path)
    assert done.returncode == 1, done.stderr
    assert "could not be written: File too large. It needs 4.0 MB (4000" in done.stdout
    assert str(path) in done.stdout
    if existed:
        assert "The file that was there is unchanged." in done.stdout
        assert read_tensors(path)[0].keys() == {"old"}
    else:
        assert "Nothing was left behind." in done.stdout
    assert [entry.name for entry in tmp_path.iterdir()] == ["model.safetensors"] * existed


DISK_FULL = """
import os, sys, torch
from pathlib import Path
from transduce.core.errors import TransduceError
from transduce.core.tensor_file import read_tensors, write_tensors
path = Path(sys.argv[1]) / "model.safetensors"
write_tensors(path, {"old": torch.zeros(1000)}, {})
try:
    write_tensors(path, {"new": torch.zeros(1_000_000)}, {})
except TransduceError as error:
    print(error)
assert read_tensors(path)[0].keys() == {"old"}
assert os.listdir(path.parent) == ["model.safetensors"], os.listdir(path.parent)
"""


def test_a_full_disk(tmp_path: Path) -> None:
    mount = f"mount -t tmpfs -o size=1m tmpfs {tmp_path} &&"
    if shutil.which("unshare") is None or run("", before=mount).returncode != 0:
        pytest.skip("this system lets no ordinary process mount a small disk")
    done = run(DISK_FULL, tmp_path, before=mount)
    assert done.returncode == 0, done.stderr
    assert "No space left on device. It needs 4.0 MB (4000" in done.stdout
    assert " is free in " in done.stdout
    assert "1.0 MB is free" in done.stdout  # measured after the half-written file was removed


KEEP_WRITING = """
import itertools, sys
from transduce.core.atomic import write_text
for version in itertools.count(1):
    write_text(sys.argv[1], f"{version}\\n" * 1_000_000)
    print(version, flush=True)
"""


def test_a_killed_writer_never_leaves_half_a_file(tmp_path: Path) -> None:
    path = tmp_path / "model"
    leftovers = []
    for attempt in range(10):
        writer = subprocess.Popen([sys.executable, "-c", KEEP_WRITING, str(path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(0.0031 * attempt)
        writer.kill()
        writer.wait()
        writer.stdout.close()
        text = path.read_text()
        assert text == text[: text.index("\n") + 1] * 1_000_000
        leftovers.append(len(list(tmp_path.iterdir())) - 1)
    assert max(leftovers) <= 1  # one killed half-way leaves its file, and the next writer sweeps it up
    write_text(path, "")
    assert list(tmp_path.iterdir()) == [path]


def test_leftovers_of_the_dead_are_swept_and_those_of_the_living_are_not(tmp_path: Path) -> None:
    import fcntl

    dead, living = tmp_path / ".a.txt.00000000.tmp", tmp_path / ".a.txt.11111111.tmp"
    others = tmp_path / ".b.txt.00000000.tmp"
    dead.touch()
    others.touch()
    with living.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write_text(tmp_path / "a.txt", "")
        assert not dead.exists()
        assert living.exists()
        assert others.exists()


def test_an_interruption_removes_the_half_written_file(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from pathlib import Path
from transduce.core.atomic import replace
signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background ignore it
def chunks():
    yield b"half"
    os.kill(os.getpid(), signal.SIGINT)
    yield b"never"
replace(Path(sys.argv[1]), chunks(), 9)
"""
    done = run(script, tmp_path / "a")
    assert done.returncode == -signal.SIGINT
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(os.geteuid() == 0, reason="the administrator may write anywhere")
def test_a_folder_without_permission_is_reported(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(TransduceError, match="Permission denied"):
        write_text(tmp_path / "a", "")


@pytest.mark.parametrize(
    ("size", "said"),
    [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (2 * 10**9, "2.0 GB"), (10**15, "1000.0 TB")],
)
def test_sizes_read_well(size: int, said: str) -> None:
    assert human_size(size) == said


def test_writers_of_one_file_sweep_no_living_writers_file(tmp_path: Path) -> None:
    def write(number: int) -> None:
        for _ in range(100):
            write_text(tmp_path / "kept.txt", str(number) * 1000)

    with ThreadPoolExecutor(8) as writers:
        list(writers.map(write, range(8)))
    assert [path.name for path in tmp_path.iterdir()] == ["kept.txt"]
    assert len({*(tmp_path / "kept.txt").read_text(encoding="utf-8")}) == 1
