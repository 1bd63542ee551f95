"""What a path to write to stands for: a file, perhaps behind links, or a stream such as a device or a pipe.

| at the path | what a write does |
|---|---|
| nothing, or a file | the file is replaced as a whole, see `transduce.core.atomic` |
| a link | it stays; what it leads to is written |
| a pipe, a character device, one of this process's own descriptors (`/dev/stdout`) | everything is written into it |
| a folder, a socket, a disk, a link into a folder that is not there | `InputError` |
"""

import errno
import os
import stat
import sys
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import BinaryIO

from transduce.core.errors import InputError
from transduce.core.printable import printable

RUN = ("data.json", "log.jsonl", "checkpoints")  # one of which lies beside the recipe.toml of a run
OF_RUNS = (  # names of what a run writes, in its directory
    *("recipe.toml", "data.json", "plan.json", "job.json", "memory.json", "measured.json", "failed.txt", ".*"),
    *("log.jsonl", "report.json", "report-*.json", "model.safetensors"),
    *(
        "checkpoints",
        "data",
        "figures",
        "held_out",
        "outputs",
        "replay",
        "reverse",
        "site",
        "teachers",
        "tensorboard",
        "translations",
    ),
)
LINKS = 40  # that may follow each other, as in Linux
NO_FILES = {
    stat.S_IFSOCK: "a socket",
    stat.S_IFBLK: "a disk",
    stat.S_IFCHR: "a device",
    stat.S_IFIFO: "a pipe",
}
REFUSED = {stat.S_IFDIR: "a folder"} | {kind: NO_FILES[kind] for kind in (stat.S_IFSOCK, stat.S_IFBLK)}


def file_to_write(path: Path) -> Path | None:
    """The file that takes the place of what is at `path`: itself, or where its links lead; None where it is a stream.

    Raises:
        InputError: neither a file nor a stream can be written there.
        OSError: the system does not let us look.
    """
    if own_descriptor(path) is not None:
        return None
    kind = _kind(path)
    if kind in REFUSED:
        raise InputError(f"{path}: could not be written: this is {REFUSED[kind]}.")
    if kind in (stat.S_IFCHR, stat.S_IFIFO):
        return None
    file = Path(os.path.realpath(path)) if path.is_symlink() else path
    if not file.parent.is_dir():
        link = f"it is a link to {file}, and " if file != path else ""
        raise InputError(f"{path}: cannot be written: {link}there is no folder {file.parent}.")
    return file


def _kind(path: Path) -> int:
    """Of what is there, behind all links; 0 where there is nothing."""
    try:
        return stat.S_IFMT(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return 0


def open_stream(path: Path) -> BinaryIO:
    """A device, a pipe or one of our own descriptors, to write into.

    A named pipe opens when somebody reads it. Until then this waits, which is said on standard error.
    """
    number = own_descriptor(path)
    if number is not None:
        if sys.stdout is not None:
            sys.stdout.flush()  # what was printed before stays before
        return os.fdopen(os.dup(number), "wb")
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno != errno.ENXIO:
            raise
        place = printable(str(path))
        print(f"{place}: waiting until somebody reads this pipe; Ctrl-C ends it.", file=sys.stderr, flush=True)
        descriptor = os.open(path, os.O_WRONLY)
    os.set_blocking(descriptor, True)
    return os.fdopen(descriptor, "wb")


def own_descriptor(path: Path) -> int | None:
    """The number that `/dev/stdout`, `/dev/fd/3` or a link to one names; None for all other paths.

    Such a path cannot be followed to a file: behind it may be a pipe without a name, or a file that the shell is still
    writing.
    """
    if sys.platform == "win32":
        return None
    folders = {os.path.realpath("/proc/self/fd"), "/dev/fd"}
    for _ in range(LINKS):
        folder = os.path.realpath(path.parent)
        if folder in folders and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            return None
        path = Path(folder, path.readlink())
    return None


def check_output(output: str | os.PathLike[str] | None, inputs: Iterable[Path | None], called: str = "") -> None:
    """Refuses an output that would take the place of an input, under whatever name: a link, or a hard link.

    In the run directory of an input, such as that of a model, an output has a name that no run writes.

    Args:
        output: a path or a URL; None = there is none.
        inputs: files; model files also as the directory of their run, members of archives as `a.zip/member`. What
            standard input comes from counts among them.
        called: the option that names the output, for the message.

    Raises:
        InputError: the output is an input, or a file of its run.
    """
    given = [each for each in inputs if each is not None]
    if output is not None and any(same_file(Path(output), each) for path in given for each in _files(path)):
        raise InputError(f"{called} {output}: this is an input; name another file.".strip())
    if output is not None and _is_standard_input(Path(output)):
        raise InputError(f"{called} {output}: standard input comes from this file; name another one.".strip())
    if output is not None and (run := next((run for run in _runs(given) if _is_of_run(Path(output), run)), None)):
        raise InputError(
            f"{called} {output}: this file belongs to the run {run}, which is an input. Choose another output.".strip()
        )


def _files(path: Path) -> list[Path]:
    """What a write to any of them would destroy of the input at `path`."""
    return [path, path / "model.safetensors", *path.parents]


def _runs(inputs: Iterable[Path]) -> Iterator[Path]:
    """The run directories that inputs lie in, or are."""
    for path in inputs:
        for folder in {place for each in (path.absolute(), _end(path)) for place in (each, *each.parents)}:
            if _exists(folder / "recipe.toml") and any(_exists(folder / name) for name in RUN):
                yield folder


def _is_of_run(output: Path, run: Path) -> bool:
    """Whether `output` is a file that the run writes itself, there already or not."""
    end, around = _end(output), _end(run)
    if own_descriptor(output) is not None or around not in end.parents:
        return False
    return any(fnmatch(end.relative_to(around).parts[0], name) for name in OF_RUNS)


def _end(path: Path) -> Path:
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):  # of what is no path
        return path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def same_file(one: Path, other: Path) -> bool:
    """Whether both names are of one file that is there; a device may well be read and written."""
    try:
        return one.is_file() and one.samefile(other)
    except (OSError, ValueError):
        return False


def _is_standard_input(path: Path) -> bool:
    try:
        return path.is_file() and os.path.samestat(path.stat(), os.fstat(0))
    except OSError:
        return False
