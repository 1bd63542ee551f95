"""Recording attention weights.

    with capture(model) as record:
        model.predict(["Two dogs run."])
    record["decoder.blocks.0.cross_attention"]        # one (B, H, T, S) tensor per call of that attention

    record.of("cross")                                # ["decoder.blocks.0.cross_attention", ..]

Each attention module declares what it attends to in its attributes `role` and `side`. Nothing is inferred from names or
sizes. A module that declares nothing counts as "other". A module of your own can declare them and record its weights:

    role, side = "cross", "decoder"                   # attributes of the class or of the instance
    if (record := active_record()) is not None:
        record.take(self, alpha_BHTS)

Outside the `with` block nothing is recorded and the fast kernel runs. Inside, attention computes its weights
explicitly; its output is the same up to rounding, or what follows from changed weights (`interventions.py`).
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal, NamedTuple, get_args

from torch import Tensor, nn

from transduce.attention.interventions import Places, active_interventions, intervening, interventions_in
from transduce.core.errors import InputError
from transduce.core.registry import suggest

Role = Literal["self", "tape", "cross", "memory", "edge", "other"]
Side = Literal["encoder", "decoder", "other"]


class Declared(NamedTuple):
    """What an attention module attends to.

    role: self = the sequence of its queries. tape = the states after each earlier position of that sequence, with the
        initial state in front. cross = the output of the other side. memory = slots that are not tokens.
        edge = neighbors in a graph. other = not declared.
    side: encoder = it helps to read a source. decoder = it helps to write a target. other = not declared.
    """

    role: Role = "other"
    side: Side = "other"


class Record(dict[str, list[Tensor]]):
    """Attention weights by module name: one tensor (B, H, T, S) for each call of the module, in order.

    Raises:
        KeyError: no attention was recorded under this name; the message lists the names that were.
    """

    def __init__(self, names: dict[nn.Module, str]) -> None:
        super().__init__()
        self._names = names
        self.roles: dict[str, Declared] = {}
        """The role and side that each recorded module declares, by module name."""

    def __missing__(self, name: str) -> list[Tensor]:
        held = ", ".join(self) or "nothing: no attention was computed"
        raise KeyError(f"{name}; this record holds {held}")

    def take(self, module: nn.Module, alpha_BHTS: Tensor) -> None:
        """Record one call's weights; attention modules call this. Modules outside the captured model are ignored.

        Raises:
            InputError: the module declares an unknown role or side.
        """
        if module in self._names:
            name = self._names[module]
            if name not in self.roles:
                self.roles[name] = declared(module, name)
            self.setdefault(name, []).append(alpha_BHTS.detach())

    def of(self, role: Role, side: Side | None = None) -> list[str]:
        """The names of the recorded modules with this role, and this side if one is given, in order of their calls."""
        return [name for name in self if self.roles[name].role == role and side in (None, self.roles[name].side)]


def declared(module: nn.Module, name: str = "") -> Declared:
    """The role and side that an attention module declares.

    Raises:
        InputError: the module declares an unknown role or side.
    """
    said = Declared(getattr(module, "role", "other"), getattr(module, "side", "other"))
    problems = [
        f'{name or type(module).__name__}: expected {what} to be one of {", ".join(known)}; got "{value}".'
        f"{suggest(str(value), list(known))}"
        for what, value, known in (("role", said.role, get_args(Role)), ("side", said.side, get_args(Side)))
        if value not in known
    ]
    if problems:
        raise InputError(problems)
    return said


_record: ContextVar[Record | None] = ContextVar("transduce_attention_record", default=None)


@contextmanager
def capture(
    model: Any,
    without: Collection[str] = (),
    *,
    cut: Places = (),
    uniform: Places = (),
    argmax: Places = (),
    temperature: Mapping[Any, float] | None = None,
    positions: bool = True,
) -> Iterator[Record]:
    """Record the weights of every attention module in `model` inside the `with` block, and change them where asked.

    Captures can be nested, in which case the inner one records, and what the outer one changes stays changed unless the
    inner one changes something. Each thread has captures of its own. Modules are named as in the record; a name alone
    means all its heads, queries and keys.

        capture(model, cut=[Place("encoder.blocks.0.self_attention", head=1, query=7, key=2)])

    Args:
        model: the result of `transduce.load`, or any module. All members of an ensemble are recorded, under names such
            as `members.0.decoder.blocks.0.self_attention`.
        without: names of modules that are not recorded.
        cut: keys that are not attended to; where all of a query's keys are cut, its head reads 0.
        uniform: heads that attend to all allowed keys alike.
        argmax: heads that attend only to the key with the greatest score.
        temperature: by place, what scores are divided by.
        positions: False = without any positions, absolute or relative.

    Raises:
        InputError: `model` is neither; there is no such attention or head, or a temperature is not above 0.
    """
    module = model if isinstance(model, nn.Module) else getattr(model, "model", None)
    if not isinstance(module, nn.Module):
        raise InputError(
            f"capture: expected a model, such as transduce.load returns; got {type(model).__name__}: {model!r}."
        )
    record = Record({inner: name for name, inner in module.named_modules() if name not in without})
    asked = interventions_in(module, cut, uniform, argmax, temperature, positions)
    token = _record.set(record)
    try:
        with intervening(active_interventions() if asked.is_empty else asked):
            yield record
    finally:
        _record.reset(token)


def active_record() -> Record | None:
    """The record of the innermost capture in this thread, or None outside any capture."""
    return _record.get()
