"""Read lines from files or standard input, write lines to standard output, and everything else to standard error."""

import json
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from transduce.core.errors import InputError
from transduce.core.printable import printable, printable_json


def read_source(path: Path | None) -> list[str]:
    """The lines of a file or of standard input, in UTF-8. Only a newline ends a line; a byte order mark is dropped, and
    the carriage return of a line's end on Windows.

    Raises:
        InputError: not UTF-8; the lines are named. Standard input is closed, or does not end; a line does not.
    """
    if path is not None:
        from transduce.data.files import text_lines

        return list(text_lines(path))
    if sys.stdin is None:
        raise InputError("there is nothing to read: standard input is closed. Name a file with --source.")
    from transduce.data.files import BLOCK_BYTES
    from transduce.data.limits import BoundedStream, split_lines

    stream = BoundedStream("standard input", sys.stdin.buffer)
    parts = split_lines(iter(lambda: stream.read(BLOCK_BYTES), b""), "standard input")
    lines, wrong = [], []
    for number, part in enumerate(parts, 1):
        text = part.removeprefix(BOM_UTF8) if number == 1 else part
        try:
            lines.append(text.removesuffix(b"\r").decode("utf-8"))
        except UnicodeDecodeError as error:
            wrong.append(f"standard input, line {number}: not UTF-8 ({error.reason}).")
    if wrong:
        raise InputError(wrong)
    return lines


def source_lines(path: Path | None) -> Collection[str]:
    """As `read_source`; those of a file are not held in memory, but read whenever they are gone through."""
    if path is None or path.is_fifo():
        return read_source(path)
    from transduce.data.files import FileLines

    return FileLines(path)


def is_of_lines(texts: Collection[str]) -> bool:
    """Whether the n-th text is the n-th line of a file, as `source_lines` gives those of one that can be read again."""
    from transduce.data.files import FileLines

    return isinstance(texts, FileLines)


def write_text(text: str) -> None:
    """Write a text with its line breaks to standard output in UTF-8, and end its last line.

    Raises:
        InputError: standard output is closed.
    """
    if sys.stdout is None:
        raise InputError("there is nowhere to write to: standard output is closed.")
    sys.stdout.buffer.write((text if text.endswith("\n") else f"{text}\n").encode())


def write_line(value: str | dict[str, Any]) -> None:
    """Write a line to standard output in UTF-8: text as it is, a dict as JSON. Raises InputError if it is closed."""
    if sys.stdout is None:
        raise InputError("there is nowhere to write to: standard output is closed.")
    sys.stdout.buffer.write(_one_line(value if isinstance(value, str) else json_line(value)))


def json_line(value: dict[str, Any]) -> str:
    """As JSON, with characters of all scripts as they are."""
    return printable_json(json.dumps(value, ensure_ascii=False))


def write_lines(lines: Iterable[str], output: str | None) -> None:
    """Write lines in UTF-8 to a file or URL, compressed by its suffix; None = standard output. All of them or none.

    Raises:
        InputError: the file cannot be written, or standard output is closed.
    """
    if output is None:
        with libraries_on_stderr():
            found = list(lines)
        for line in found:
            write_line(line)
        return
    from transduce.data.files import writing

    with libraries_on_stderr(), writing(output) as file:
        for line in lines:
            file.write(_one_line(line))


@contextmanager
def libraries_on_stderr() -> Iterator[None]:
    """Let what libraries print go to standard error: Ray tells there that a worker died."""
    with redirect_stdout(sys.stderr):
        yield


def _one_line(text: str) -> bytes:
    return text.replace("\n", " ").encode() + b"\n"


def is_terminal(stream: Any) -> bool:
    """Whether the stream is a terminal. A stream that was closed before Python started is None, which is not."""
    return stream is not None and stream.isatty()


def tell(line: str) -> None:
    """Print one line on standard error."""
    print(printable(line), file=sys.stderr)


def tell_red(line: str) -> None:
    """The same, in red on a terminal."""
    print(f"\x1b[31m{printable(line)}\x1b[0m" if is_terminal(sys.stderr) else printable(line), file=sys.stderr)


@contextmanager
def bar(what: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar on standard error if that is a terminal. Call the function it gives after each step.

    total: None = nobody knows it.
    """
    if not is_terminal(sys.stderr):
        yield lambda done: None
        return
    try:
        from rich.progress import Progress

        from transduce.runtime.console import make_console
    except ModuleNotFoundError:  # the package without torch does not bring it
        yield lambda done: None
        return
    with Progress(console=make_console(stderr=True), transient=True) as progress:
        task = progress.add_task(what, total=total)
        yield lambda done: progress.advance(task, done)
