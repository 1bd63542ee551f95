"""What a person sees of a training: a bar with loss, speed and time left, and lines for what happens.

In a notebook both are one output of the cell, which is rewritten in place (`NotebookPanel`).
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, Task, TaskID, TextColumn
from rich.progress import Progress as Bars
from rich.table import Table
from rich.text import Text

from transduce.core.templates import render
from transduce.training.progress import Progress

TEMPLATE = Path(__file__).with_name("notebook_panel.html.jinja")
PAUSE = 0.5  # seconds between two drawings of what changes with each update
RECENT = 5  # validations that are shown besides the best
WARNINGS = 3  # the last different ones; the others are among the folded lines
LONGEST = 200  # characters of a sample

Publish = Callable[[str], None]  # given the whole output as HTML, each time

FIRST_LINE, LONGEST_SILENCE = (
    5.0,
    60.0,
)  # seconds between lines where there is no terminal; each silence is twice the last


Watch = Callable[[Progress, float, float, float], None]


class Times(ProgressColumn):
    """How long a training has taken so far, and how long it will take, both with their names."""

    def render(self, task: Task) -> Text:
        """As it is at this moment, also between updates."""
        since = time.monotonic() - task.fields["at"]
        left = task.fields["left"]
        return Text(_times(task.fields["elapsed"] + since, None if left is None else max(0.0, left - since)))


class Display:
    """Writes to a console; on a terminal with a live bar, in a notebook in place, elsewhere a line now and then.

    watch: told after each update what `show` is told.
    """

    def __init__(self, console: Console, watch: Watch | None = None) -> None:
        self.console, self.watch = console, watch
        publish = notebook_output() if console.is_jupyter and not console.quiet else None
        self._panel = NotebookPanel(publish) if publish else None
        self._bar = self._bars()
        self._task = _add(self._bar, "training")
        self._pace = _Pace(0, Progress(), None)
        self._lines = _Lines(0.0)
        self._now = ""
        self._told = set[str]()

    @contextmanager
    def open(
        self, updates: int, progress: Progress, minutes: float | None = None, unit: str = "token"
    ) -> Iterator[Self]:
        """The bar is on the screen inside, of a training that stands at `progress`; its speed is in units a second."""
        self._pace, self._lines = _Pace(updates, progress, minutes, unit), _Lines(progress.seconds)
        shown: dict[str, Any] = {"elapsed": progress.seconds, "left": self._pace.left(progress), "at": time.monotonic()}
        self._bar.update(self._task, completed=self._pace.share(progress), **shown)
        with self._bar:
            yield self
        if self._panel:
            self._panel.close()

    @contextmanager
    def several(self, updates: Mapping[str, int]) -> Iterator[Callable[[str, int, float, float], None]]:
        """A bar for each of several trainings, name -> updates in all.

        Inside, call what it gives with a name, the update that it is at, its loss and its tokens a second.
        """
        begun = time.monotonic()
        with self._bars() as bars:
            tasks = {name: _add(bars, name) for name in updates}
            paces = dict[str, _Pace]()
            lines = {name: _Lines(0.0, interval=0.0) for name in updates}  # a sign of life at once

            def show(name: str, update: int, loss: float, speed: float) -> None:
                progress = Progress(update=update, seconds=time.monotonic() - begun)
                pace = paces.setdefault(name, _Pace(updates[name], progress, None))
                line = _update(bars, tasks[name], pace, progress, loss, speed)
                if not self.console.is_terminal and lines[name].due(progress.seconds):
                    self.tell(f"{name}: {line}")

            yield show

    @contextmanager
    def count(self, what: str, total: int) -> Iterator[Callable[[int], None]]:
        """Another bar for long work; inside, call what it gives with each step."""
        with Bars(console=self.console, transient=True, disable=not self.console.is_terminal) as bar:
            task = bar.add_task(what, total=total)
            yield lambda done: bar.advance(task, done)

    @contextmanager
    def busy(self, what: str) -> Iterator[None]:
        """A sign of life on a terminal inside. In a notebook rich would ask for ipywidgets, which nobody needs here."""
        with self.console.status(what) if self.console.is_terminal else nullcontext():
            yield

    def _bars(self) -> Bars:
        return Bars(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[counted]}{task.fields[figures]},"),
            Times(),
            console=self.console,
            disable=not self.console.is_terminal,
        )

    def show(self, progress: Progress, loss: float, rate: float, speed: float) -> None:
        self._now = _update(self._bar, self._task, self._pace, progress, loss, speed)
        if self._panel:
            self._panel.show(progress.update, self._pace.share(progress), self._now, progress.best.get("update"))
        elif not self.console.is_terminal and self._lines.due(progress.seconds):
            self.where()
        if self.watch:
            self.watch(progress, loss, rate, speed)

    def where(self) -> None:
        """Where the training is, on a line, unless the last line says so or there is a bar."""
        if self._now and not self.console.is_terminal and not self._panel:
            self.tell(self._now)
        self._now = ""

    def tell(self, line: str) -> None:
        """One line of text, as it is."""
        if self._panel:
            self._panel.tell(line)
            return
        self.console.print(Text(line), soft_wrap=True)

    def tell_once(self, line: str, warning: bool = False) -> None:
        """Of data, which is opened to measure the speed and again to train: a line, unless it was told before."""
        if line not in self._told:
            self._told.add(line)
            (self.warn if warning else self.tell)(line)

    def warn(self, line: str) -> None:
        """One line that must not be missed."""
        if self._panel:
            self._panel.warn(line)
            return
        self.console.print(Text(line, style="bold yellow"), soft_wrap=True)

    def validated(self, metrics: Mapping[str, float]) -> None:
        """Figures of a validation, by name."""
        if self._panel:
            self._panel.validated(metrics)
            return
        self.where()
        self.tell("validation: " + ", ".join(f"{name} {value:.3f}" for name, value in metrics.items()))

    def samples(self, rows: list[tuple[str, str, str]]) -> None:
        """Sources, outputs and references, a few."""
        if self._panel:
            self._panel.samples(rows)
            return
        table = Table(show_header=False, box=None, padding=(0, 1))
        for source, output, reference in rows:
            for name, text in (("source", source), ("output", output), ("reference", reference)):
                if text:
                    table.add_row(Text(name, style="dim"), Text(text))
        if rows:
            self.console.print(table)


class _Pace:
    """How far a training is, and how long it will take from there.

    Args:
        begun: where this process began with it.
        unit: what its speed counts.
    """

    def __init__(self, updates: int, progress: Progress, minutes: float | None, unit: str = "token") -> None:
        self.updates, self.unit = updates, unit
        self._update, self._seconds = progress.update, progress.seconds
        self._limit = None if minutes is None else 60 * minutes

    def share(self, progress: Progress) -> float:
        """Of the updates, or of the time, whichever is nearer to its end."""
        by_time = progress.seconds / self._limit if self._limit else 0.0
        return min(1.0, max(progress.update / max(1, self.updates), by_time))

    def left(self, progress: Progress) -> float | None:
        """Seconds; None before the first update."""
        made, spent = progress.update - self._update, progress.seconds - self._seconds
        known = [] if self._limit is None else [max(0.0, self._limit - progress.seconds)]
        if made > 0:
            known.append(max(0, self.updates - progress.update) * spent / made)
        return min(known, default=None)


class _Lines:
    """When a line is due where there is no terminal: first soon, then less and less often."""

    def __init__(self, start: float, interval: float = FIRST_LINE) -> None:
        self._next, self._silence = start + interval, FIRST_LINE

    def due(self, seconds: float) -> bool:
        """Asked again and again; true when the line is to be told."""
        if seconds < self._next:
            return False
        self._silence = min(2 * self._silence, LONGEST_SILENCE)
        self._next = seconds + self._silence
        return True


def _add(bars: Bars, name: str) -> TaskID:
    """The bar of a training that has not begun."""
    return bars.add_task(name, total=1.0, figures="begins", counted="", elapsed=0.0, left=None, at=time.monotonic())


def _update(bars: Bars, task: TaskID, pace: _Pace, progress: Progress, loss: float, speed: float) -> str:
    """Onto the bar; the same as a line."""
    counted = f"update {progress.update:,} of {pace.updates:,}"
    figures, left = f": loss {loss:.3f}, {speed:,.0f} {pace.unit}s/s", pace.left(progress)
    shown: dict[str, Any] = {
        "counted": counted,
        "figures": figures,
        "elapsed": progress.seconds,
        "left": left,
        "at": time.monotonic(),
    }
    bars.update(task, completed=pace.share(progress), **shown)
    return f"{counted}{figures}, {_times(progress.seconds, left)}"


def _times(elapsed: float, left: float | None) -> str:
    return f"{_clock(elapsed)} elapsed" + ("" if left is None else f", {_clock(left)} left")


def _clock(seconds: float) -> str:
    """1:05, or 2:01:05."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def notebook_output() -> Publish | None:
    """An output of the cell that runs now, which each call replaces; None outside IPython."""
    try:
        from IPython.display import HTML, display
    except ImportError:
        return None
    handle: Any = None

    def publish(html: str) -> None:
        nonlocal handle
        if handle is None:
            handle = display(HTML(html), display_id=True)
        else:
            handle.update(HTML(html))

    return publish


