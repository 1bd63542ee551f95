"""Whether a converted translator says what its original says, as a user would run both: with the search that each has
by default, and with the other one of greedy search and a beam.

Equal texts are what counts. Tokens are counted as well. Lines without tokens are left out, and those longer than the
model reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from transduce.interop.parity import (
    BATCH,
    EngineOutput,
    FirstDifference,
    Text,
    bleu_of_both,
    comparable,
    first_difference,
    timed,
)
from transduce.metrics.score import Score

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline

BEAM = 4  # of the comparison of a model that is searched greedily


class Original(Protocol):
    """Something that runs the model that was converted."""

    name: str

    def translate(self, texts: Sequence[str], beams: int | None = None) -> list[EngineOutput]:
        """As the model is set up, or with so many beams; 1 = greedy search."""
        ...


@dataclass(frozen=True)
class SearchParity:
    """One search on both sides.

    how: what it is. same_text, same_tokens: how many outputs are equal. first: the first of different text.
    speed: lines a second, ours and theirs. bleu: ours and theirs.
    """

    how: str
    same_text: int
    same_tokens: int
    first: FirstDifference | None
    speed: tuple[float, float]
    bleu: tuple[Score, Score] | None


@dataclass(frozen=True)
class RunParity:
    """What a comparison found. searches: that of the model first. left_out: lines that were not compared."""

    engine: str
    text: str
    lines: int
    left_out: int
    searches: tuple[SearchParity, ...]

    @property
    def holds(self) -> bool:
        """Whether all texts are equal."""
        return all(each.same_text == self.lines for each in self.searches)

    @property
    def failure(self) -> str:
        """What to tell where it does not hold."""
        told = [f"{self.lines - each.same_text:,} of {self.lines:,} {each.how}" for each in self.searches]
        return f"texts differ, {', '.join(told)}: the converted model does not say what the original says."

    def report(self) -> list[str]:
        left_out = f"; {self.left_out:,} empty or too long and left out" if self.left_out else ""
        told = [f"{self.engine} and Transduce on {self.lines:,} lines of {self.text}{left_out}:"]
        for each in self.searches:
            told += [f"  {each.how}", *self._report(each)]
        return told

    def _report(self, search: SearchParity) -> list[str]:
        ours, theirs = search.speed
        told = [
            f"    equal texts      {search.same_text:,} of {self.lines:,}",
            f"    equal tokens     {search.same_tokens:,} of {self.lines:,}",
        ]
        if search.first:
            told += [
                f"    first difference line {search.first.line}: {search.first.source}",
                f"      Transduce      {search.first.ours}",
                f"      {self.engine:<14} {search.first.theirs}",
            ]
        if search.bleu:
            one, other = search.bleu
            told += [
                f"    BLEU             {one.value:.2f} Transduce, {other.value:.2f} {self.engine}; {one.signature}"
            ]
        return [*told, f"    lines a second   {ours:,.0f} Transduce, {theirs:,.0f} {self.engine}"]


def compare_runs(pipeline: "Pipeline", original: Original, text: Text, language: str | None = None) -> RunParity:
    """Both on `text`. language: of the outputs, by which BLEU splits words.

    Raises:
        InputError: no line can be compared; not as many references as lines.
    """
    kept = comparable(pipeline, text)
    search = pipeline.recipe.search
    beams: list[int | None] = [None, 1 if search.method == "beam" else BEAM]
    if search.method == "sample":
        beams = [1, BEAM]
    found = [_one_search(pipeline, original, text, kept, each, language) for each in beams]
    return RunParity(original.name, text.name, len(kept), len(text.lines) - len(kept), tuple(found))


def _one_search(
    pipeline: "Pipeline", original: Original, text: Text, kept: Sequence[int], beams: int | None, language: str | None
) -> SearchParity:
    asked: dict[str, Any] = {} if beams is None else {"method": "greedy", "nbest": 1}
    if beams is not None and beams > 1:
        asked = {"method": "beam", "beam": beams}

    target = pipeline.task.tokenizers["target"]
    padding = target.tokens([target.pad])

    def predicted(lines: Sequence[str]) -> list[EngineOutput]:
        found = pipeline.predict(list(lines), split="none", batch_size=BATCH, **asked)
        tokens = (tuple(token for token in each.tokens if token not in padding) for each in found)
        return [EngineOutput(own, each.text, each.log_probability) for own, each in zip(tokens, found, strict=True)]

    sources = [text.lines[place] for place in kept]
    ours, our_seconds = timed(predicted, sources)
    theirs, their_seconds = timed(lambda lines: original.translate(lines, beams), sources)
    pairs = list(zip(ours, theirs, strict=True))
    unequal = [row for row, (one, other) in enumerate(pairs) if one.text != other.text]
    return SearchParity(
        _named(pipeline, beams),
        len(pairs) - len(unequal),
        sum(one.tokens == other.tokens for one, other in pairs),
        first_difference(unequal[0], kept, sources, ours, theirs) if unequal else None,
        (len(kept) / our_seconds, len(kept) / their_seconds),
        bleu_of_both(ours, theirs, text, kept, language),
    )


def _named(pipeline: "Pipeline", beams: int | None) -> str:
    search, own = pipeline.recipe.search, beams is None
    beams = (search.beam if search.method == "beam" else 1) if beams is None else beams
    how = "greedy search" if beams == 1 else f"a beam of {beams}"
    return f"with {how}, by default" if own else f"with {how}"
