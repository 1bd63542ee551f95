"""Outputs looked at once more: what has to stand in them and does not, and loops, are searched for again.

A number, an address or a placeholder of the source must stand in its output, and so must the terms of a glossary. Where
one does not, a second search has to put it there. Where an output repeats itself, a second search keeps more
hypotheses, of which the best one is taken that does not. What is still wrong then is told (`Prediction.missing`,
`Prediction.repeated`). Nothing here imports torch.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from transduce.inference.prediction import Prediction
from transduce.inference.preparation import Prepared
from transduce.inference.repetition import looped
from transduce.inference.splitting import Pieces

WIDER = 8  # hypotheses at least, that a second search for an output without a loop keeps


@dataclass(frozen=True)
class Wanted:
    """What a second search of a piece has to do.

    place: of the piece. must: texts that its output has to hold.
    """

    place: int
    must: tuple[str, ...] = ()


SearchAgain = Callable[[Pieces, Sequence[Wanted]], list[Prediction | None]]
"""The outputs of a second search, as the model writes them; None where what is wanted cannot be."""
SearchWider = Callable[[Pieces, Sequence[int]], list[Prediction]]
"""The outputs of the pieces at some places with all hypotheses that a wider beam keeps as their alternatives."""


def wider(method: str, beam: int) -> dict[str, Any] | None:
    """Keys of a search that keeps and lists more hypotheses; None where its method keeps none."""
    if method not in ("greedy", "beam"):
        return None
    most = max(WIDER, 2 * beam if method == "beam" else 1)
    return {"method": "beam", "beam": most, "nbest": most, "prune": None}


def looked_after(
    pieces: Pieces, found: Sequence[Prediction], again: SearchAgain | None, widely: SearchWider | None
) -> list[Prediction]:
    """The prediction of each piece, for people, with what is missing or repeated.

    Args:
        found: as the model wrote them.
        again: searches for what is missing; None = that cannot be had.
        widely: searches for outputs without loops; None = that cannot be had.
    """
    if not pieces.prepared:
        return list(found)
    own = zip(found, pieces.given, pieces.prepared, strict=True)
    best = [_told(one, source, prepared) for one, source, prepared in own]
    loops = [place for place, one in enumerate(best) if one.repeated]
    for place, other in zip(loops, widely(pieces, loops) if loops and widely else (), strict=False):
        _replace(best, place, _without_loop(other), pieces)
    lacks = [place for place, one in enumerate(best) if one.missing and not pieces.prepared[place].only_told]
    wanted = [Wanted(place, tuple(pieces.prepared[place].must(best[place].missing))) for place in lacks]
    for place, once_more in zip(lacks, again(pieces, wanted) if wanted and again else (), strict=False):
        _replace(best, place, once_more, pieces)
    return best


def _replace(best: list[Prediction], place: int, other: Prediction | None, pieces: Pieces) -> None:
    """Put an output of a second search in the place of the first one, if less is wrong with it."""
    first = best[place]
    told = None if other is None else _told(other, first.source, pieces.prepared[place])
    if told is None or (told.repeated and not first.repeated) or (first.ended and not told.ended):
        return
    if first.text.strip() and not told.text.strip():  # no loop, but nothing else either
        return
    if _faults(told) < _faults(first):
        forced = tuple(part for part in first.missing if part not in told.missing)
        best[place] = replace(told, alternatives=first.alternatives, forced=forced)


def _without_loop(found: Prediction) -> Prediction:
    """The best hypothesis that came to its end and does not repeat itself, or the best one."""
    listed = found.alternatives or (found,)
    return next((each for each in listed if each.ended and not looped(each.text, found.source)), listed[0])


def _told(found: Prediction, source: str, prepared: Prepared) -> Prediction:
    restored = found.restored(source, prepared)
    missing = tuple(prepared.lacking(restored.text))
    repeated = None if prepared.only_told else looped(restored.text, source)
    return replace(restored, missing=missing, repeated=repeated)


def _faults(prediction: Prediction) -> tuple[int, bool, bool]:
    return len(prediction.missing), prediction.repeated is not None, not prediction.ended
