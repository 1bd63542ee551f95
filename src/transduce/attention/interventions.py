"""Changing what a trained model attends to, inside the softmax, to see what follows from it.

    with capture(model, cut=[Place("encoder.blocks.0.self_attention", query=7, key=2)]) as record:
        model.predict("The animal didn't cross the street because it was too tired.")

    cut          the keys are not allowed:  alpha_ts = exp e_ts / sum over the allowed s;  all cut: the head reads 0
    temperature  alpha = weigh(e / T)
    uniform      alpha_ts = 1 / number of allowed keys: the mean of their values
    argmax       alpha_ts = 1 at the greatest score, of equal ones the first: hard attention
    positions    nothing is added to the embeddings, no query or key is turned, no bias added to the scores

A cut comes first, then the temperature, uniform, argmax. Cutting all of a head is the measure of Michel et al.
(2019, section 3.1).

Shapes: B batch, H heads, T queries, S keys.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from transduce.attention.normalizers import Normalizer
from transduce.core.errors import InputError
from transduce.core.registry import suggest


@dataclass(frozen=True, slots=True)
class Place:
    """Where an intervention takes place.

    name: the attention module's name, as a capture records it.
    head: number of the head from 0; None = all heads.
    query, key: positions from 0; None = all.
    """

    name: str
    head: int | None = None
    query: int | None = None
    key: int | None = None


Places = Iterable[Place | str]


@dataclass(frozen=True, slots=True)
class Interventions:
    """What is changed, by attention module.

    positions: whether positions are left as they are.
    """

    cut: Mapping[nn.Module, tuple[Place, ...]] = field(default_factory=dict)
    uniform: Mapping[nn.Module, tuple[Place, ...]] = field(default_factory=dict)
    argmax: Mapping[nn.Module, tuple[Place, ...]] = field(default_factory=dict)
    temperature: Mapping[nn.Module, tuple[tuple[Place, float], ...]] = field(default_factory=dict)
    positions: bool = True

    @property
    def is_empty(self) -> bool:
        """Whether nothing is changed."""
        return self.positions and not (self.cut or self.uniform or self.argmax or self.temperature)

    def reaches(self, attention: nn.Module) -> bool:
        """Whether this module's weights are changed."""
        return any(attention in each for each in (self.cut, self.uniform, self.argmax, self.temperature))


NOTHING = Interventions()
_active: ContextVar[Interventions] = ContextVar("transduce_interventions", default=NOTHING)


def active_interventions() -> Interventions:
    """What is changed in this thread; nothing outside of any `intervening`."""
    return _active.get()


@contextmanager
def intervening(interventions: Interventions) -> Iterator[None]:
    """Inside the block, attention is changed so."""
    token = _active.set(interventions)
    try:
        yield
    finally:
        _active.reset(token)


def interventions_in(
    model: nn.Module,
    cut: Places = (),
    uniform: Places = (),
    argmax: Places = (),
    temperature: Mapping[Any, float] | None = None,
    positions: bool = True,
) -> Interventions:
    """The interventions in the modules of `model` that have these names; see `transduce.capture`.

    Raises:
        InputError: there is no such attention or head; a key where only queries count; a temperature that is not
            above 0.
    """
    modules = dict(model.named_modules())
    heated: dict[nn.Module, tuple[tuple[Place, float], ...]] = {}
    for place, value in (temperature or {}).items():
        if not value > 0:
            raise InputError(f"temperature: expected a number above 0; got {value!r}.")
        for module, (found,) in _by_module([place], modules, "temperature").items():
            heated[module] = (*heated.get(module, ()), (found, value))
    return Interventions(
        cut=_by_module(cut, modules, "cut", keys=True),
        uniform=_by_module(uniform, modules, "uniform"),
        argmax=_by_module(argmax, modules, "argmax"),
        temperature=heated,
        positions=positions,
    )


def can_change(attention: nn.Module) -> bool:
    """Whether the weights of this module can be changed: it has a normalizer."""
    return isinstance(getattr(attention, "weigh", None), Normalizer)


