"""What a person sees, on a terminal and in a file."""

import io

from rich.console import Console

from transduce.training.display import Display
from transduce.training.progress import Progress


def shown(terminal: bool) -> tuple[Display, io.StringIO]:
    file = io.StringIO()
    return Display(Console(file=file, force_terminal=terminal, width=100, color_system=None), quiet_every=10), file


def test_a_file_gets_a_plain_line_now_and_then() -> None:
    display, file = shown(terminal=False)
    with display.open(40, 0):
        for update in range(1, 31):
            display.show(Progress(update=update, seconds=2.0 * update), 1.25, 1e-3, 4321.0)
    assert file.getvalue().splitlines() == [
        f"update {update}: loss 1.250, 4,321 tokens/s, {2 * update} s" for update in (10, 20, 30)
    ]


def test_a_terminal_gets_a_bar() -> None:
    display, file = shown(terminal=True)
    with display.open(40, 10):
        display.show(Progress(update=20), 1.25, 1e-3, 4321.0)
    assert "20/40" in file.getvalue()
    assert "loss 1.250" in file.getvalue()
    assert "update 20:" not in file.getvalue()


def test_text_is_shown_as_it_is() -> None:
    display, file = shown(terminal=False)
    lines = ["a [bold]b[/bold] [/] \\[c]", ":smile: :warning:", "ends in \\", "x" * 300]
    for line in lines:
        display.tell(line)
        display.warn(line)
    assert file.getvalue().splitlines() == [line for line in lines for _ in range(2)]
    display.samples([("[red]a", ":smile:", "")])
    assert "[red]a" in file.getvalue()
    assert file.getvalue().count(":smile:") == 3
    assert "reference" not in file.getvalue()


def test_no_samples_no_line() -> None:
    display, file = shown(terminal=False)
    display.samples([])
    assert file.getvalue() == ""
