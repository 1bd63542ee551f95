"""A plan for people: a table in the terminal, or a recipe whose every key has its reason above it."""

import json
import re
import textwrap
from itertools import groupby
from typing import Any

from rich.table import Table
from rich.text import Text

from transduce.planning.plan import TrainingPlan

BARE = re.compile(r"[A-Za-z0-9_-]+")
HEAD = "Written by `transduce new`. Each key has its reason above it; change what you know better."


def decisions_table(plan: TrainingPlan) -> Table:
    """Key, value, why."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("key", "value", "why"):
        table.add_column(column)
    for key, value, reason in plan.decisions:
        table.add_row(Text(key), Text(value_in_toml(value)), Text(reason))
    return table


def recipe_text(plan: TrainingPlan) -> str:
    lines = [f"# {HEAD}"]
    ordered = sorted(plan.decisions, key=lambda each: list(plan.table).index(each.key.partition(".")[0]))
    for section, decisions in groupby(ordered, key=lambda each: each.key.partition(".")[0]):
        lines += ["", f"[{section}]"]
        for reason, alike in groupby(decisions, key=lambda each: each.reason):
            lines += textwrap.wrap(
                reason[:1].upper() + reason[1:] + ".", 110, initial_indent="# ", subsequent_indent="# "
            )
            lines += [f"{_key(each.key.partition('.')[2])} = {value_in_toml(each.value)}" for each in alike]
    return "\n".join(lines) + "\n"


def value_in_toml(value: Any) -> str:
    """On one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(key)} = {value_in_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(value_in_toml, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)


def _key(key: str) -> str:
    return ".".join(part if BARE.fullmatch(part) else value_in_toml(part) for part in key.split("."))
