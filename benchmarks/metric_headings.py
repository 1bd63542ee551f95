"""The heading of each metric on docs/results.md: its name, and the number under which its signature stands."""

from collections.abc import Iterable, Mapping
from typing import Any

Metric = tuple[str, str]


def metric_of(score: Mapping[str, Any]) -> Metric:
    """Name and signature: an accuracy and an error may share a signature, and two perplexities a name."""
    return score["name"], score["signature"]


def numbered(scores: Iterable[Mapping[str, Any]]) -> dict[Metric, str]:
    """`NAME (NUMBER)` for each metric, in the order of their names."""
    metrics = sorted({metric_of(score) for score in scores})
    return {metric: f"{metric[0]} ({number})" for number, metric in enumerate(metrics, start=1)}


def unnumbered(scores: Iterable[Mapping[str, Any]]) -> dict[Metric, str]:
    """The name alone of each metric, for tables without signatures below them."""
    return {metric_of(score): score["name"] for score in scores}
