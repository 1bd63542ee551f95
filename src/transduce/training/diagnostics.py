"""What is going wrong, in plain words."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence

MANY_EPOCHS = 200  # from which a model is shown the same examples too often
PATIENCE = 5  # validations without improvement, where nothing else ends a training of so many epochs
CHANCE = 0.01  # words that may be expected to be never drawn


def unigram_entropy(tokens: Iterable[int]) -> float:
    """Entropy of the token frequencies in nats a token: the loss of a model that has learnt frequencies alone."""
    counts = Counter(tokens)
    total = sum(counts.values())
    return -sum(n / total * math.log(n / total) for n in counts.values()) if total else 0.0


def alarms(
    sources: Sequence[str],
    outputs: Sequence[str],
    references: Sequence[str],
    loss: float,
    entropy: float,
    unit: str = "token",
) -> list[str]:
    """Plain sentences about validation outputs that no healthy model gives; an empty list when all is well.

    Args:
        sources: what was translated; empty for tasks without a source.
        outputs: what came out, one a reference.
        references: what should have come out.
        loss: validation loss, nats a unit.
        entropy: `unigram_entropy` of the training targets.
    """
    found = []
    if outputs and not any(output.strip() for output in outputs):
        found.append("Every output is empty: the model ends each sentence at once.")
    elif len(outputs) > 1 and len(set(outputs)) == 1 and len(set(references)) > 1:
        found.append(f"Every output is the same, whatever the source: {outputs[0]!r}.")
    if sources and _copies(sources, outputs) > 0.5 > _copies(sources, references):
        found.append("More than half of the outputs are copies of their source.")
    if loss > entropy > 0:
        found.append(
            f"The validation loss ({loss:.2f} nats a {unit}) is above the unigram entropy ({entropy:.2f}): "
            f"guessing by {'word' if unit == 'token' else unit} frequency alone would do better."
        )
    return found


def few_draws(sampled: int | None, vocabulary: int, updates: int) -> list[str]:
    """A sentence if `training.sampled_words` may leave a word out of every update, as V (1 - K / V)^U words are.

    Such a word is never pushed down: it can be likely everywhere, though training loss does not show it.
    """
    if sampled is None or sampled >= vocabulary:
        return []
    missed = vocabulary * (1 - sampled / vocabulary) ** updates
    if missed < CHANCE:
        return []
    enough = min(vocabulary, math.ceil(vocabulary * (1 - (CHANCE / vocabulary) ** (1 / updates))))
    return [
        f"training.sampled_words = {sampled:,} of {vocabulary:,}: in {updates:,} updates, {missed:.2g} words are "
        f"expected to be never drawn, which the model may then write anywhere. Enough are {enough:,}."
    ]


def many_epochs(updates: int, batches: int) -> list[str]:
    """A sentence if a training whose `updates` nobody chose shows few examples again and again.

    Args:
        batches: how many updates an epoch has; `MANY_EPOCHS` of them are not looked beyond.
    """
    if batches * MANY_EPOCHS >= updates:
        return []
    return [
        f"training.updates is not set: its default, {updates:,}, is {updates // batches:,} epochs of this data, so "
        f"training stops after {PATIENCE} validations without improvement. To decide otherwise, set training.patience, "
        f"or training.updates, such as training.updates={20 * batches:,} for 20 epochs."
    ]


def _copies(sources: Sequence[str], outputs: Sequence[str]) -> float:
    pairs = list(zip(sources, outputs, strict=True))
    return sum(s.strip() == o.strip() != "" for s, o in pairs) / len(pairs) if pairs else 0.0
