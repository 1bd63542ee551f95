"""The console that commands show things on: what it is given is text, and steers no terminal."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from transduce.core.printable import printable

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderResult
    from rich.segment import Segment


def make_console(**settings: Any) -> "Console":
    """Of rich, with its settings. What is shown may hold names from anybody's files: brackets in them are no markup."""
    from rich.console import Console  # late: a server without torch carries this file, and has no rich

    console = Console(**{"markup": False, "emoji": False, **settings})
    console.push_render_hook(_Printing())  # type: ignore[arg-type]
    return console


class _Printing:
    """A hook of rich by its method alone: control characters are spelt out in all that is printed."""

    def process_renderables(self, renderables: "list[ConsoleRenderable]") -> "list[ConsoleRenderable]":
        return [_Printed(each) for each in renderables]


class _Printed:
    def __init__(self, inner: "ConsoleRenderable") -> None:
        self.inner = inner

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        yield from _safe(console.render(self.inner, options))


def _safe(segments: "Iterable[Segment]") -> "Iterable[Segment]":
    """What rich itself says to the terminal, as to move its cursor, stays."""
    for each in segments:
        yield each if each.control else each._replace(text=printable(each.text))
