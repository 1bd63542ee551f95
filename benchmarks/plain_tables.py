"""What benchmarks/plain_transformer.py has compared, as a table; docs/make_results.py uses it too."""

from collections.abc import Sequence
from typing import Any

from markdown_table import markdown_table
from metric_headings import Metric, metric_of

HEAD = """
## Beside a plain Transformer

`python benchmarks/plain_transformer.py`: torch.nn.Transformer, 4 + 4 layers of width 128, trained for 20 epochs on the
files of the recipe, translates greedily. *p* and the intervals are of a paired bootstrap over the sentences.
"""
Record = dict[str, Any]


def section(records: Sequence[Record], headings: dict[Metric, str]) -> str:
    """Of docs/results.md; headings: what each metric is called there."""
    lines = [f"`{record['settings']['recipe']}`: {in_words(record)}" for record in records]
    return "\n\n".join(["", table(records, headings).rstrip(), *lines]) + "\n"


def table(records: Sequence[Record], headings: dict[Metric, str]) -> str:
    """A line for each test and metric."""
    head = ["recipe", "test set", "metric", "the recipe", "plain Transformer", "the recipe less the plain one", "p"]
    rows = []
    for record in records:
        for score in record["scores"]:
            ours, plain, difference = score["model"], score["plain"], score["difference"]
            interval = " [{:+.2f}, {:+.2f}]".format(*difference["interval"]) if difference["interval"] else ""
            rows.append(
                [
                    f"`{record['settings']['recipe']}`",
                    score["test"],
                    headings[metric_of(score)],
                    f"{ours['value']:.2f}",
                    f"{plain['value']:.2f}",
                    f"{difference['value']:+.2f}{interval}",
                    "" if difference["p_value"] is None else f"{difference['p_value']:.3f}",
                ]
            )
    return markdown_table(head, rows)


def in_words(record: Record) -> str:
    """Sizes, time, machine and versions of the plain one."""
    settings, machine, versions = record["settings"], record["machine"], record["versions"]
    threads = f"{machine['threads']} thread{'s' * (machine['threads'] > 1)}"
    return (
        f"{record['parameters']:,} parameters, tokens: {' and '.join(settings['units'])}, seed {settings['seed']}, "
        f"{settings['epochs']} epochs of {record['pairs']:,} pairs, {record['updates']:,} updates, "
        f"{record['training_minutes']:.1f} minutes, and {record['search_minutes']:.1f} for the tests. "
        f"{machine['processor']}, {threads}, Python {versions['python']}, torch {versions['torch']}, "
        f"{record['finished']}, commit `{record['commit']}`."
    )
