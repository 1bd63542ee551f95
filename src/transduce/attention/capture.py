"""Recording attention weights.

    with capture(model) as record:
        model.predict(["Two dogs run."])
    record["decoder.blocks.0.cross_attention"]        # one (B, H, T, S) tensor per call of that attention

Outside the `with` block nothing is recorded and the fast kernel runs. Inside, attention computes its weights
explicitly; its output is the same up to rounding.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from torch import Tensor, nn

from transduce.core.errors import InputError


class Record(dict[str, list[Tensor]]):
    """Attention weights by module name: one tensor (B, H, T, S) for each call of the module, in order.

    Raises:
        KeyError: no attention was recorded under this name; the message lists the names that were.
    """

    def __init__(self, names: dict[nn.Module, str]) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, name: str) -> list[Tensor]:
        held = ", ".join(self) or "nothing: no attention was computed"
        raise KeyError(f"{name}; this record holds {held}")

    def take(self, module: nn.Module, alpha_BHTS: Tensor) -> None:
        """Record one call's weights; attention modules call this. Modules outside the captured model are ignored."""
        if module in self._names:
            self.setdefault(self._names[module], []).append(alpha_BHTS.detach())


_record: ContextVar[Record | None] = ContextVar("transduce_attention_record", default=None)


@contextmanager
def capture(model: Any) -> Iterator[Record]:
    """Record the weights of every attention module in `model` inside the `with` block.

    Captures can be nested, in which case the inner one records. Each thread has captures of its own.

    Args:
        model: the result of `transduce.load`, or any module. All members of an ensemble are recorded, under names such
            as `members.0.decoder.blocks.0.self_attention`.

    Raises:
        InputError: `model` is neither.
    """
    module = model if isinstance(model, nn.Module) else getattr(model, "model", None)
    if not isinstance(module, nn.Module):
        raise InputError(
            f"capture: expected a model, such as transduce.load returns; got {type(model).__name__}: {model!r}."
        )
    record = Record({inner: name for name, inner in module.named_modules()})
    token = _record.set(record)
    try:
        yield record
    finally:
        _record.reset(token)


def active_record() -> Record | None:
    """The record of the innermost capture in this thread, or None outside any capture."""
    return _record.get()
