"""How far the trainings of a comparison are from those of a recipe that is scored on the same test set."""

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import Any, NamedTuple

from transduce.compare.config import parse_budget

SHORT = 0.5  # of the recipe's target tokens
CLOSE = 0.9  # of its score


class Scale(NamedTuple):
    """A recipe's score. tokens: that its training predicted. share: of its tokens, that one training here had.
    reached: the best variant's score as a part of it, or where less is better, it as a part of the variant's.
    """

    recipe: str
    value: float
    tokens: int
    share: float
    reached: float

    @property
    def undertrained(self) -> bool:
        """Whether every variant might still change its place: trained for less, and far from the recipe's score."""
        return self.share < SHORT and self.reached < CLOSE


def scale_of(score: Mapping[str, Any], budget: str, records: Iterable[Mapping[str, Any]]) -> Scale | None:
    """The best score that a recipe has by the same metric on the same test set; None where none has any.

    Args:
        score: of a comparison, with the seeds of each variant.
        budget: as its recipe says it, such as 200ktok.
    """
    spent = parse_budget(budget)
    if spent.unit != "tokens":
        return None
    sign = -1 if score["lower_is_better"] else 1
    found = [
        (sign * each["value"], record)
        for record in records
        for each in record["scores"]
        if (each["test"], each["name"], _unit(each)) == (score["test"], score["name"], _unit(score))
    ]
    means = [fmean(each["seeds"].values()) for each in score["variants"].values() if each["seeds"]]
    if not found or not means:
        return None
    value, record = max(found, key=lambda each: each[0])
    value, best = sign * value, min(means) if score["lower_is_better"] else max(means)
    if value <= 0 or best <= 0:
        return None
    tokens = record["target_tokens"]
    reached = value / best if score["lower_is_better"] else best / value
    return Scale(record["recipe"], value, tokens, spent.amount / tokens, reached)


def told(scale: Scale, digits: int, lower_is_better: bool) -> str:
    """In words."""
    times, share = 1 / scale.reached, 100 * scale.share
    reached = f"{times:.1f} times" if lower_is_better else f"{100 * scale.reached:.0f} % of"
    return (
        f"For scale: `{scale.recipe}` has {scale.value:.{digits}f} after {scale.tokens / 1e6:.1f} million tokens. A "
        f"training here sees {share:.{0 if share >= 10 else 1}f} % of these tokens, and the best variant has {reached} "
        "that value."
    )


def _unit(score: Mapping[str, Any]) -> str:
    """Of a likelihood what is counted; of any other metric the whole signature."""
    parts = score["signature"].split("|")
    return next((part for part in parts if part.startswith("unit:")), "") if "base:e" in parts else score["signature"]
