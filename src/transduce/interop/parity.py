"""Whether an exported model says the same as ours: both translate the user's own text greedily, in fp32.

Lines without tokens are left out, and those longer than the model reads: their pieces are a caller's affair.

Where outputs part, next to nothing between the two tokens is a tie, which rounding decides; more is a difference
between the engines.
"""

import math
import time
from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import torch

from transduce.core.errors import InputError
from transduce.core.folders import RESOLVED
from transduce.data.corpus import read_pairs, read_tagged_pairs
from transduce.data.hold_out import HELD_OUT, TEST, VALIDATION, part_of
from transduce.data.pairs.pair_data import PairData
from transduce.inference.batches import by_length
from transduce.metrics.evaluate import evaluate
from transduce.metrics.score import Score
from transduce.recipe.recipe import load_run_recipe
from transduce.tasks.base import pairs_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from transduce.pipeline.pipeline import Pipeline


MOST = 1000  # lines


@torch.inference_mode()
def margin(pipeline: "Pipeline", source: str, ours: Sequence[str], theirs: Sequence[str]) -> float:
    """log p(our token) - log p(their token) behind the tokens that both outputs begin with, in nats.

    Infinity where theirs has a token that is none of ours.

    Args:
        ours, theirs: different outputs, as tokens without start and end; the end is a token like others here.
    """
    columns: Any = pipeline.task.columns
    reads, writes = columns["source"], columns["target"]
    try:
        one, other = ([*writes.ids(tokens), writes.end] for tokens in (ours, theirs))
    except InputError:
        return math.inf
    place = next(place for place, (mine, yours) in enumerate(zip(one, other, strict=False)) if mine != yours)
    before = [writes.start, *writes.opening, *one[:place]]
    inputs = (
        column.inputs([ids]) for column, ids in ((reads, reads.closed(*reads.encode([source]))), (writes, before))
    )
    logits_V = pipeline.model(*(each.to(pipeline.device) for each in inputs))[0, -1]
    return float(logits_V[one[place]] - logits_V[other[place]])


Item = TypeVar("Item", bound=Sized)
BATCH = 64
MOST_MARGINS = 100  # of different outputs that are looked into
WARM_UP = 8  # lines that are translated before the clock starts
PLAIN: dict[str, Any] = {
    "method": "greedy",
    "min_length": 0,
    "no_repeat_ngram": None,
    "coverage": 0.0,
    "ctc_weight": 0.0,
    "lm_weight": 0.0,
    "shortlist": None,
    "nbest": 1,
    "at_limit": "stop",
}
"""Search as every engine has it."""


class EngineOutput(NamedTuple):
    """tokens: without start and end. log_probability: of these and the end, in nats; None = it does not say."""

    tokens: tuple[str, ...]
    text: str
    log_probability: float | None


class Engine(Protocol):
    """Something that runs an exported model."""

    name: str

    def greedy(self, texts: Sequence[str], longest: int) -> list[EngineOutput]:
        """The likeliest token at each step, for each text; up to `longest` tokens with the end."""
        ...


@dataclass(frozen=True)
class Text:
    """Lines to compare on. references: one a line; None = there are none."""

    name: str
    lines: list[str]
    references: list[str] | None = None


@dataclass(frozen=True)
class FirstDifference:
    """The first line that is not equal; line: its number from 1."""

    line: int
    source: str
    ours: str
    theirs: str


