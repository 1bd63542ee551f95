"""Show the tables of a comparison on the terminal."""

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from transduce.compare.axis_tables import axis_tables
from transduce.compare.tables import Table, growth_table, main_table, verdicts
from transduce.runtime.console import make_console

WIDE = 200  # columns that a table may take where nobody's terminal says otherwise


def show(results: dict[str, Any], console: Console) -> None:
    """What decides: quality and cost, verdicts, growth; the page has the rest."""
    wide = console if console.is_terminal else make_console(file=console.file, width=WIDE)
    others = () if "points" in results else (main_table(results), *verdicts(results), growth_table(results))
    for table in (*axis_tables(results), *others):
        wide.print(Text(table.title, style="bold"))
        if table.headers:
            wide.print(_grid(table))
        else:
            for row in table.rows:
                wide.print(Text("  " + row[0]), soft_wrap=True)
        for note in table.notes:
            wide.print(Text(note, style="dim"), soft_wrap=True)
        wide.print()


def _grid(table: Table) -> Grid:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, header in enumerate(table.headers):
        grid.add_column(Text(header), justify="right" if number else "left")
    for row in table.rows:
        grid.add_row(*map(Text, row))
    return grid
