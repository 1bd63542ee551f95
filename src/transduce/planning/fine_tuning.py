"""What is decided for a training from a model that translates already: to learn what is new, and to keep the rest.

Where the figures come from is said in docs/planning.md.
"""

import math
from collections.abc import Sequence

from transduce.planning.decisions import Decision, rounded
from transduce.planning.facts import Facts
from transduce.planning.protocols import Start
from transduce.training.start_data import start_data, validation_of

FEWER, FEWEST = 4, 250  # times fewer updates than from nothing; at least so many
SLOWER = 0.1  # of the learning rate from nothing
FEWEST_PAIRS, MOST_PAIRS = 2000, 20_000  # to replay
LEAST = 200  # pairs that a model writes, however little time there is
KEPT = {"learnt": 300, "generated": 200}  # pairs to measure by


def fewer_updates(from_nothing: int) -> int:
    """Of a training that would deserve so many from nothing."""
    return max(FEWEST, rounded(from_nothing / FEWER))


def with_warmup(planned: Sequence[Decision], expected: int) -> list[Decision]:
    """A schedule whose warm-up is longer, as an optimizer begins anew."""
    warmup = Decision("training.warmup", max(1, expected // 10), "a tenth of the updates, for a trained model")
    return [warmup if each.key == warmup.key else each for each in planned]


def keeping(decided: Sequence[Decision], start: Start, facts: Facts) -> list[Decision]:
    """With a low learning rate, and pairs that the model to start from knows."""
    ours = {each.key: each for each in [*_optimizer(start), *_replay(start, facts)]}
    return [*(each for each in decided if each.key not in ours), *ours.values()]


def _optimizer(start: Start) -> list[Decision]:
    width = start.model.get("d_model", 128)
    rate = round(SLOWER * 4e-3 * math.sqrt(128 / max(128, width)), 6)
    found = [Decision("training.learning_rate", rate, "a tenth of the usual, so that the model forgets less")]
    smoothing = start.training.get("label_smoothing")
    if smoothing is not None:
        found.append(Decision("training.label_smoothing", smoothing, "as the model to start from was trained"))
    return found


def _replay(start: Start, facts: Facts) -> list[Decision]:
    before = start_data(start.path)
    kind, why = "generated", "the pairs that the model learnt from are not there, so it writes some itself"
    if before is not None and before.train:
        kind, why = "learnt", f"the pairs that the model learnt from are in {before.root}"
    pairs = min(MOST_PAIRS, max(FEWEST_PAIRS, facts.pairs))
    return [
        Decision("replay.kind", kind, why),
        Decision("replay.pairs", pairs, "trained on beside yours, so that the model forgets less"),
        Decision("replay.share", 0.5, "half of what is shown"),
        Decision("replay.kept", KEPT[kind], "measured before and after: what the model keeps, beside what it learns"),
    ]


def affordable(decided: Sequence[Decision], pairs: int) -> list[Decision]:
    """With no more pairs to replay than a model has time to write, but a few."""
    if not any(each.key == "replay.kind" and each.value == "generated" for each in decided):
        return [*decided]
    return [
        each._replace(value=max(LEAST, min(each.value, pairs))) if each.key == "replay.pairs" else each
        for each in decided
    ]


def measured(start: Start, task: str) -> list[Decision]:
    """How it is measured what a model for this kind of task keeps; nothing where its validation is not there."""
    entry = validation_of(start.path, task)
    if entry is None:
        return []
    reason = "what picked the weights of the model to start from: measured before and after, as what it keeps"
    return [Decision("data.test.kept", entry, reason), Decision("training.kept", "kept", reason)]