@dataclass(frozen=True)
class Parity:
    """What a comparison found.

    equal: outputs of the same tokens; same_text: of the same text. left_out: lines that were not compared.
    margin: at their first different token, how much likelier ours is than theirs by our model, at most, in nats.
    difference: the largest and the mean, of log-probabilities of equal outputs; None = the engine tells none.
    bleu: ours and theirs; speed: lines a second, ours and theirs.
    """

    engine: str
    text: str
    lines: int
    left_out: int
    equal: int
    same_text: int
    first: FirstDifference | None
    margin: float | None
    difference: tuple[float, float] | None
    bleu: tuple[Score, Score] | None
    speed: tuple[float, float]

    @property
    def holds(self) -> bool:
        """Whether all outputs are equal."""
        return self.equal == self.lines

    @property
    def failure(self) -> str:
        """What to tell where it does not hold."""
        differing = self.lines - self.equal
        return (
            f"{differing:,} of {self.lines:,} outputs differ: the converted model does not say what the original says."
        )

    def report(self) -> list[str]:
        left_out = f"; {self.left_out:,} empty or too long and left out" if self.left_out else ""
        told = [
            f"{self.engine} and Transduce on {self.lines:,} lines of {self.text}, greedy, fp32{left_out}:",
            f"  equal tokens     {self.equal:,} of {self.lines:,}",
        ]
        if self.first:
            told += [
                f"  equal texts      {self.same_text:,} of {self.lines:,}",
                f"  first difference line {self.first.line}: {self.first.source}",
                f"    Transduce      {self.first.ours}",
                f"    {self.engine:<14} {self.first.theirs}",
            ]
        if self.margin is not None:
            told += [
                f"  where they part  our model finds their token at most {self.margin:.2g} nats less likely than ours"
            ]
        if self.difference:
            told += [f"  log-probability  {self.difference[0]:.2g} apart at most, {self.difference[1]:.2g} on average"]
        if self.bleu:
            ours, theirs = self.bleu
            told += [
                f"  BLEU             {ours.value:.2f} Transduce, {theirs.value:.2f} {self.engine}; {ours.signature}"
            ]
        ours_a_second, theirs_a_second = self.speed
        told += [
            f"  lines a second   {ours_a_second:,.0f} Transduce, {theirs_a_second:,.0f} {self.engine}, in batches of "
            f"{BATCH}, each with its own number of threads"
        ]
        return told


def compare(pipeline: "Pipeline", engine: Engine, text: Text, language: str | None = None) -> Parity:
    """Ours and theirs on `text`. language: of the outputs, by which BLEU splits words.

    Raises:
        InputError: no line can be compared; not as many references as lines.
    """
    kept = comparable(pipeline, text)
    sources = [text.lines[place] for place in kept]
    longest = _longest(pipeline, sources)
    ours, our_seconds = timed(lambda lines: _ours(pipeline, lines, longest), sources)
    theirs, their_seconds = timed(lambda lines: engine.greedy(lines, longest), sources)
    unequal = [row for row, (one, other) in enumerate(zip(ours, theirs, strict=True)) if one.tokens != other.tokens]
    margins = [margin(pipeline, sources[row], ours[row].tokens, theirs[row].tokens) for row in unequal[:MOST_MARGINS]]
    return Parity(
        engine.name,
        text.name,
        len(kept),
        len(text.lines) - len(kept),
        len(kept) - len(unequal),
        sum(one.text == other.text for one, other in zip(ours, theirs, strict=True)),
        first_difference(unequal[0], kept, sources, ours, theirs) if unequal else None,
        max(margins, default=None),
        _log_probability_difference(ours, theirs),
        bleu_of_both(ours, theirs, text, kept, language),
        (len(kept) / our_seconds, len(kept) / their_seconds),
    )


def in_batches(
    items: Sequence[Item], translate: Callable[[list[Item]], Iterable[EngineOutput]], size: int = BATCH
) -> list[EngineOutput]:
    """What `translate` makes of batches of items, in the order of the items."""
    found: dict[int, EngineOutput] = {}
    for places in by_length(map(len, items), size):
        found |= zip(places, translate([items[place] for place in places]), strict=True)
    return [found[place] for place in range(len(items))]


def comparable(pipeline: "Pipeline", text: Text) -> list[int]:
    """The places of lines that are read whole and not empty.

    Raises:
        InputError: there is none; not as many references as lines.
    """
    if text.references is not None and len(text.references) != len(text.lines):
        raise InputError(
            f"{text.name}: {len(text.lines):,} lines and {len(text.references):,} references: line n must answer "
            "line n."
        )
    lengths = map(len, pipeline.task.tokenizers["source"].encode(text.lines))
    kept = [place for place, length in enumerate(lengths) if 0 < length <= pipeline.task.max_source_length]
    if not kept:
        raise InputError(f"{text.name}: none of its {len(text.lines):,} lines can be compared: empty, or too long.")
    return kept


