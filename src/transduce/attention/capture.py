"""Attention weights for the asking.

    with capture(model) as record:
        model.predict(["Two dogs run."])
    record["decoder.blocks.0.cross_attention"]        # one (B, H, T, S) tensor per call of that attention

Outside the `with` nothing is kept and the fast kernel runs. A captured call computes its weights openly; its output
is the same up to rounding.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from torch import Tensor, nn

from transduce.core.errors import InputError


class Record(dict[str, list[Tensor]]):
    """Attention weights by the name of the module that computed them, one (B, H, T, S) tensor per call, in order."""

    def __init__(self, names: dict[nn.Module, str]) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, name: str) -> list[Tensor]:
        held = ", ".join(self) or "nothing: no attention was computed"
        raise KeyError(f"{name}; this record holds {held}")

    def take(self, module: nn.Module, alpha_BHTS: Tensor) -> None:
        """Called by attention modules. Weights of modules outside the captured model are not kept."""
        if module in self._names:
            self.setdefault(self._names[module], []).append(alpha_BHTS.detach())


_record: ContextVar[Record | None] = ContextVar("transduce_attention_record", default=None)


@contextmanager
def capture(model: Any) -> Iterator[Record]:
    """Everything that attends inside `model` hands its weights to the record while the `with` lasts.

    Captures nest (the inner one wins) and do not see each other across threads.

    Args:
        model: what `transduce.load` gave, or a module; of an ensemble all members, as `members.0.decoder.blocks.0..`.

    Raises:
        InputError: it is neither.
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
    """The record that asks for weights now, or None."""
    return _record.get()
