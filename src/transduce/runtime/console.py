"""The console that commands show things on: what it is given is text, and steers no terminal."""

from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook, RenderResult
from rich.segment import Segment

from transduce.core.printable import printable


def make_console(**settings: Any) -> Console:
    """Of rich, with its settings. What is shown may hold names from anybody's files: brackets in them are no markup."""
    console = Console(**{"markup": False, "emoji": False, **settings})
    console.push_render_hook(_Printing())
    return console


class _Printing(RenderHook):
    """Control characters spelt out in all that is printed."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        return [_Printed(each) for each in renderables]


class _Printed:
    def __init__(self, inner: ConsoleRenderable) -> None:
        self.inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from _safe(console.render(self.inner, options))


def _safe(segments: Iterable[Segment]) -> Iterable[Segment]:
    """What rich itself says to the terminal, as to move its cursor, stays."""
    for text, style, control in segments:
        yield Segment(text if control else printable(text), style, control)
