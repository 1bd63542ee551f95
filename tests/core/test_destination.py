"""What writes do where there is a link, a device, a pipe or a socket."""

import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from fnmatch import fnmatch
from pathlib import Path

import pytest

from transduce.api.data import FOLDER as DATA
from transduce.compare.worker import FAILED, MEASURED, MEMORY
from transduce.core.atomic import write_text, writing
from transduce.core.destination import OF_RUNS, check_output
from transduce.core.errors import InputError, TransduceError
from transduce.core.model_file import NAME
from transduce.runtime.event_log import NAME as LOG
from transduce.runtime.event_log import REPORT
from transduce.training.checkpoint import FOLDER
from transduce.training.run_directory import BEGUN, FIRST, HELD_OUT, NOTED, PLAN

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links and devices of POSIX")

WRITE = "import sys; from transduce.core.atomic import write_text; write_text(sys.argv[1], 'new\\n')"


def written(place: str, shell: str) -> subprocess.CompletedProcess[str]:
    """What `shell` does with WRITE, which stands for a process that writes a line to `place`."""
    command = shell.replace("WRITE", f"'{sys.executable}' -c \"{WRITE}\" {place}")
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False, timeout=60)


def test_a_link_stays_and_the_file_behind_it_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "file").write_text("old")
    (tmp_path / "second").symlink_to("far/file")
    (tmp_path / "first").symlink_to("second")
    write_text(tmp_path / "first", "new")
    assert (tmp_path / "far" / "file").read_text() == "new"
    assert (tmp_path / "first").is_symlink()
    assert (tmp_path / "second").is_symlink()
    assert [path.name for path in (tmp_path / "far").iterdir()] == ["file"]


