"""In a notebook a training is one output, rewritten in place."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from transduce.training import display as display_module
from transduce.training.display import Display, NotebookPanel
from transduce.training.progress import Progress


def drawn() -> tuple[NotebookPanel, list[str], list[float]]:
    shown, now = list[str](), [0.0]
    return NotebookPanel(shown.append, lambda: now[0]), shown, now


def test_updates_are_drawn_now_and_then_and_everything_else_at_once() -> None:
    panel, shown, now = drawn()
    panel.show(1, 0.1, "update 1 of 10: loss 2.5", None)
    panel.show(2, 0.2, "update 2 of 10: loss 2.4", None)
    assert len(shown) == 1
    assert "update 1 of 10: loss 2.5" in shown[-1]
    now[0] = 0.5
    panel.show(3, 0.3, "update 3 of 10: loss 2.3", None)
    assert "update 3 of 10" in shown[-1]
    assert "30%" in shown[-1]
    panel.show(4, 0.4, "update 4 of 10: loss 2.2", None)
    panel.tell("42 pairs")
    assert "update 4 of 10" in shown[-1]
    assert "1 line of the log, the last: 42 pairs" in shown[-1]
    panel.show(5, 0.5, "update 5 of 10: loss 2.1", None)
    panel.close()
    assert "update 5 of 10" in shown[-1]


def test_the_best_validation_stays_beside_the_last_ones() -> None:
    panel, shown, _ = drawn()
    for update in range(1, 11):
        panel.show(update, 0.1 * update, "", min(update, 2))
        panel.validated({"loss": 3 - 0.1 * update, "bleu": 40.0 + update})
    rows = [part.split("</td>")[0].split(">")[-1] for part in shown[-1].split("<tr")[2:]]
    assert rows == ["2", "6", "7", "8", "9", "10"]
    assert shown[-1].count(">best<") == 1
    assert "42.000" in shown[-1]


def test_texts_are_escaped_and_warnings_do_not_pile_up() -> None:
    panel, shown, _ = drawn()
    for number in (1, 1, 2, 3, 4):
        panel.warn(f"Alarm {number} <script>")
    panel.samples([("<b>", "x" * 300, "ref")])
    assert "<script>" not in shown[-1] and "<b>" not in shown[-1]
    seen = [line for line in shown[-1].splitlines() if "font-weight:bold" in line]
    assert [line.split("Alarm ")[1][0] for line in seen] == ["2", "3", "4"]
    assert "x" * 201 not in shown[-1]


def test_a_display_writes_into_the_cell_and_nowhere_else(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown = list[str]()
    monkeypatch.setattr(display_module, "notebook_output", lambda: shown.append)
    console = Console(file=StringIO(), force_jupyter=True)
    display = Display(console)
    display.warn("careful")
    with display.open(10, Progress()):
        display.show(Progress(update=1, seconds=1.0, best={"update": 1.0}), 2.5, 0.1, 100.0)
        display.validated({"loss": 2.4})
        display.samples([("a", "b", "c")])
        display.where()
        display.tell("one line")
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]
    for each in ("careful", "update 1 of 10: loss 2.500, 100 tokens/s", "2.400", ">best<", "one line"):
        assert each in shown[-1]


def test_a_quiet_display_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(display_module, "notebook_output", lambda: pytest.fail("it drew"))
    Display(Console(quiet=True, force_jupyter=True)).tell("a line")
