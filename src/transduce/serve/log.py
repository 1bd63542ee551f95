"""The server's log on standard error: nobody waits for it, and no client fills it."""

import logging
import os
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue

STANDARD_ERROR = 2  # the file descriptor
WAITING = 1000  # lines for a reader that is slower than the server
OFTEN, PERIOD = 60, 60  # as many lines from one place in the code, in so many seconds
LAST = f" (At most {OFTEN} such lines are logged in {PERIOD} s.)"
PATIENCE = 1.0  # seconds for the last lines, when the server ends


class ServerLog(logging.Handler):
    """Writes from a thread of its own: the event loop would stop for everybody while a pipe is full.

    Args:
        file: the file descriptor.
        left_out: called for each line for which there is no room, or of whose kind there are too many.
    """

    def __init__(self, left_out: Callable[[], None], file: int = STANDARD_ERROR) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        self._file, self._left_out = file, left_out
        self._lines: SimpleQueue[bytes | threading.Event] = SimpleQueue()  # unlike Queue, safe while garbage is freed
        self._since, self._seen = 0.0, Counter[tuple[str, int]]()
        threading.Thread(target=self._write, name="transduce-log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """One line, or several with a traceback."""
        seen = self._count(record)
        if seen > OFTEN or self._lines.qsize() >= WAITING:
            self._left_out()
            return
        line = self.format(record) + (LAST if seen == OFTEN else "")
        self._lines.put(f"{line}\n".encode("utf-8", "backslashreplace"))

    def flush(self) -> None:
        """Wait until all is written, but not for long: perhaps nobody reads."""
        written = threading.Event()
        self._lines.put(written)
        written.wait(PATIENCE)

    def _count(self, record: logging.LogRecord) -> int:
        """How many records the same place has made in this period."""
        if record.created - self._since > PERIOD:
            self._since, self._seen = record.created, Counter()
        place = record.pathname, record.lineno
        self._seen[place] += 1
        return self._seen[place]

    def _write(self) -> None:
        while True:
            line = self._lines.get()
            if isinstance(line, threading.Event):
                line.set()
                continue
            with suppress(OSError):  # closed, or full and not to be waited for
                while line:
                    line = line[os.write(self._file, line) :]