def _by_module(
    places: Places, modules: Mapping[str, nn.Module], what: str, keys: bool = False
) -> dict[nn.Module, tuple[Place, ...]]:
    found: dict[nn.Module, tuple[Place, ...]] = {}
    known = [name for name, module in modules.items() if can_change(module)]
    for each in [places] if isinstance(places, str | Place) else places:
        place = Place(each) if isinstance(each, str) else each
        if place.name not in known:
            raise InputError(
                f'{what}: there is no attention "{place.name}" that can be changed.{suggest(place.name, known)} '
                f"Known: {', '.join(known) or 'none'}."
            )
        module = modules[place.name]
        heads = int(getattr(module, "heads", 1))
        if place.head is not None and not 0 <= place.head < heads:
            raise InputError(f"{what}: {place.name} has heads 0 to {heads - 1}; got {place.head}.")
        if place.key is not None and not keys:
            raise InputError(f"{what}: {place.name}: changes all weights of a query; leave out the key {place.key}.")
        found[module] = (*found.get(module, ()), place)
    return found


def changed(attention: nn.Module, weigh: Normalizer) -> Normalizer:
    """`weigh`, or where something changes the weights of `attention`, what weighs in its place."""
    now = active_interventions()
    return Changed(attention, weigh, now) if now.reaches(attention) else weigh


class Changed(Normalizer):
    """A normalizer whose weights are changed.

    Args:
        attention: the module whose weights they are.
        weigh: its own normalizer.
        now: what is changed.
    """

    def __init__(self, attention: nn.Module, weigh: Normalizer, now: Interventions) -> None:
        super().__init__(0)
        self.sequential = weigh.sequential
        self._weigh = [weigh]  # in a list, so that it belongs to its own module only
        self._cut, self._uniform = now.cut.get(attention, ()), now.uniform.get(attention, ())
        self._argmax, self._temperature = now.argmax.get(attention, ()), now.temperature.get(attention, ())

    def forward(
        self,
        scores_BHTS: Tensor,
        allowed: Tensor | None,
        query_BHTE: Tensor,
        position_BT: Tensor,
        previous_BHTS: Tensor | None = None,
    ) -> Tensor:
        """(B, H, T, S)."""
        may_BHTS = torch.ones_like(scores_BHTS, dtype=torch.bool) if allowed is None else allowed
        may_BHTS = may_BHTS.expand_as(scores_BHTS).clone()
        for place in self._cut:
            may_BHTS &= ~_reached(place, scores_BHTS, position_BT)
        left_BHT1 = may_BHTS.any(-1, keepdim=True)
        for place, value in self._temperature:
            scores_BHTS = torch.where(_reached(place, scores_BHTS, position_BT), scores_BHTS / value, scores_BHTS)
        alpha_BHTS = self._weigh[0](scores_BHTS, may_BHTS | ~left_BHT1, query_BHTE, position_BT, previous_BHTS)
        for place in self._uniform:
            mean_BHTS = may_BHTS / may_BHTS.sum(-1, keepdim=True)
            alpha_BHTS = torch.where(_reached(place, scores_BHTS, position_BT), mean_BHTS.to(alpha_BHTS), alpha_BHTS)
        for place in self._argmax:
            greatest_BHT = scores_BHTS.masked_fill(~may_BHTS, -torch.inf).argmax(-1)
            one_BHTS = nn.functional.one_hot(greatest_BHT, scores_BHTS.shape[-1]).to(alpha_BHTS)
            alpha_BHTS = torch.where(_reached(place, scores_BHTS, position_BT), one_BHTS, alpha_BHTS)
        return torch.where(left_BHT1, alpha_BHTS, 0.0)


def _reached(place: Place, scores_BHTS: Tensor, position_BT: Tensor) -> Tensor:
    """bool, broadcastable to (B, H, T, S): which weights a place means."""
    _, heads, _, keys = scores_BHTS.shape
    head_H = torch.arange(heads, device=scores_BHTS.device)
    key_S = torch.arange(keys, device=scores_BHTS.device)
    of_head = head_H == place.head if place.head is not None else head_H >= 0
    of_key = key_S == place.key if place.key is not None else key_S >= 0
    of_query = position_BT == place.query if place.query is not None else position_BT >= 0
    return of_head[:, None, None] & of_query[:, None, :, None] & of_key
