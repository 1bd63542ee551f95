"""What the scores of a recipe do not show, said beside them on docs/results.md. The figures decide what is said."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from metric_headings import Metric, metric_of

Record = Mapping[str, Any]
Score = Mapping[str, Any]
BASELINE_OF = {  # recipes whose records hold no baseline -> the recipe that trained one on the same files
    "parsing": "parsing-chart",
    "parsing-rnn": "parsing-chart",
    "sst2-transformer": "sst2",
    "sst5-flat-transformer": "sst5",
    "sst5-tree-lstm": "sst5",
    "sst5-tree-transformer": "sst5",
}
OPTIMUM = "Bayes optimum"  # a bound, which no model can be above
ERROR_RATES = ("CER", "WER", "PER")
LOWER = (*ERROR_RATES, "error", "error, mean of 20", "perplexity", "wrong bits a sequence")  # is better


def remarks(recipe: str, records: Sequence[Record]) -> Iterable[str]:
    """Whether it has learnt nothing, or is not above its baseline; records: of all recipes."""
    found = [record["scores"] for record in records if record["recipe"] == recipe]
    yield from _nothing_learnt(score for scores in found for score in scores[:1])
    trained_by = BASELINE_OF.get(recipe, "")
    for name, score in baseline_scores(recipe, records):
        same = [each for scores in found for each in scores[:1] if _key(each) == _key(score)]
        yield from _beside_baseline(same, (name, score), trained_by)


def without_record(recipes: Iterable[str], records: Iterable[Record]) -> str:
    """A section that names the recipes of which no training is on record; "" if there are none."""
    missing = sorted({*recipes} - {record["recipe"] for record in records})
    if not missing:
        return ""
    named = ", ".join(f"`{recipe}`" for recipe in missing)
    told = f"No training of these is on record, so no score of theirs is claimed: {named}."
    return f"\n## Recipes without a record\n\n{told}\n"


def _nothing_learnt(scores: Iterable[Score]) -> Iterable[str]:
    for score in scores:
        if score["name"] in ERROR_RATES and score["value"] >= 100:
            yield (
                f"**This training has learnt nothing.** {score['name']} on {score['test']} is {score['value']:.0f}, "
                "which is the score of empty outputs. It says nothing about the method."
            )


def baseline_scores(recipe: str, records: Iterable[Record]) -> list[tuple[str, Score]]:
    """The name of the baseline trained on a recipe's files, with each of its scores: one a test set and metric."""
    found = {}
    for record in records:
        if record["recipe"] != BASELINE_OF.get(recipe, recipe) or "baseline" not in record:
            continue
        name = record["baseline"]["name"]
        found |= {_key(each): (name, each) for each in record["baseline"]["scores"] if name != OPTIMUM}
    return list(found.values())


def _key(score: Score) -> tuple[str, Metric]:
    return score["test"], metric_of(score)


def _beside_baseline(scores: Sequence[Score], baseline: tuple[str, Score], trained_by: str) -> Iterable[str]:
    """Whether the scores are worse than the baseline's, or cannot be told from it."""
    if not scores:
        return
    name, (system, other) = scores[0]["name"], baseline
    mean, value = fmean(score["value"] for score in scores), other["value"]
    reached = f"{name} is {mean:.2f}" + (f", the mean of {len(scores)} seeds" if len(scores) > 1 else "")
    whose = f"the baseline of [{trained_by}](#{trained_by}) ({system})" if trained_by else f"the {system}"
    if (mean > value) if name in LOWER else (mean < value):
        yield f"**Worse than its baseline:** {reached}; {whose}, trained on the same files, has {value:.2f}."
    elif all(score["interval"][0] <= value <= score["interval"][1] for score in scores):
        yield f"**Not distinguishable from its baseline:** {reached}; {whose} has {value:.2f}, inside the interval."
