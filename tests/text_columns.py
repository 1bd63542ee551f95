"""Columns of text without a task, and the loss of a batch of text by a model's own objective."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from transduce.core.padded import Padded
from transduce.data.collate import Batch, padded
from transduce.data.columns import Column
from transduce.data.columns.tokens import Tokens
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.objectives.protocols import Loss
from transduce.objectives.text import text_objective
from transduce.recipe.training import TrainingConfig


@dataclass(frozen=True)
class Ids:
    """Ids that no tokenizer stands behind."""

    start: int | None
    end: int | None

    def collate(self, rows: Sequence[Any]) -> Padded:
        return padded(rows, 0, self.start, self.end)


PAIRS: Any = {"source": Ids(None, 2), "target": Ids(1, 2)}
ROWS: Any = {"target": Ids(None, None)}


def text_columns(source: Tokenizer | None, target: Tokenizer) -> dict[str, Column]:
    """As translation has them, or without a source as language modelling does."""
    if source is None:
        return {"target": Tokens(target, stream=True)}
    return {"source": Tokens(source, ends=True), "target": Tokens(target, starts=True, ends=True)}


def loss_of(model: nn.Module, batch: Batch, config: TrainingConfig) -> Loss:
    """By the model's own objective, with what it draws."""
    objective = text_objective(model, config)
    return objective.loss(model, batch, objective.draw(model, batch))
