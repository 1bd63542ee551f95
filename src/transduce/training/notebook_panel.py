"""What a notebook's cell shows of a training: one output that is rewritten in place."""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from transduce.core.templates import render

TEMPLATE = Path(__file__).with_name("notebook_panel.html.jinja")
PAUSE = 0.5  # seconds between two drawings of what changes with each update
RECENT = 5  # validations that are shown besides the best
WARNINGS = 3  # the last different ones; the others are among the folded lines
LONGEST = 200  # characters of a sample

Publish = Callable[[str], None]  # given the whole output as HTML, each time


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
        self._samples = [tuple(_short(text) for text in row) for row in rows]  # type: ignore[misc]
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


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
