"""What benchmarks/decisions.py has measured, as tables; docs/make_results.py uses them too."""

from collections.abc import Sequence
from typing import Any

from markdown_table import markdown_table
from metric_headings import Metric, metric_of
from no_recipe_tables import how

HEAD = """
## Decisions without a recipe

`python benchmarks/decisions.py`: `transduce train --source ..` decides everything from the data ([how](planning.md)),
and one decision at a time is replaced by another. Scores are those of the validation, by which the weights are chosen
too; the tests are not used. `seed-2` shows what another seed alone changes. All variants of a data set make the same
number of updates, but those of the batch see the same number of tokens.
"""
Record = dict[str, Any]
USUAL = "as-decided"


def section(records: Sequence[Record], headings: dict[Metric, str]) -> str:
    """Of docs/results.md; headings: what each metric is called there."""
    parts = ["", scores_table(records, headings).rstrip()]
    if timed := [record for record in records if not record["busy"]]:
        parts += ["Minutes, where no other work ran beside:", promises_table(timed).rstrip()]
    return "\n\n".join([*parts, how(records)]) + "\n"


def scores_table(records: Sequence[Record], headings: dict[Metric, str]) -> str:
    """A line for each variant; of each data set the metric that chooses its weights, and the loss."""
    variants = list(dict.fromkeys(name for record in records for name in record["trainings"]))
    head = ["", *(f"`{record['recipe']}`: {headings[_metric(record, key)]}" for record, key in _columns(records))]
    rows = []
    for name in variants:
        found = [(record["trainings"].get(name), key) for record, key in _columns(records)]
        rows.append([_called(name), *("" if each is None else _figure(each, key) for each, key in found)])
    return markdown_table(head, rows)


def promises_table(records: Sequence[Record]) -> str:
    """What was promised and taken."""
    rows = []
    for record in records:
        for name, each in record["trainings"].items():
            promised, took = each["promised_seconds"] / 60, each["took_seconds"] / 60
            row = [f"`{record['recipe']}`", _called(name), f"{each['updates']:,}", f"{each['parameters']:,}"]
            rows.append([*row, f"{promised:.1f}", f"{took:.1f}", f"{took / promised:.2f}"])
    head = ["data set of", "training", "updates", "parameters", "promised", "taken", "taken / promised"]
    return markdown_table(head, rows)


def _called(name: str) -> str:
    return name.replace("-", " ") if name == USUAL else f"`{name}`"


def _columns(records: Sequence[Record]) -> list[tuple[Record, str]]:
    return [(record, key) for record in records for key in (record["metric"], "loss")]


def _metric(record: Record, key: str) -> Metric:
    return next(metric_of(score) for score in record["scores"] if score["metric"] == key)


def _figure(training: Record, key: str) -> str:
    return f"{training['validation'][key]:.{3 if key == 'loss' else 1}f}"
