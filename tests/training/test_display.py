"""What a person sees, on a terminal and in a file."""

import io

import pytest
from rich.console import Console

from transduce.training.display import Display
from transduce.training.progress import Progress


def shown(terminal: bool, width: int = 150) -> tuple[Display, io.StringIO]:
    file = io.StringIO()
    return Display(Console(file=file, force_terminal=terminal, width=width, color_system=None)), file


def told(display: Display, updates: int, each: float, minutes: float | None = None, of: int = 400) -> None:
    """A training of updates that take so many seconds each."""
    with display.open(of, Progress(), minutes):
        for update in range(1, updates + 1):
            display.show(Progress(update=update, seconds=each * update), 1.25, 1e-3, 4321.0)


def test_a_file_gets_lines_soon_and_then_once_a_minute() -> None:
    display, file = shown(terminal=False)
    told(display, 400, 1.0)
    lines = file.getvalue().splitlines()
    assert lines[0] == "update 5 of 400: loss 1.250, 4,321 tokens/s, 0:05 elapsed, 6:35 left"
    told_at = [int(line.split()[1]) for line in lines]
    assert told_at == [5, 15, 35, 75, 135, 195, 255, 315, 375]
    assert lines[-1].endswith("6:15 elapsed, 0:25 left")


def test_a_notebook_needs_no_widgets(recwarn: pytest.WarningsRecorder) -> None:
    display = Display(Console(file=io.StringIO(), force_jupyter=True))
    with display.busy("measuring the speed"), display.count("lines", 2) as advance:
        advance(2)
    with display.several({"one": 10}) as show:
        show("one", 5, 1.0, 100.0)
    told(display, 3, 1.0)
    assert not [each for each in recwarn if "ipywidgets" in str(each.message)]


def test_a_terminal_shows_that_something_is_done() -> None:
    display, file = shown(terminal=True)
    with display.busy("measuring the speed"):
        pass
    assert "measuring the speed" in file.getvalue()


def test_slow_updates_get_a_line_each() -> None:
    display, file = shown(terminal=False)
    told(display, 4, 90.0)
    assert [line.split()[1] for line in file.getvalue().splitlines()] == ["1", "2", "3", "4"]
    assert "6:00 elapsed, 9:54:00 left" in file.getvalue()


def test_at_a_validation_a_file_is_told_where_the_training_is() -> None:
    display, file = shown(terminal=False)
    told(display, 3, 1.0)
    display.where()
    display.where()  # nothing new
    assert file.getvalue() == "update 3 of 400: loss 1.250, 4,321 tokens/s, 0:03 elapsed, 6:37 left\n"


def test_the_time_left_knows_the_minutes() -> None:
    display, file = shown(terminal=False)
    told(display, 5, 1.0, minutes=2, of=1_000_000)
    assert file.getvalue() == "update 5 of 1,000,000: loss 1.250, 4,321 tokens/s, 0:05 elapsed, 1:55 left\n"
    display, file = shown(terminal=True)
    told(display, 90, 1.0, minutes=2, of=1_000_000)
    assert "0:30 left" in file.getvalue()


def test_a_resumed_training_counts_its_speed_anew_and_its_time_on() -> None:
    display, file = shown(terminal=False)
    with display.open(40, Progress(update=20, seconds=1000.0)):
        display.show(Progress(update=30, seconds=1010.0), 1.25, 1e-3, 4321.0)
    assert file.getvalue() == "update 30 of 40: loss 1.250, 4,321 tokens/s, 16:50 elapsed, 0:10 left\n"


def test_a_terminal_gets_a_bar() -> None:
    display, file = shown(terminal=True)
    with display.open(40, Progress(update=10, seconds=60.0)):
        assert "begins" in file.getvalue()
        display.show(Progress(update=20, seconds=70.0), 1.25, 1e-3, 4321.0)
        display.where()
    assert "update 20 of 40: loss 1.250, 4,321 tokens/s" in file.getvalue()
    assert "1:10 elapsed, 0:20 left" in file.getvalue()
    assert "nan" not in file.getvalue()


def test_several_trainings_are_told_by_name() -> None:
    display, file = shown(terminal=False)
    with display.several({"one": 40, "other": 50}) as show:
        show("one", 4, 1.25, 4321.0)
        show("one", 5, 1.25, 4321.0)
        show("other", 3, 1.5, 4321.0)
    lines = file.getvalue().splitlines()
    assert [line.partition(", ")[0] for line in lines] == [
        "one: update 4 of 40: loss 1.250",
        "other: update 3 of 50: loss 1.500",
    ]


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
