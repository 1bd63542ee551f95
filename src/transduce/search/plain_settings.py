"""Settings of a search that is one call of a kernel: greedy, or a beam; read without pydantic, which is slow to load.

`transduce.search.settings` has all settings of all methods. What both need is here: what settings asked for mean to
those of the recipe, and which do not go together.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from transduce.core.errors import InputError
from transduce.core.registry import suggest
from transduce.search.keys import KEYS, OTHER_NAMES, READ_BY_ONE
from transduce.search.length import LengthRule

if TYPE_CHECKING:
    from transduce.layers.fused_search import Stopping

READ = {name: key for name, key in KEYS.items() if key.plain == "read"}
"""What such a search reads."""
METHODS = ("greedy", "beam")


def in_place_of(recipe: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe's settings with those asked for in their place.

    A beam asked for is searched, whatever method the recipe has. What the recipe says to its own method alone means
    nothing to another; an alpha tuned for one length rule means nothing to another, so a rule asked for comes with the
    default alpha.

    Raises:
        InputError: a beam is asked of a model that has none.
    """
    if overrides.get("beam") is not None and "method" not in overrides:
        if recipe["method"] == "mask_predict":
            raise InputError(
                "search.beam: this model writes all words at once and has no beam; ask for iterations and lengths."
            )
        overrides = {**overrides, "method": "ctc" if recipe["method"] == "ctc" else "beam"}
    method = overrides.get("method", recipe["method"])
    meant_otherwise = {name for name, reader in READ_BY_ONE.items() if reader != method}
    if overrides.get("length_rule", recipe["length_rule"]) != recipe["length_rule"]:
        meant_otherwise.add("alpha")
    return {**{name: value for name, value in recipe.items() if name not in meant_otherwise}, **overrides}


def limit_of(source_length: int, factor: float, offset: int, at_limit: str = "stop") -> int:
    """The maximum number of tokens that are searched, for a source of `source_length` tokens or frames.

    The end token is one of them; with at_limit = "end", an output that reaches the limit has it behind them.
    """
    return max(1, int(factor * source_length) + offset - (at_limit == "end"))


def nbest_problem(method: str, nbest: int, beam: int) -> str | None:
    """Why greedy search or a beam cannot list so many outputs; None if it can."""
    if method == "greedy" and nbest > 1:
        return f'nbest = {nbest}: method "greedy" finds one output; use "beam" or "sample"'
    if method in ("beam", "ctc") and nbest > beam:
        return f"nbest = {nbest} is more than beam = {beam}: a beam of {beam} finds no more"
    return None


def prune_problem(method: str, prune: float | None) -> str | None:
    """Why there is nothing to prune; None if there is."""
    if prune is None or method == "beam":
        return None
    return f'prune = {prune}: only method "beam" has hypotheses to drop, not "{method}"'


@dataclass(frozen=True, slots=True)
class PlainSearch:
    """Those of the keys of `transduce.search.settings.Search` that such a search reads; see there."""

    method: str
    beam: int
    prune: float | None
    length_rule: Any
    alpha: float
    stopping: "Stopping"
    at_limit: Literal["stop", "end"]
    nbest: int
    max_length_factor: float
    max_length_offset: int
    shortlist: int | None

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """The settings in a table, those that are missing being the defaults.

        Raises:
            InputError: an unknown key, a wrong value, keys that do not go together, or what needs a search that goes
                step by step.
        """
        found = {name: table.get(name, key.default) for name, key in READ.items()}
        problems = [problem for name, value in table.items() if (problem := _problem(name, value))]
        if not problems:
            method, nbest, prune = found["method"], found["nbest"], found["prune"]
            more = nbest_problem(method, nbest, found["beam"]), prune_problem(method, prune)
            problems = [f"search: {problem}." for problem in more if problem]
        if problems:
            raise InputError(problems)
        values: dict[str, Any] = {
            name: float(value) if READ[name].kind is float and value is not None else value
            for name, value in found.items()
        }
        return cls(**values)

    @classmethod
    def asked(cls, recipe: Mapping[str, Any], overrides: Mapping[str, Any]) -> Self:
        """The recipe's settings with those asked for in their place. Raises InputError as `of` and `in_place_of` do."""
        if idle := [name for name in overrides if is_idle(name)]:
            raise InputError(f"search.{name}: greedy search and beams do not use it. Leave it out." for name in idle)
        return cls.of(in_place_of({"method": "beam", "length_rule": "power", **recipe}, overrides))

    @property
    def length(self) -> LengthRule:
        """How outputs of different lengths are compared."""
        return LengthRule(self.length_rule, self.alpha)

    def limit(self, source_length: int) -> int:
        """The maximum number of tokens that are searched, for a source of `source_length` tokens."""
        return limit_of(source_length, self.max_length_factor, self.max_length_offset, self.at_limit)


def is_idle(name: str) -> bool:
    """Whether greedy search and beams have no use for a key."""
    return name in KEYS and KEYS[name].plain == "unread"


def _problem(name: str, value: Any) -> str | None:
    """What is wrong with one setting."""
    if name not in KEYS:
        nearest = f' Did you mean "{OTHER_NAMES[name]}"?' if name in OTHER_NAMES else suggest(name, list(KEYS))
        return f'search: unknown key "{name}".{nearest}'
    if KEYS[name].plain == "steps":
        needs = "needs a search that goes step by step, and so the whole package with torch: pip install transduce"
        return None if value == KEYS[name].default else f"search.{name} = {value}: {needs}."
    if is_idle(name):
        return None
    kind = METHODS if name == "method" else KEYS[name].kind
    if isinstance(kind, tuple):
        if value in kind:
            return None
        more = " For others install the whole package with torch: pip install transduce." * (name == "method")
        return f"search.{name}: expected one of {', '.join(kind)}; got {value!r}.{more}"
    return _number_problem(name, value)


def _number_problem(name: str, value: Any) -> str | None:
    key, bounds = KEYS[name], KEYS[name].bounds
    if value is None and key.default is None:
        return None
    kinds = (int, float) if key.kind is float else (int,)
    fits = type(value) in kinds and math.isfinite(value)
    fits = fits and value >= bounds.get("ge", -math.inf) and value <= bounds.get("le", math.inf)
    if fits and value > bounds.get("gt", -math.inf):
        return None
    least = f"above {bounds['gt']}" if "gt" in bounds else f"of at least {bounds['ge']}"
    most = f" and at most {bounds['le']:,}" if "le" in bounds else ""
    kind = "a number" if key.kind is float else "a whole number"
    return f"search.{name}: expected {kind} {least}{most}; got {value!r}."
