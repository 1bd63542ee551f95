"""Models that ask torch for more memory than there is, when a batch has too many rows: the allocator's own failure."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transduce.core.padded import Padded
from transduce.data.columns import Specs
from transduce.models.transformer import Transformer, TransformerConfig

TOO_MUCH = 2**60  # bytes


def ask_for_too_much() -> None:
    """Raises what torch's allocator raises."""
    torch.empty(TOO_MUCH, dtype=torch.uint8)


class _FailsInBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        ask_for_too_much()
        return gradients[0]


def make_hungry(model: nn.Module, rows: int, where: str) -> None:
    """From now on every embedding fails with more than `rows` rows, "forward" or "backward"."""

    def hook(module: nn.Module, given: tuple[Tensor, ...], out: Tensor) -> Tensor | None:
        if len(given[0]) <= rows:
            return None
        if where == "backward":
            return _FailsInBackward.apply(out)  # type: ignore[no-any-return]
        return ask_for_too_much()

    for name, module in model.named_modules():
        if name.endswith("_embedding"):
            module.register_forward_hook(hook)


class HungryConfig(TransformerConfig):
    """When it fails in training: with so many rows, with so long a target, and how often (a number in a file)."""

    kind: str = "hungry:Hungry"  # type: ignore[assignment]
    rows: int = 1000
    longest: int = 1000
    times: str | None = None


class Hungry(Transformer):
    """A Transformer that needs too much memory."""

    Config = HungryConfig

    def __init__(self, config: HungryConfig, specs: Specs) -> None:
        super().__init__(config, specs)
        self.config = config

    def forward(self, source: Padded | None, target: Padded) -> Tensor:
        """As its base, if it does not fail."""
        too_large = target.values.shape[0] > self.config.rows or target.values.shape[1] > self.config.longest
        if self.training and too_large and self._still():
            ask_for_too_much()
        return super().forward(source, target)

    def _still(self) -> bool:
        if self.config.times is None:
            return True
        path = Path(self.config.times)
        left = int(path.read_text())
        path.write_text(str(max(0, left - 1)))
        return left > 0
