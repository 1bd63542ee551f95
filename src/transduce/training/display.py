"""What a person sees of a training: a bar with loss, speed and time left, and lines for what happens."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

from transduce.training import progress as counters


class Display:
    """Writes to a console; on a terminal with a live bar, elsewhere a line now and then."""

    def __init__(self, console: Console, quiet_every: int = 500) -> None:
        self.console = console
        self._quiet_every = quiet_every
        self._bar = self._bars()
        self._task = _add(self._bar, "training", None)

    @contextmanager
    def open(self, updates: int, done: int) -> Iterator[Self]:
        """The bar is on the screen inside."""
        self._bar.update(self._task, total=updates, completed=done)
        with self._bar:
            yield self

    @contextmanager
    def several(self, updates: Mapping[str, int]) -> Iterator[Callable[[str, int, float, float], None]]:
        """A bar for each of several trainings, name -> updates in all.

        Inside, call what it gives with a name, the update that it is at, its loss and its tokens a second.
        """
        with self._bars() as bars:
            tasks = {name: _add(bars, name, total) for name, total in updates.items()}
            told = dict.fromkeys(updates, 0)

            def show(name: str, update: int, loss: float, speed: float) -> None:
                bars.update(tasks[name], completed=update, loss=loss, speed=speed)
                if not self.console.is_terminal and update // self._quiet_every > told[name]:
                    told[name] = update // self._quiet_every
                    self.tell(f"{name}: update {update}: loss {loss:.3f}, {speed:,.0f} tokens/s")

            yield show

    @contextmanager
    def count(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """Another bar for long work; inside, call what it gives with each step."""
        with Progress(console=self.console, transient=True, disable=not self.console.is_terminal) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.advance(task, done)

    def _bars(self) -> Progress:
        return Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]:.3f}  {task.fields[speed]:,.0f} tokens/s"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.console,
            disable=not self.console.is_terminal,
        )

    def show(self, progress: counters.Progress, loss: float, rate: float, speed: float) -> None:
        """After an update."""
        self._bar.update(self._task, completed=progress.update, loss=loss, speed=speed)
        if not self.console.is_terminal and progress.update % self._quiet_every == 0:
            self.tell(f"update {progress.update}: loss {loss:.3f}, {speed:,.0f} tokens/s, {progress.seconds:.0f} s")

    def tell(self, line: str) -> None:
        """One line of text, as it is."""
        self.console.print(Text(line), soft_wrap=True)

    def warn(self, line: str) -> None:
        """One line that must not be missed."""
        self.console.print(Text(line, style="bold yellow"), soft_wrap=True)

    def samples(self, rows: list[tuple[str, str, str]]) -> None:
        """Sources, outputs and references, a few."""
        table = Table(show_header=False, box=None, padding=(0, 1))
        for source, output, reference in rows:
            for name, text in (("source", source), ("output", output), ("reference", reference)):
                if text:
                    table.add_row(Text(name, style="dim"), Text(text))
        if rows:
            self.console.print(table)


def _add(bars: Progress, name: str, updates: int | None) -> TaskID:
    """The bar of a training that has not begun."""
    return bars.add_task(name, total=updates, loss=float("nan"), speed=0.0)