def test_a_failed_write_through_a_link_leaves_both(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").symlink_to("file")
    with pytest.raises(ZeroDivisionError), writing(tmp_path / "link") as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_link_to_a_file_that_is_not_there_yet_makes_it(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "file").read_text() == "new"
    assert (tmp_path / "link").is_symlink()


def test_a_link_into_a_folder_that_is_not_there_is_told_with_its_end(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("absent/file")
    with pytest.raises(InputError, match=r"link: cannot be written: it is a link to .*absent/file, and there is no"):
        write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()


def test_links_in_a_circle_are_told(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(InputError, match="symbolic links"):
        write_text(tmp_path / "a", "new")


def test_a_link_to_a_folder_and_a_socket_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    with pytest.raises(InputError, match="this is a folder"):
        write_text(tmp_path / "link", "new")
    with tempfile.TemporaryDirectory(dir="/tmp") as short, socket.socket(socket.AF_UNIX) as listening:  # 108 bytes
        place = Path(short, "s")
        listening.bind(str(place))
        with pytest.raises(InputError, match="this is a socket"):
            write_text(place, "new")
        assert stat.S_ISSOCK(place.stat().st_mode)


def device(folder: Path, name: str, minor: int) -> Path:
    """A device of our own like that of /dev, which an administrator's test could destroy."""
    own = folder / name
    try:
        os.mknod(own, 0o666 | stat.S_IFCHR, os.makedev(1, minor))
        own.write_bytes(b"")
    except OSError:
        if os.geteuid() == 0 or not Path("/dev", name).is_char_device():
            pytest.skip("this system makes no device for a test")
        return Path("/dev", name)
    return own


def test_a_device_stays_what_it_is(tmp_path: Path) -> None:
    null = device(tmp_path, "null", 3)
    before = null.stat()
    write_text(null, "gone")
    assert null.stat().st_ino == before.st_ino
    assert null.is_char_device()


def test_a_full_device_is_told(tmp_path: Path) -> None:
    full = device(tmp_path, "full", 7)
    with pytest.raises(TransduceError, match="full: could not be written: No space left"):
        write_text(full, "new")
    assert full.is_char_device()


def test_a_named_pipe_is_written_into(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_text(pipe, "new" * 100_000)
    reader.join()
    assert read == ["new" * 100_000]
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_named_pipe_that_nobody_reads_is_waited_for_with_a_word(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    done = written(str(pipe), f'WRITE 2> >(read -r line; echo "$line"; cat {pipe})')
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{pipe}: waiting until somebody reads this pipe; Ctrl-C ends it.\nnew\n"


def test_a_reader_who_leaves_is_told_as_at_standard_output(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: os.close(os.open(pipe, os.O_RDONLY)))
    reader.start()
    with pytest.raises(BrokenPipeError), writing(pipe) as file:
        reader.join()
        file.write(b"new")


@pytest.mark.parametrize("place", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_standard_output_by_a_name_is_where_the_shell_sends_it(place: str, tmp_path: Path) -> None:
    if place == "link":
        place = str(tmp_path / "link")
        Path(place).symlink_to("/dev/stdout")
    assert written(place, "WRITE | cat").stdout == "new\n"
    out = tmp_path / "out"
    written(place, f"(echo before; WRITE; echo after) > {out}")
    assert out.read_text() == "before\nnew\nafter\n"


def test_a_process_as_a_file_is_written_into(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = written(f">(tr a-z A-Z > {out}; echo done)", "WRITE | cat")
    assert done.stdout == "done\n"
    assert out.read_text() == "NEW\n"


def test_an_output_is_no_input_by_any_name(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    model, page = tmp_path / "run" / "model.safetensors", tmp_path / "page.html"
    model.write_text("model")
    page.write_text("page")
    (tmp_path / "link").symlink_to(model)
    os.link(model, tmp_path / "hard")
    for output in (model, tmp_path / "link", tmp_path / "hard", tmp_path / "run" / ".." / "run" / model.name):
        for given in (model, tmp_path / "run", tmp_path / "link"):
            with pytest.raises(InputError, match=r"--output .*: this is an input; name another file\."):
                check_output(output, [page, None, given], "--output")
    with pytest.raises(InputError, match="this is an input"):
        check_output(page, [page / "member.txt"])  # of an archive
    check_output(None, [model])
    check_output(page, [model, tmp_path / "run", Path("It rains. " * 1000), Path("nul\0")])
    check_output(tmp_path / "new", [tmp_path / "new"])
    check_output("/dev/null", [Path("/dev/null")])


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """What a run looks like from outside."""
    folder = tmp_path / "run"
    (folder / "checkpoints").mkdir(parents=True)
    for name in (
        "model.safetensors",
        "recipe.toml",
        "log.jsonl",
        "mine.txt",
        "checkpoints/update-00000001.safetensors",
    ):
        (folder / name).write_text(name)
    return folder


@pytest.mark.parametrize(
    "name",
    ["log.jsonl", "recipe.toml", "checkpoints/update-00000001.safetensors"]  # are there
    + ["report.json", "report-00000001.json", "checkpoints/new.txt", ".lock"],  # may come
)
def test_an_output_is_no_file_of_the_run_that_is_read(name: str, run: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(run / name)
    (tmp_path / "run2").symlink_to("run")
    for output in (run / name, tmp_path / "link", tmp_path / "run2" / name):
        for given in (run, run / "model.safetensors", tmp_path / "run2", run / "checkpoints" / "absent"):
            with pytest.raises(InputError, match=r"--output .*: this (is an input|file belongs to the run .*/run)"):
                check_output(output, [None, given], "--output")
    check_output(run / name, [tmp_path / "text"])


def test_an_output_may_be_a_file_beside_those_of_a_run(run: Path, tmp_path: Path) -> None:
    check_output(run / "page.html", [run])
    check_output(run / "mine.txt", [run])  # from an earlier prediction
    check_output(tmp_path / "recipe.toml", [run])
    check_output("/dev/stdout", [run])
    (run / "log.jsonl").unlink()
    (run / "checkpoints").rename(tmp_path / "checkpoints2")
    check_output(run / "mine.txt", [run])  # a folder of one's own, with a recipe


def test_the_names_of_a_runs_files_are_known(tiny_run: Path) -> None:
    named = [NOTED, HELD_OUT, PLAN, *BEGUN, *FIRST, FOLDER, DATA, MEASURED, FAILED, MEMORY, LOG, REPORT, NAME]
    written = [path.name for path in tiny_run.iterdir()]
    assert not [name for name in (*named, *written) if not any(fnmatch(name, each) for each in OF_RUNS)]


def test_an_output_is_not_what_standard_input_comes_from(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    script = (
        "import sys; from transduce.core.destination import check_output; check_output(sys.argv[1], [], '--output')"
    )
    with (tmp_path / "file").open() as file:
        command = [sys.executable, "-c", script, str(tmp_path / "file")]
        done = subprocess.run(command, stdin=file, capture_output=True, text=True, check=False)
    assert "standard input comes from this file" in done.stderr
