"""What benchmarks/languages.py has measured, as tables and sentences; docs/make_results.py uses them too."""

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from markdown_table import markdown_table
from metric_headings import Metric, metric_of

RECIPES = Path(__file__).parents[1] / "recipes"
HEAD = """
## Languages

Each table is one run of `python benchmarks/languages.py recipes/NAME.toml`: the recipe is trained on the files of each
language and with each seed. An ensemble is of all seeds of a language.
"""
Record = dict[str, Any]


def section(record: Record, headings: dict[Metric, str]) -> str:
    """Of docs/results.md; headings: what each metric is called there."""
    shown = [_shown(score, headings[metric_of(score)]) for score in deciding(record)]
    parts = [f"\n### {record['recipe']}", *shown, published(RECIPES / f"{record['recipe']}.toml"), _how(record)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _shown(score: Record, metric: str) -> str:
    searched = f" ({score['search']})" if score["search"] else ""
    return f"On the test set {score['test']}{searched}, {metric}:\n\n{table(score)}\n{error_rates(score)}".rstrip()


def deciding(record: Record) -> list[Record]:
    """The scores by the recipe's first metric, one a test set."""
    return [score for score in record["scores"] if score["metric"] == record["scores"][0]["metric"]]


def table(score: Record) -> str:
    """A line for each language, and the means over them."""
    found = score["languages"]
    seeds = list(next(iter(found.values()))["seeds"])
    head = ["language", *(f"seed {seed}" for seed in seeds), "mean of single models", f"ensemble of {len(seeds)}"]
    rows = {name: [*each["seeds"].values(), *_both(each)] for name, each in found.items()}
    rows["mean"] = [fmean(column) for column in zip(*rows.values(), strict=True)]
    return markdown_table(head, [[name, *(f"{value:.2f}" for value in row)] for name, row in rows.items()])


def error_rates(score: Record) -> str:
    """For exact match, what is published of pronunciations as their word error rate; "" for other metrics."""
    if score["metric"] != "exact_match":
        return ""
    rates = {name: [100 - value for value in _both(each)] for name, each in score["languages"].items()}
    rates["mean"] = [fmean(column) for column in zip(*rates.values(), strict=True)]
    told = "; ".join(f"{name} {single:.2f}, {ensemble:.2f}" for name, (single, ensemble) in rates.items())
    return f"Word error rate (100 - exact match), mean of single models and then ensemble: {told}.\n"


def published(recipe: Path) -> str:
    """What its comment says was published; "" where it says nothing."""
    lines = [line[1:].strip() for line in recipe.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    begins = next((number for number, line in enumerate(lines) if line.startswith("Published")), len(lines))
    ends = next((number for number in range(begins, len(lines)) if not lines[number]), len(lines))
    return "\n".join(lines[begins:ends])


def _both(found: Record) -> Sequence[float]:
    return fmean(found["seeds"].values()), found["ensemble"]["value"]


def _how(record: Record) -> str:
    machine, versions, trainings = record["machine"], record["versions"], record["trainings"]
    every = [each for one in trainings.values() for each in one.values()]
    sizes, updates = ({f"{each[key]:,}" for each in every} for key in ("parameters", "updates"))
    changed = f"Changed: `{record['change']}`. " if record["change"] else ""
    minutes = sum(each["seconds"] for each in every) / 60
    return (
        f"{changed}{_range(sizes)} parameters, {_range(updates)} updates, {len(record['seeds'])} seeds; "
        f"{minutes:.0f} minutes of training in all. {machine['processor']}, {machine['kernels']} kernels, "
        f"{record['precision']}, {machine['threads']} thread{'s' * (machine['threads'] > 1)}, Python "
        f"{versions['python']}, torch {versions['torch']}, {record['finished']}, commit `{record['commit']}`."
    )


def _range(numbers: set[str]) -> str:
    ordered = sorted(numbers, key=lambda each: int(each.replace(",", "")))
    return ordered[0] if len(ordered) == 1 else f"{ordered[0]} to {ordered[-1]}"
