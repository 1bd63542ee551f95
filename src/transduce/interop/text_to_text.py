"""What every export of a model asks for: that it reads and writes text, how long, and which tokens it never writes.

Shapes: V vocabulary.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from transduce.data.columns.tokens import Tokens

if TYPE_CHECKING:
    from transduce.pipeline.pipeline import Pipeline

LEAST_POSITIONS = 1024
MOST_POSITIONS = 10**6  # of a model that reads texts of any length
NEVER = -1e9  # a logit


def text_problems(pipeline: "Pipeline") -> Iterator[str]:
    """Why a model cannot be exported, whatever is between its source and its target."""
    columns = pipeline.task.columns
    kinds = {side: column.kind for side, column in columns.items()}
    if kinds != {"source": "tokens", "target": "tokens"}:
        sides = ", ".join(f"{side}: {kind}" for side, kind in kinds.items())
        yield f"only models from text to text can be exported; this one has {sides}."
    if any(tokenizer.right_to_left for tokenizer in pipeline.task.tokenizers.values()):
        yield "a tokenizer that writes from right to left cannot be exported."
    for side, tokenizer in pipeline.task.tokenizers.items():
        yield from (f"its {side} cannot be exported: {problem}" for problem in tokenizer.problems("pad", "unknown"))
    if any(isinstance(each, Tokens) and (each.before or each.after or each.never_first) for each in columns.values()):
        yield "a model with further tokens around a text than start and end cannot be exported."


def target_of(pipeline: "Pipeline") -> Tokens:
    """What it writes, of a model without `text_problems`."""
    target = pipeline.task.columns["target"]
    assert isinstance(target, Tokens)
    return target


def positions_of(pipeline: "Pipeline") -> int:
    """How many positions an export with a table of them should have: for the longest source, and its longest output."""
    max_source_length = min(int(pipeline.task.max_source_length), MOST_POSITIONS)
    return max(LEAST_POSITIONS, max_source_length + 1, pipeline.recipe.search.limit(max_source_length) + 1)


def never_chosen(size: int, unwritten: Sequence[int]) -> Tensor:
    """(V,): `NEVER` for what our search never chooses, mostly padding, start and unknown; else 0.

    With it, no caller of an exported model needs to know this. Added to logits, it also shares out the probability that
    the model gives to these tokens among the others; added to log-probabilities, it does not.
    """
    bias_V = torch.zeros(size)
    bias_V[list(unwritten)] = NEVER
    return bias_V
