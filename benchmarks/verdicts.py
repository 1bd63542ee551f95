"""Each recipe's score beside a published figure and a simple baseline, and whether it is above, at or below them."""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from intervals import over_examples, over_seeds
from markdown_table import markdown_table
from remarks import LOWER, OPTIMUM, baseline_scores

Record = Mapping[str, Any]
Score = Mapping[str, Any]
PUBLISHED = Path(__file__).with_name("published.toml")
HEAD = """
## In short

One score of each recipe, beside a published figure and a simple baseline that was trained on the same files. Of several
seeds it is the mean, with the standard deviation between them. The verdict is about the published figure of the same
test set, or else about the baseline: *at* means that it lies in the 95 % interval of the score. The interval is over
seeds where there are three or more, else over the examples. A perplexity of one seed has no interval; up
to 1 % of difference is *at*.

"""


def section(records: Sequence[Record]) -> str:
    """The table of all recipes."""
    figures = tomllib.loads(PUBLISHED.read_text(encoding="utf-8"))["figure"]
    rows = [_row(own, _published(own[0], figures), records) for own in _trainings(records)]
    return HEAD + markdown_table(["recipe", "score", "here", "baseline", "published", "verdict"], rows)


def _trainings(records: Iterable[Record]) -> list[list[Record]]:
    """The records of each recipe with the same change, by seed."""
    found: dict[tuple[str, str], list[Record]] = {}
    for each in sorted(records, key=lambda each: (each["recipe"], each["change"], each["seed"])):
        found.setdefault((each["recipe"], each["change"]), []).append(each)
    return list(found.values())


def _published(record: Record, figures: Iterable[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The figure of its recipe and change; one with a change before one without."""
    own = [each for each in figures if each["recipe"] == record["recipe"]]
    fit = [each for each in own if each.get("change", "") in record["change"]]
    return max(fit, key=lambda each: len(each.get("change", "")), default=None)


def _row(own: Sequence[Record], published: Mapping[str, Any] | None, records: Sequence[Record]) -> list[str]:
    scores = [_chosen(record, published) for record in own]
    change = f", `{own[0]['change']}`" if own[0]["change"] else ""
    baseline = _baseline(own, scores[0], records)
    value = published and published.get("value")
    held_to = value if published and published.get("same", True) and value else baseline and baseline[1]
    return [
        f"[{own[0]['recipe']}](#{own[0]['recipe']}){change}",
        f"{scores[0]['name']}, {scores[0]['test']}",
        _mean(scores),
        f"{_short(baseline[1])} ({baseline[0]})" if baseline else "none",
        _cited(published) if published and value else "none published",
        "" if held_to is None else verdict(scores, held_to),
    ]


def _cited(published: Mapping[str, Any]) -> str:
    scale = "" if published.get("same", True) else "for scale: "
    return f"{_short(published['value'])} ({scale}{published['source']})"


def _chosen(record: Record, published: Mapping[str, Any] | None) -> Score:
    """The score that the published figure is of, or the first one."""
    if published is None:
        return record["scores"][0]
    fit = [
        each
        for each in record["scores"]
        if each["name"] == published["metric"]
        and each["search"].startswith(published.get("search", ""))
        and published.get("signature", "") in each["signature"]
    ]
    return fit[0]


def _baseline(own: Sequence[Record], score: Score, records: Sequence[Record]) -> tuple[str, float] | None:
    """The name and the score of the baseline, by the same metric on the same test set.

    It is that of these trainings, or of another recipe with the same files.
    """
    recipe = own[0]["recipe"]
    wanted, found = (score["test"], score["name"]), baseline_scores(recipe, own) or baseline_scores(recipe, records)
    bounds = [(f"{OPTIMUM}, a bound", each) for each in own[0].get("baseline", {"scores": []})["scores"]]
    return next(
        ((name, each["value"]) for name, each in found or bounds if (each["test"], each["name"]) == wanted), None
    )


def _mean(scores: Sequence[Score]) -> str:
    values = [score["value"] for score in scores]
    if len(values) > 1:
        return f"{_short(fmean(values))} ± {stdev(values):.1f} ({len(values)} seeds)"
    return _short(values[0])


def verdict(scores: Sequence[Score], other: float) -> str:
    """Whether the scores are better than another figure ("above"), as good ("at"), or worse ("below")."""
    values = [score["value"] for score in scores]
    mean, (least, most) = fmean(values), _interval(scores, values)
    if least <= other <= most:
        return "at"
    return "above" if (mean < other) == (scores[0]["name"] in LOWER) else "below"


def _interval(scores: Sequence[Score], values: Sequence[float]) -> tuple[float, float]:
    """Over seeds where these are three or more, else the widest over the examples."""
    if len(values) >= 3:
        return over_seeds(values)
    least, most = zip(*map(over_examples, scores), strict=True)
    return min(least), max(most)


def _short(value: float) -> str:
    return f"{value:.1f}"
