"""`log.jsonl`: one JSON object a line, and the same to TensorBoard if asked."""

import json
from pathlib import Path
from typing import Any

from transduce.errors import InputError
from transduce.storage import write_text


class Log:
    """Appends events of a run.

    Args:
        run: the run directory.
        update: resume after this update; later events, written by a process that was killed, are removed.
        tensorboard: write numbers there too (extra `tensorboard`).
    """

    def __init__(self, run: Path, update: int, tensorboard: bool) -> None:
        self.path = run / "log.jsonl"
        kept = [event for event in read_log(self.path) if event["update"] <= update]
        write_text(self.path, "".join(_line(event) for event in kept))
        self._file = self.path.open("a", encoding="utf-8", newline="\n")
        self._board = _tensorboard(run / "tensorboard", update) if tensorboard else None

    def write(self, event: str, update: int, **values: Any) -> None:
        """One event, on disk when this returns."""
        self._file.write(_line({"event": event, "update": update, **values}))
        self._file.flush()
        if self._board:
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._board.add_scalar(f"{event}/{name}", value, update)

    def close(self) -> None:
        """No more events."""
        self._file.close()
        if self._board:
            self._board.close()


def read_log(path: Path) -> list[dict[str, Any]]:
    """The events of a log; a last line that was cut off by a kill is left out. No log, no events."""
    events: list[dict[str, Any]] = []
    if path.exists():
        for line in path.read_bytes().split(b"\n"):
            try:
                events.append(json.loads(line))
            except ValueError:
                continue
    return events


def _line(event: dict[str, Any]) -> str:
    return json.dumps(event, ensure_ascii=False) + "\n"


def _tensorboard(folder: Path, update: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise InputError(
            'training.tensorboard = true needs TensorBoard: pip install "transduce[tensorboard]", or leave it out.'
        ) from error
    return SummaryWriter(str(folder), purge_step=update + 1)
