"""A search that is one call of a kernel, with what is checked before and behind it. Nothing here needs torch."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from transduce.core.errors import TransduceError
from transduce.layers.fused_search import BeamRequest, Found
from transduce.search.hypothesis import Hypothesis, hypothesis, rank
from transduce.search.length import LengthRule

ROUNDING = 1e-3  # a log-probability may be this much above 0

Call = Callable[[BeamRequest], tuple[list[list[Found]], float]]  # `layers.fused_search.FusedSearch.search`


def hypotheses_of(call: Call, request: BeamRequest, length: LengthRule) -> list[list[Hypothesis]]:
    """The `nbest` best that the call finds for each sentence, best first.

    Raises:
        TransduceError: the model returned an invalid log-probability.
    """
    listed, impossible = call(request)
    check_log_probability(impossible)
    if request.stopping == "slots":
        return [rank((_made(each, request.end, length) for each in found), request.nbest) for found in listed]
    return [  # as they were set aside, and by the scores that they had then
        [replace(_made(each, request.end, length), score=each[2]) for each in found[: request.nbest]]
        for found in listed
    ]


def _made(found: Found, end: int, length: LengthRule) -> Hypothesis:
    tokens, values, _ = found
    return hypothesis(tokens, values, tokens[-1] == end, length)


def check_log_probability(maximum: float) -> None:
    """Raises TransduceError if the greatest log-probability of a row is invalid."""
    if not maximum <= ROUNDING:
        raise TransduceError(
            f"search: the model gave a log-probability of {maximum:g}; it should be at most 0. "
            "NaN and inf come from diverged weights or overflow; others from logits without log_softmax."
        )


def refuse_impossible(lines: Sequence[int], found: Sequence[Sequence[Hypothesis]]) -> None:
    """Raises TransduceError if a row has no output, or none that is possible.

    lines: the line number of each row.
    """
    lost = [
        line
        for line, hypotheses in zip(lines, found, strict=True)
        if not hypotheses or hypotheses[0].log_probability == float("-inf")
    ]
    if lost:
        raise TransduceError(
            f"search: the model gives probability 0 to every output of {len(lost)} of {len(lines)} rows, "
            f"the first at line {lost[0]}: check its prefix, its phrases and the forbidden tokens."
        )
