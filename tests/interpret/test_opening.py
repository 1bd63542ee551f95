"""The head and the word that the explorer opens on, against a slow loop over every head, row and column."""

import itertools

import pytest
import torch

from drawn_models import classifier, parser
from random_models import language_model, translator
from transduce.interpret.attention import Attention
from transduce.interpret.layers import attending
from transduce.interpret.opening import opening
from transduce.pipeline.pipeline import Pipeline


def seen(pipeline: Pipeline, texts: list[str]) -> list[Attention]:
    return [each.attention() for each in pipeline.predict(texts, split="none")]


def telling(found: Attention, axis: str) -> list[tuple[str, list[int]]]:
    """The words along an axis with a letter or a digit in them, and their tokens there."""
    side = found.source if axis == "source" else found.target
    assert side is not None
    words = [(each.text, list(each.tokens)) for each in side.words if each.end > each.start]
    words = [(text, tokens) for text, tokens in words if any(letter.isalnum() for letter in text)]
    return [(text, [token + (axis == "decoder_input") for token in tokens]) for text, tokens in words]


def between(weights_TS: torch.Tensor, row: list[int], column: list[int]) -> float:
    """What a word attends to another."""
    return sum(float(weights_TS[r, c]) for r, c in itertools.product(row, column)) / len(row)


def weight(weights_TS: torch.Tensor, own: bool, rows: list, columns: list, r: int, c: int) -> float:
    return 0.0 if own and abs(r - c) <= 1 else between(weights_TS, rows[r][1], columns[c][1])


@pytest.mark.parametrize("made", [translator, language_model, parser])
@pytest.mark.parametrize("seed", [1, 2])
def test_it_is_the_sharpest_head_and_its_largest_weight(made, seed: int) -> None:
    pipeline = made(seed=seed)
    [found] = seen(pipeline, [["go ku ba . de fi", "ba, de fi fi mo"][seed - 1]])
    kinds = {part.kind for part in attending(pipeline.model, pipeline.task)}
    kind = next(each for each in ("cross", "encoder", "decoder") if each in kinds)
    best = (-1.0, "", 0, 0)
    for layer in found.of(kind):
        rows, columns = telling(found, layer.part.rows), telling(found, layer.part.columns)
        own = layer.part.rows == layer.part.columns
        for head in range(layer.part.heads):
            each = [
                [weight(layer.weights[head], own, rows, columns, r, c) for c in range(len(columns))]
                for r in range(len(rows))
            ]
            sharp = sum(max(row[c] for row in each) for c in range(len(columns))) / len(rows)
            largest = max(range(len(rows)), key=lambda r: max(each[r]))
            if sharp > best[0] + 1e-9:
                best = (sharp, layer.name, head, rows[largest][1][0])
    assert opening([found]) == best[1:]


def test_of_a_pair_it_is_the_word_that_looks_elsewhere() -> None:
    pipeline = translator(seed=4)
    first, second = seen(pipeline, ["ba de fi go ku mo .", "ba de fi go ku fi ."])
    best = (0.0, "", 0, 0)
    a, b = telling(first, "source"), telling(second, "source")
    for one, other in zip(first.of("encoder"), second.of("encoder"), strict=True):
        for head in range(one.part.heads):
            for r in range(len(a)):
                x = [weight(one.weights[head], True, a, a, r, c) for c in range(len(a))]
                y = [weight(other.weights[head], True, b, b, r, c) for c in range(len(b))]
                both = min(max(x), max(y))
                here, there = x.index(max(x)), y.index(max(y))
                shared = all(a[place][0] == b[place][0] for place in (r, here, there))
                if shared and here != there and both > best[0] + 1e-9:
                    best = (both, one.name, head, a[r][1][0])
    assert best[1], "the sentences do not differ in what they look at: choose others"
    assert opening([first, second]) == best[1:]


def test_two_that_are_no_pair_are_opened_at_the_first() -> None:
    pipeline = translator(seed=5)
    found = seen(pipeline, ["ba de fi go ku", "go ku"])
    assert opening(found) == opening(found[:1])


def test_without_words_or_attention_nothing_is_told() -> None:
    assert opening([]) is None
    assert opening(seen(classifier(), ["? ?"])) is None
    assert opening(seen(classifier(pooling="mean"), ["ba de"])) is None