class NotebookPanel:
    """A bar with loss, speed and time left; warnings; the best and the last validations; samples; folded lines.

    publish: see `notebook_output`.
    clock: seconds, from any beginning.
    """

    def __init__(self, publish: Publish, clock: Callable[[], float] = time.monotonic) -> None:
        self._publish, self._clock = publish, clock
        self._drawn = -PAUSE
        self._share, self._line, self._update = 0.0, "", 0
        self._warnings, self._told = list[str](), list[str]()
        self._validations = list[tuple[int, Mapping[str, float]]]()
        self._best: int | None = None
        self._samples: Sequence[tuple[str, str, str]] = ()

    def show(self, update: int, share: float, line: str, best: float | None) -> None:
        """After an update.

        Args:
            share: of the training that is done, 0 to 1.
            line: loss, speed and times.
            best: the update of the best validation so far.
        """
        self._update, self._share, self._line = update, share, line
        self._best = None if best is None else int(best)
        self._draw(self._clock() - self._drawn >= PAUSE)

    def tell(self, line: str) -> None:
        """One more line, which is folded away."""
        self._told.append(line)
        self._draw()

    def warn(self, line: str) -> None:
        """One more line that is seen, until there were several after it."""
        self._warnings = [*(each for each in self._warnings if each != line), line][-WARNINGS:]
        self._told.append(line)
        self._draw()

    def validated(self, metrics: Mapping[str, float]) -> None:
        """Figures by name, of the model after the last update that was shown."""
        self._validations.append((self._update, metrics))
        self._draw()

    def samples(self, rows: Sequence[tuple[str, str, str]]) -> None:
        """Sources, outputs and references, in the place of earlier ones."""
        self._samples = [tuple(text if len(text) <= LONGEST else f"{text[:LONGEST]}…" for text in row) for row in rows]  # type: ignore[misc]
        self._draw()

    def close(self) -> None:
        """The last state is on the screen."""
        self._draw()

    def _draw(self, due: bool = True) -> None:
        if not due:
            return
        self._drawn = self._clock()
        recent = self._validations[-RECENT:]
        best = [each for each in self._validations if each[0] == self._best]
        shown = [*(each for each in best[-1:] if each not in recent), *recent]
        self._publish(
            render(
                TEMPLATE,
                share=f"{self._share:.4f}",
                percent=f"{self._share:.0%}",
                line=self._line,
                warnings=self._warnings,
                names=list(dict.fromkeys(name for _, metrics in shown for name in metrics)),
                validations=[
                    {"after": f"{update:,}", "metrics": metrics, "best": update == self._best}
                    for update, metrics in shown
                ],
                samples=self._samples,
                told=self._told,
            )
        )