def _longest(pipeline: "Pipeline", sources: Sequence[str]) -> int:
    """The limit of the longest line, for all of them, as most engines have one for a batch."""
    longest = max(map(len, pipeline.task.tokenizers["source"].encode(sources)))
    return pipeline.recipe.search.limit(longest)


def _ours(pipeline: "Pipeline", sources: Sequence[str], longest: int) -> list[EngineOutput]:
    found = pipeline.predict(
        sources, split="none", batch_size=BATCH, max_length_factor=0.0, max_length_offset=longest, **PLAIN
    )
    return [EngineOutput(each.tokens, each.text, each.log_probability) for each in found]


def timed(translate: Any, sources: Sequence[str]) -> tuple[list[EngineOutput], float]:
    """Outputs, and the seconds they took once all is warm."""
    translate(sources[:WARM_UP])
    began = time.perf_counter()
    outputs: list[EngineOutput] = translate(sources)
    return outputs, max(time.perf_counter() - began, 1e-9)


def first_difference(
    row: int, kept: Sequence[int], sources: Sequence[str], ours: Sequence[EngineOutput], theirs: Sequence[EngineOutput]
) -> FirstDifference:
    """What is shown of the outputs of a row: their texts, or their tokens where the texts are equal."""
    shown = [each[row].text for each in (ours, theirs)]
    if shown[0] == shown[1]:
        shown = [" ".join(each[row].tokens) for each in (ours, theirs)]
    return FirstDifference(kept[row] + 1, sources[row], shown[0], shown[1])


def _log_probability_difference(
    ours: Sequence[EngineOutput], theirs: Sequence[EngineOutput]
) -> tuple[float, float] | None:
    found = [
        abs(one.log_probability - other.log_probability)
        for one, other in zip(ours, theirs, strict=True)
        if one.tokens == other.tokens and one.log_probability is not None and other.log_probability is not None
    ]
    return (max(found), sum(found) / len(found)) if found else None


def bleu_of_both(
    ours: Sequence[EngineOutput], theirs: Sequence[EngineOutput], text: Text, kept: Sequence[int], language: str | None
) -> tuple[Score, Score] | None:
    """Of ours and of theirs; None = there are no references."""
    if text.references is None:
        return None
    references = [text.references[place] for place in kept]
    one, other = (evaluate(["bleu"], [each.text for each in side], references, language)[0] for side in (ours, theirs))
    return one, other


def held_out_text(model: Path, max_lines: int = MOST, trust_code: bool = False) -> Text:
    """The first lines of the first test set of the run that `model` lies in, else of its validation set.

    trust_code: let the recipe of that run name code outside Transduce.

    Raises:
        InputError: there is no recipe beside the model; it names no text that is held out; its files are gone.
    """
    recipe = model.with_name(RESOLVED)
    if not recipe.is_file():
        raise InputError(f"{model}: there is no {RESOLVED} beside it that names text that was held out.")
    data = pairs_of(load_run_recipe(recipe, trust_code=trust_code))
    if data is None:
        raise InputError(f"{recipe}: this is not a recipe for translation.")
    name, pairs = _pairs(data, recipe)
    both = list(islice(pairs, max_lines))
    return Text(name, [source for _, source, _ in both], [target for *_, target in both])


def _pairs(data: PairData, recipe: Path) -> "tuple[str, Iterator[tuple[int, str, str]]]":
    root = Path(data.root)
    for name, files in data.test.items():
        return f"data.test.{name}", read_tagged_pairs(files, root)
    if data.validation:
        return "data.validation", read_tagged_pairs(data.validation, root)
    split = data.split()
    for name, part in ((HELD_OUT, TEST), ("validation", VALIDATION)):
        if split and split.count(part):
            corpora = data.corpora()
            parts = zip(corpora, split.parts, strict=True)
            mark = {files: "".join(f"{tag} " for tag in files.tags) for files in corpora}
            return name, (
                (line, mark[files] + source, target)
                for files, own in parts
                for line, source, target in part_of(read_pairs(files, root), own, part)
            )
    raise InputError(f"{recipe}: it names no text that is held out.")
