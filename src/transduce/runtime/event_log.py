"""`log.jsonl`: one JSON object a line, and the same to TensorBoard if asked."""

import json
import math
import time
from pathlib import Path
from typing import Any, BinaryIO

from transduce.core.bounded_file import open_regular
from transduce.core.errors import InputError, TransduceError
from transduce.core.extras import library
from transduce.core.tensor_file import write_text
from transduce.runtime.lock import is_held

NAME = "log.jsonl"
REPORT = "report.json"  # a training writes it at its end
QUIET = 60.0  # seconds
WATCHED = ("train", "validation", "samples")


class Log:
    """Appends events of a run.

    Args:
        run: the run directory.
        update: resume after this update; later events, written by a process that was killed, are removed.
        tensorboard: write numbers there too (extra `tensorboard`).
    """

    def __init__(self, run: Path, update: int, tensorboard: bool) -> None:
        self.path = run / NAME
        kept = [event for event in read_log(self.path) if event["update"] <= update]
        write_text(self.path, "".join(_line(event) for event in kept))
        self._file = self.path.open("ab", buffering=0)
        self._board = _tensorboard(run / "tensorboard", update) if tensorboard else None

    def write(self, event: str, update: int, **values: Any) -> None:
        """One event, in the file when this returns.

        Raises:
            TransduceError: the disk is full, or another failure of the system.
        """
        self._append(_line({"event": event, "update": update, **values}).encode())
        if self._board:
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._board.add_scalar(f"{event}/{name}", value, update)

    def _append(self, line: bytes) -> None:
        try:
            while line:  # an unbuffered file may take a part
                line = line[self._file.write(line) :]
        except OSError as error:
            raise TransduceError(
                f"{self.path}: could not be written: {error.strerror}. The last checkpoint is intact: make room, and "
                "the same command goes on from there."
            ) from error

    def close(self) -> None:
        self._file.close()
        if self._board:
            self._board.close()


class SilentLog(Log):
    """Writes nothing: another process does."""

    def __init__(self) -> None:
        pass

    def write(self, event: str, update: int, **values: Any) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


def read_log(path: Path) -> list[dict[str, Any]]:
    """The events of a log; a line that was cut off by a kill or a full disk is left out. No log, no events.

    Raises:
        InputError: it cannot be read.
    """
    if not path.exists():
        return []
    with _opened(path) as file:
        return [event for line in file.read().split(b"\n") if (event := _event(line))]


def read_from(path: Path, offset: int) -> tuple[list[dict[str, Any]], int]:
    """The events of a log from a byte on, and the byte behind them, to ask from the next time.

    Lines are read whole: one that is being written is left for the next time. A log that is shorter than `offset`, as
    after a resumption, is read from its beginning. No log, no events.

    Raises:
        InputError: it cannot be read.
    """
    if not path.exists():
        return [], 0
    with _opened(path) as file:
        size = file.seek(0, 2)
        start = offset if offset <= size else 0
        file.seek(start)
        data = file.read()
    whole = data.rfind(b"\n") + 1
    return [event for line in data[:whole].split(b"\n") if (event := _event(line))], start + whole


def trained(run: Path, offset: int = 0) -> dict[str, Any]:
    """What a run has told from a byte of its log on, as people watch it: events, whether it ended, where to go on.

    Events are those of updates ("train"), of validations, and "samples". "stopped": it is not finished, nobody trains
    there, and nothing was written for a minute.
    """
    finished = (run / REPORT).exists()  # asked first: what a training writes last is in the log by then
    stopped = not finished and _is_quiet(run / NAME) and not is_held(run)
    events, size = read_from(run / NAME, offset)
    watched = [each for each in events if each.get("event") in WATCHED]
    return {"events": watched, "finished": finished, "stopped": stopped, "size": size}


def _is_quiet(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > QUIET
    except OSError:
        return False


def _opened(path: Path) -> BinaryIO:
    """A run may come from anybody: only a regular file, as a pipe lets its readers wait."""
    try:
        return open_regular(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}.") from error


def _event(line: bytes) -> dict[str, Any] | None:
    """What a line says, if it is one that a training wrote. Numbers that are not finite are None, as JSON has none."""
    try:
        text = line.decode()
        event = json.loads(text, parse_float=_finite, parse_constant=_finite)
        if "\\u" in text:
            json.dumps(event, ensure_ascii=False).encode()  # half of a surrogate pair is in no UTF-8
    except (ValueError, RecursionError):
        return None
    known = isinstance(event, dict) and type(event.get("update")) is int and isinstance(event.get("event"), str)
    return event if known else None


def _finite(digits: str) -> float | None:
    return number if math.isfinite(number := float(digits)) else None


def _line(event: dict[str, Any]) -> str:
    """JSON in one line. A number that is not finite, such as a perplexity over 1e308, becomes null."""
    try:
        return json.dumps(event, ensure_ascii=False, allow_nan=False) + "\n"
    except ValueError:
        return _line(json.loads(json.dumps(event), parse_constant=_finite))


def _tensorboard(folder: Path, update: int) -> Any:
    module = library("torch.utils.tensorboard", "training.tensorboard = true", "tensorboard", called="TensorBoard")
    return module.SummaryWriter(str(folder), purge_step=update + 1)
