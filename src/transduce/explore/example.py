"""The worked example of lecture notes: "Thinking Machines", whose first word attends to both words.

    q . k = 112, 96     / sqrt(64) = 14, 12     softmax = 0.88, 0.12            (Alammar, "The Illustrated Transformer")

The notes give the dot products but no vectors. The vectors here are the simplest with these dot products.

Shapes: E = 64.
"""

from typing import Any

import torch

from transduce.attention.normalizers import Softmax
from transduce.attention.scores import ScaledDot
from transduce.interpret.steps import Query, worked_out

WIDTH = 64
PRODUCTS = (112.0, 96.0)
WORDS = ("Thinking", "Machines")


def example() -> dict[str, Any]:
    """The example in the form of `steps`, with "example": True. It has a single head."""
    query_E = torch.ones(WIDTH)
    key_SE = torch.tensor(PRODUCTS)[:, None] / WIDTH * query_E
    value_SE = torch.eye(2).repeat(1, WIDTH // 2)  # 1 0 1 0 .. and 0 1 0 1 ..: the output reads as the weights
    query, key, value = (each[None, None] for each in (query_E[None], key_SE, value_SE))
    position = torch.zeros(1, 1, dtype=torch.int64)
    score, weigh = ScaledDot(WIDTH, WIDTH), Softmax(WIDTH)
    found = Query(score, weigh, query, key, value, None, None, position, None, None, None)
    return {"query_token": WORDS[0], "columns": list(WORDS), **worked_out(found, 0), "example": True}
