"""What benchmarks/no_recipe.py has measured, as tables; docs/make_results.py uses them too."""

from collections.abc import Sequence
from typing import Any

from markdown_table import markdown_table
from metric_headings import Metric, metric_of

HEAD = """
## Without a recipe

`python benchmarks/no_recipe.py`: three systems learn from the same files and translate the same test. *No recipe* is
`transduce train --source .. --time T` ([how it decides](planning.md)), *the recipe* that of the repository, and
Seq2SeqTrainer that of Hugging Face with its defaults, for a Marian from scratch. T is given in minutes, to training and
tests; Seq2SeqTrainer trains for T alone. Differences have the 95 % interval of a paired bootstrap.
"""
Record = dict[str, Any]
NAMES = {"plan": "no recipe", "recipe": "the recipe", "trainer": "Seq2SeqTrainer"}


def section(records: Sequence[Record], headings: dict[Metric, str]) -> str:
    """Of docs/results.md; headings: what each metric is called there."""
    shown = [
        f"{name}: {line}"
        for name, line in (("Without a recipe", how(records)), ("Seq2SeqTrainer", _trainer(records)))
        if line
    ]
    return "\n\n".join(["", scores_table(records, headings).rstrip(), times_table(records).rstrip(), *shown]) + "\n"


def scores_table(records: Sequence[Record], headings: dict[Metric, str]) -> str:
    """By each data set's first metric: the score of each, and what `no recipe` has more, with its interval."""
    head = [
        "data set of",
        "metric",
        *NAMES.values(),
        *(f"no recipe less {NAMES[who]}" for who in ("recipe", "trainer")),
    ]
    rows = []
    for record in records:
        score = record["scores"][0]
        found, more = score["systems"], score["differences"]
        figures = [f"{found[who]['value']:.2f}" if who in found else "" for who in NAMES]
        differences = [_difference(more[who]) if who in more else "" for who in ("recipe", "trainer")]
        rows.append([_name(record), headings[metric_of(score)], *figures, *differences])
    return markdown_table(head, rows)


def times_table(records: Sequence[Record]) -> str:
    """Minutes that were given, promised and taken."""
    head = ["data set of", "given", "promised", "taken", "taken / promised", "the recipe", "Seq2SeqTrainer"]
    rows = []
    for record in records:
        systems = record["systems"]
        plan = systems.get("plan")
        told = ["", "", ""]
        if plan:
            ratio = f"{plan['minutes'] / plan['promised_minutes']:.2f}"
            told = [f"{plan['promised_minutes']:.1f}", f"{plan['minutes']:.1f}", ratio]
        others = [f"{systems[who]['minutes']:.1f}" if who in systems else "" for who in ("recipe", "trainer")]
        rows.append([_name(record), f"{record['minutes']:.1f}", *told, *others])
    return markdown_table(head, rows)


def _name(record: Record) -> str:
    """The recipe and what is changed of it; other files have a name of their own."""
    changed = [each for each in record.get("changed", []) if not each.startswith("data.")]
    return " ".join(f"`{each}`" for each in (record["recipe"], *changed))


def _difference(found: Record) -> str:
    interval = " [{:+.2f}, {:+.2f}]".format(*found["interval"]) if found["interval"] else ""
    return f"{found['value']:+.2f}{interval}"


def how(records: Sequence[Record]) -> str:
    """On what machines, when, and by which versions and commits."""
    return "; ".join(dict.fromkeys(map(_how, records))) + "."


def _how(record: Record) -> str:
    machine, versions = record["machine"], record["versions"]
    return (
        f"{machine['processor']}, {machine['kernels']} kernels, {record['threads']} "
        f"thread{'s' * (record['threads'] > 1)}, Python {versions['python']}, torch {versions['torch']}, "
        f"{record.get('finished') or record['date']}, commit `{record['commit']}`"
    )


def _trainer(records: Sequence[Record]) -> str:
    every = [record["systems"]["trainer"] for record in records if "trainer" in record["systems"]]
    if not every:
        return ""
    sizes = sorted(each["parameters"] for each in every)
    versions = ", ".join(f"{name} {number}" for name, number in every[0]["versions"].items())
    return f"{sizes[0]:,} to {sizes[-1]:,} parameters; {versions}."
