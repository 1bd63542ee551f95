"""SIGINT and SIGTERM ask the loop to save and leave; a second one does not wait."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class StopRequest:
    """Whether someone asked to stop, and how."""

    def __init__(self) -> None:
        self.signal: str | None = None

    def __bool__(self) -> bool:
        return self.signal is not None


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Inside, the first SIGINT or SIGTERM only marks the request; the second one interrupts as usual.

    In a thread beside the main one nothing changes, as signals are the main thread's.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def mark(number: int, frame: FrameType | None) -> None:
        request.signal = signal.Signals(number).name
        for each, handler in before.items():
            signal.signal(each, handler)

    for number in before:
        signal.signal(number, mark)
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
