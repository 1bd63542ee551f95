"""Scores with their intervals as cells, and those of groups as a table in a terminal."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table
from rich.text import Text

from transduce.metrics.score import decimals

Report = Mapping[str, Any]


def groups_table(groups: Report, title: str) -> Table:
    """A line a group, as `transduce.metrics.groups.group_tables` has them: each metric with its interval."""
    names = [each["name"] for each in next(iter(groups.values()))["scores"].values()]
    table = Table(
        title=Text(title), title_justify="left", title_style="", box=None, header_style="bold", pad_edge=False
    )
    table.add_column("")
    for name in names:
        table.add_column(Text(name), justify="right")
        table.add_column("95 % interval", justify="right")
    table.add_column("examples", justify="right")
    for group, found in groups.items():
        cells = [cell for each in found["scores"].values() for cell in value_and_interval(each)]
        table.add_row(Text(group), *map(Text, cells), f"{found['examples']:,}")
    return table


def value_and_interval(figure: Report, sign: str = "") -> tuple[str, str]:
    """With as many digits as its metric has; the interval is "" where there is none."""
    form = f"{{:{sign}.{decimals(figure['signature'])}f}}"
    interval = "" if figure["interval"] is None else f"[{form}, {form}]".format(*figure["interval"])
    return form.format(figure["value"]), interval


def with_interval(figure: Report, sign: str = "") -> str:
    """`41.30 [40.10, 42.60]`."""
    return " ".join(value_and_interval(figure, sign)).rstrip()
