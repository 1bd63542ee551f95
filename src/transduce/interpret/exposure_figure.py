"""Exposure bias as a figure: error rates of outputs and of teacher forcing, over training and by position."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from transduce.core.errors import InputError
from transduce.interpret.colours import HEADS
from transduce.interpret.drawing import Points, few_ticks, in_style, marker, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FREE, FORCED = HEADS[0], HEADS[1]


@in_style
def exposure_figure(records: Sequence[Mapping[str, Any]], by_position: Mapping[str, Sequence[float]]) -> "Figure":
    """Two panels: validation over the updates, and the positions of a test set's references.

    Args:
        records: the lines of log.jsonl; those of validations that measured exposure bias are drawn.
        by_position: what `transduce.metrics.exposure.Exposure.by_position` gave.

    Raises:
        InputError: nothing to draw; no matplotlib.
    """
    measured = {each["update"]: each for each in records if "exposure_bias" in each}
    forced = [(update, each["teacher_forced"]) for update, each in sorted(measured.items())]
    free = [(update, each["teacher_forced"] + each["exposure_bias"]) for update, each in sorted(measured.items())]
    places = range(1, len(by_position.get("references", ())) + 1)
    if not measured and not places:
        raise InputError("exposure bias: nobody measured it.")
    figure = new_figure(8.4, 3.0)
    over_updates, over_positions = figure.subplots(1, 2)
    _panel(over_updates, "Validation", "update", free, forced)
    _panel(
        over_positions,
        "Test, by position",
        "position in the reference, in tokens",
        list(zip(places, by_position.get("free_running", ()), strict=True)),
        list(zip(places, by_position.get("teacher_forced", ()), strict=True)),
    )
    over_updates.set_ylabel("errors, % of tokens")
    return figure


def _panel(axes: "Axes", title: str, along: str, free: Points, forced: Points) -> None:
    for label, colour, points in (("outputs", FREE, free), ("teacher-forced", FORCED, forced)):
        if points:
            axes.plot(*zip(*points, strict=True), color=colour, label=label, marker=marker(points))
    axes.set_title(title)
    axes.set_xlabel(along)
    axes.set_ylim(bottom=0)
    few_ticks(axes, integer=True)
    if free:
        axes.legend()
