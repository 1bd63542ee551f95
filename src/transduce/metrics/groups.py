"""Scores by group, such as one of several tasks, and their mean in which each group counts the same."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from transduce.metrics.tally import Tally

if TYPE_CHECKING:
    from numpy.typing import NDArray


def by_group(tally: Tally, groups: Sequence[str]) -> dict[str, Tally]:
    """The tally of each group, in the order of their first examples. groups: that of each example."""
    import numpy as np

    names = np.array(groups)
    return {name: _part(tally, tally.statistics_SN[names == name]) for name in dict.fromkeys(groups)}


def group_mean(tally: Tally, groups: Sequence[str]) -> Tally:
    """The mean of the figures of all groups. Examples of every group are resampled for its interval."""
    import numpy as np

    places = {name: place for place, name in enumerate(dict.fromkeys(groups))}
    counts = tally.statistics_SN.shape[1]
    statistics_SGN = np.zeros((len(groups), len(places), 1 + counts))
    rows = np.arange(len(groups)), [places[name] for name in groups]
    statistics_SGN[*rows, 0] = 1
    statistics_SGN[*rows, 1:] = tally.statistics_SN

    def aggregate(sums: "NDArray[Any]") -> float:
        sums_GN = sums.reshape(len(places), 1 + counts)
        return float(np.mean([tally.aggregate(each[1:]) for each in sums_GN if each[0]]))

    name, signature = f"{tally.name}, mean of {len(places)}", f"{tally.signature}|groups:{len(places)}|mean:groups"
    return Tally(name, signature, statistics_SGN.reshape(len(groups), -1), aggregate, tally.lower_is_better, tally.note)


def group_tables(found: Mapping[str, Tally], groups: Sequence[str]) -> dict[str, Any]:
    """For JSON: of each group its scores and how many examples it has; {} where nothing is in groups."""
    if not groups:
        return {}
    tables: dict[str, Any] = {name: {"examples": 0, "scores": {}} for name in dict.fromkeys(groups)}
    for group in groups:
        tables[group]["examples"] += 1
    for metric, tally in found.items():
        for group, each in by_group(tally, groups).items():
            tables[group]["scores"][metric] = each.score().to_dict()
    return tables


def with_means(found: Mapping[str, Tally], groups: Sequence[str]) -> dict[str, Tally]:
    """`found`, and behind it the mean over the groups of each, where there are at least two."""
    if len(set(groups)) < 2:
        return dict(found)
    return {**found, **{f"{name}_mean": group_mean(tally, groups) for name, tally in found.items()}}


def _part(tally: Tally, statistics_SN: "NDArray[Any]") -> Tally:
    return Tally(tally.name, tally.signature, statistics_SN, tally.aggregate, tally.lower_is_better, tally.note)
