"""Attention weights for the asking.

    with capture(model) as record:
        model.predict(["Two dogs run."])
    record["decoder.blocks.0.cross_attention"]        # one (B, H, T, S) tensor per call of that attention

    record.of("cross")                                # ["decoder.blocks.0.cross_attention", ..]

What an attention looks at is said by whoever builds it, in its attributes `role` and `side`; nothing is told from names
or sizes. One that says nothing is "other". A module of your own may have them too, and hand over what it weighs:

    role, side = "cross", "decoder"                   # attributes of the class, or of the instance
    if (record := active_record()) is not None:
        record.take(self, alpha_BHTS)

Outside the `with` nothing is kept and the fast kernel runs. A captured call computes its weights openly; its output
is the same up to rounding.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple, get_args

from torch import Tensor, nn

from transduce.core.errors import InputError
from transduce.core.registry import suggest

Role = Literal["self", "cross", "memory", "edge", "other"]
Side = Literal["encoder", "decoder", "other"]


class Declared(NamedTuple):
    """What an attention looks at.

    role: self = the sequence that its queries come from. cross = what the other side has read. memory = slots that are
        no tokens. edge = neighbours in a graph. other = nobody said.
    side: encoder = it is part of reading a source. decoder = of writing a target.
    """

    role: Role = "other"
    side: Side = "other"


class Record(dict[str, list[Tensor]]):
    """Attention weights by the name of the module that computed them, one (B, H, T, S) tensor per call, in order."""

    def __init__(self, names: dict[nn.Module, str]) -> None:
        super().__init__()
        self._names = names
        self.roles: dict[str, Declared] = {}
        """What each of these modules says that it looks at, by its name."""

    def __missing__(self, name: str) -> list[Tensor]:
        held = ", ".join(self) or "nothing: no attention was computed"
        raise KeyError(f"{name}; this record holds {held}")

    def take(self, module: nn.Module, alpha_BHTS: Tensor) -> None:
        """Called by attention modules. Weights of modules outside the captured model are not kept.

        Raises:
            InputError: its role or its side is none that there is.
        """
        if module in self._names:
            name = self._names[module]
            if name not in self.roles:
                self.roles[name] = declared(module, name)
            self.setdefault(name, []).append(alpha_BHTS.detach())

    def of(self, role: Role, side: Side | None = None) -> list[str]:
        """The names of the modules of this role, and of this side if one is given, in the order of their calls."""
        return [name for name in self if self.roles[name].role == role and side in (None, self.roles[name].side)]


def declared(module: nn.Module, name: str = "") -> Declared:
    """What a module that attends says it looks at.

    Raises:
        InputError: its role or its side is none that there is.
    """
    said = Declared(getattr(module, "role", "other"), getattr(module, "side", "other"))
    problems = [
        f'{name or type(module).__name__}: {what} = "{value}"; one of {", ".join(known)} is wanted.'
        f"{suggest(str(value), list(known))}"
        for what, value, known in (("role", said.role, get_args(Role)), ("side", said.side, get_args(Side)))
        if value not in known
    ]
    if problems:
        raise InputError(problems)
    return said


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
            f"capture: a model is wanted, as transduce.load gives one; this {type(model).__name__} came: {model!r}."
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
