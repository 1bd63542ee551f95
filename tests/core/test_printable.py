"""Nothing from a file steers the terminal: not in messages, not in tables, not in JSON."""

import io
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from rich.live import Live
from rich.table import Table
from rich.text import Text

from transduce.cli.info import info
from transduce.cli.process import run
from transduce.cli.text import json_line, tell, tell_red
from transduce.core.errors import InputError
from transduce.core.model_file import ModelFile, save_model_file
from transduce.core.printable import printable, printable_json, printable_line
from transduce.runtime.console import make_console
from transduce.training.display import Display

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
SPELT = r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
STEERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]")


def test_controls_are_spelt_out_and_writing_stays() -> None:
    assert printable(ESCAPE) == SPELT
    writing = "Übung\t练习 می‌خواهم שלום 👩‍👩‍👧\n"
    assert printable(writing) == writing
    assert printable("\udcff") == r"\udcff"
    assert printable_line("a\nb") == r"a\nb"


def test_json_means_the_same() -> None:
    text = printable_json(json.dumps({ESCAPE: ESCAPE}, ensure_ascii=False))
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", text)
    assert json.loads(text) == json.loads(json_line({ESCAPE: ESCAPE})) == {ESCAPE: ESCAPE}


def test_a_console_shows_texts_and_tables_with_it_spelt_out() -> None:
    shown = io.StringIO()
    console = make_console(file=shown, width=400)
    table = Table(f"head {ESCAPE}")
    table.add_row(Text(f"cell {ESCAPE}"))
    console.print(f"string {ESCAPE} [/nothing] [red]")
    console.print(Text(f"text {ESCAPE}"), table)
    Display(console).warn(f"line {ESCAPE}")
    assert not STEERS.search(shown.getvalue())
    spelt = SPELT.replace(r"\x07", "")  # which rich leaves out
    for word in ("head", "cell", "string", "text", "line"):
        assert f"{word} {spelt}" in shown.getvalue()
    assert "[/nothing] [red]" in shown.getvalue()


def test_what_rich_itself_says_to_a_terminal_stays() -> None:
    shown = io.StringIO()
    console = make_console(file=shown, width=80, force_terminal=True, color_system="standard")
    with Live(Text("moving"), console=console, auto_refresh=False) as live:
        console.print(Text("red", style="red"))
        live.refresh()
    assert "\x1b[31mred\x1b[0m" in shown.getvalue()
    assert "\x1b[?25l" in shown.getvalue()


def test_errors_and_lines_on_standard_error_show_it_spelt_out(capsys: pytest.CaptureFixture[str]) -> None:
    def refused() -> None:
        raise InputError(f"file {ESCAPE}: no.")

    with pytest.raises(SystemExit):
        run("transduce", refused)
    tell(f"line {ESCAPE}")
    tell_red(f"red {ESCAPE}")
    said = capsys.readouterr().err
    assert said == f"transduce: file {SPELT}: no.\nline {SPELT}\nred {SPELT}\n"


def test_info_of_a_strangers_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = {"name": ESCAPE, "task": {ESCAPE: ESCAPE}, "model": {"kind": f"x{ESCAPE}:y"}}
    file = ModelFile({f"w{ESCAPE}": torch.zeros(2)}, config, {f"joint{ESCAPE}": ESCAPE}, {ESCAPE: 1}, {ESCAPE: 0.5})
    columns = {"target": {"kind": ESCAPE}}
    save_model_file(tmp_path / "m", replace(file, columns=columns))
    for as_json in (False, True):
        info(tmp_path / "m", tensors=True, as_json=as_json)
        shown = capsys.readouterr().out
        assert "owned" in shown
        assert not STEERS.search(shown.replace("\n", ""))


def test_every_console_is_made_in_one_place() -> None:
    """One that is made elsewhere would show whatever a file holds."""
    source = Path(sys.modules["transduce"].__file__ or "").parent
    made = [path for path in source.rglob("*.py") if re.search(r"(?<![\w.])Console\(", path.read_text("utf-8"))]
    assert [path.relative_to(source).as_posix() for path in made] == ["runtime/console.py"]
