"""A comparison: one recipe, and variants that each change some of its keys.

    base = "../multi30k-de-en.toml"       # the recipe that all stand on
    [compare]                             # budget, seeds, metrics, searches
    [training] [model] ...                # laid over the base, for all variants
    [variants.pre]                        # laid over that: one table a variant
    model = { norm = "pre" }
    [compare.axis]                        # what changes beside the variants, see `transduce.compare.axis`
    [variants.recurrent]                  # a [model] of another kind replaces the one below
    model = { kind = "rnn" }

Data, tokenizer, batches and batches per update must be the same for all; task.direction may differ.
"""

import math
import re
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import Field, ValidationError

from transduce.compare.axis import AxisConfig, Number
from transduce.core.config import Config
from transduce.core.config_errors import explain
from transduce.core.errors import InputError
from transduce.core.names import Name, checked_name
from transduce.core.overrides import apply_overrides, set_key
from transduce.core.registry import resolve, suggest
from transduce.core.trust import allow_code
from transduce.metrics.evaluate import unknown
from transduce.recipe.recipe import STAGES, Recipe, Table, lay_over, parse_recipe, read_table
from transduce.search.dispatch import AT_ONCE, only_method
from transduce.search.keys import READ_BY_ONE
from transduce.search.settings import Search, search_settings
from transduce.tasks.base import task_class
from transduce.training.run_directory import differences
from transduce.training.timed_schedule import ENDING

Unit = Literal["minutes", "tokens", "flops"]

UNLIMITED = 10**9  # updates, where time ends the training
TIMES = {"s": 1 / 60, "m": 1.0, "min": 1.0, "h": 60.0}
PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
FORM = re.compile(
    r"(?P<number>\d+(\.\d*)?(e\+?\d+)?)\s*((?P<time>s|min|m|h)|(?P<prefix>[kKMGTPE]?)(?P<what>tok|flop)s?)"
)


class Budget(NamedTuple):
    """An amount of time, tokens or operations, and the text it was given as."""

    amount: float
    unit: Unit
    text: str


def parse_budget(text: str) -> Budget:
    """`20m`, `1.5h`, `90s` of training time; `5Mtok` target tokens; `1e15flop` or `1Pflop`.

    Raises:
        InputError: something else.
    """
    found = FORM.fullmatch(text.strip())
    if not found or not 0 < float(found["number"]) < math.inf:
        raise InputError(
            f'"{text}" is not a budget: expected time (20m, 1.5h), tokens (5Mtok) or operations (1e15flop).'
        )
    number = float(found["number"])
    if found["time"]:
        return Budget(number * TIMES[found["time"]], "minutes", text)
    return Budget(number * PREFIXES[found["prefix"]], "tokens" if found["what"] == "tok" else "flops", text)


SHARED = ("task", "data", "tokenizer", "batch", "training.accumulate", "training.threads", "training.start")
FREE = ("task.direction",)  # of these: the same tokens in another order


class CompareConfig(Config):
    """How much each variant may spend, how often it is trained, and how it is judged."""

    budget: str = "20m"
    """Of each training: time (20m, 1.5h), target tokens (5Mtok) or operations (1e15flop)."""
    patience: int | None = Field(default=None, ge=1)
    """Early stopping: a training ends after this many validations in a row without improvement, and its best weights
    are scored. Unset: all trainings spend their budget."""
    seeds: tuple[int, ...] = Field(default=(1,), min_length=1)
    """Every variant is trained once with each."""
    metrics: tuple[str, ...] = ()
    """By name, the one that counts most first; the recipe's by default."""
    searches: dict[Name, dict[str, Any]] = Field(default={"greedy": {"method": "greedy"}, "beam": {}}, min_length=1)
    """How the tests are decoded: by name, keys of [search] to replace. The last one decides. A model that writes all
    words at once has one method, which takes the place of every other; of a CTC model greedy is the best path."""
    decode_batch: int = Field(default=64, ge=1)
    """Lines decoded together, where speed is measured."""
    lengths: tuple[int, ...] = Field(default=(32, 64, 128, 256, 512, 1024), min_length=2)
    """Sequence lengths at which time is measured."""
    axis: AxisConfig | None = None
    """What changes beside the variants, such as the number of training pairs; see [compare.axis]."""


@dataclass(frozen=True)
class ComparisonConfig:
    """A comparison, checked: every variant with its recipe, whose seed and budget are still open.

    changes: the keys that each variant sets.
    searches: by variant and name, resolved.
    points: where a key of the recipe is the axis, the comparison at each of its values, which has no axis. `variants`
        are then those of the last.
    """

    name: str
    config: CompareConfig
    budget: Budget
    variants: dict[str, Recipe]
    changes: dict[str, Table]
    searches: dict[str, dict[str, Search]]
    points: "dict[Number, ComparisonConfig]" = field(default_factory=dict)

    @property
    def any_recipe(self) -> Recipe:
        """Of the first variant: data, tokenizer and task are those of all."""
        return next(iter(self.variants.values()))

    @property
    def metrics(self) -> tuple[str, ...] | None:
        """None: those of the recipe."""
        return self.config.metrics or None

    def search_tables(self, variant: str) -> dict[str, Table]:
        """The variant's searches as JSON has them."""
        found = self.searches[variant].items()
        return {name: each.model_dump(mode="json", exclude_none=True) for name, each in found}

    def training(self, variant: str, seed: int, updates: int | None) -> Recipe:
        """What is trained: the variant's recipe with its seed, ended by the budget or by the comparison's patience.

        The tests come later.

        Args:
            updates: how many the budget buys; None where it is time.
        """
        recipe = self.variants[variant]
        minutes = self.budget.amount if updates is None else None
        ends = {"minutes": minutes, "updates": updates or UNLIMITED, "patience": self.config.patience}
        training = recipe.training.model_copy(update={**ends, "seed": seed, "samples": 0})
        return recipe.model_copy(
            update={"name": variant, "training": training, "data": recipe.data.model_copy(update={"test": {}})}
        )


def load_comparison(path: Path, overrides: Iterable[str] = (), budget: str | None = None) -> ComparisonConfig:
    """The comparison in a TOML file, with `a.b=value` overrides for all variants, and perhaps another budget.

    Raises:
        InputError: what is wrong with any variant; variants that do not share data, tokenizer and batches; a
            schedule that needs to know its end under a budget of time; all at once.
    """
    table = read_table(path)
    table.pop("name", None)
    variants = table.pop("variants", {})
    config = _config(table.pop("compare", {}), path, budget)
    if not isinstance(variants, dict) or not variants:
        raise InputError(f"{path}: name at least one variant: [variants.NAME], with the keys that it changes.")
    common, overrides, axis = table, list(overrides), config.axis
    allow_code([apply_overrides({}, overrides), [*config.metrics]])
    if axis is None or not axis.values:
        return _at_one(path, config, common, variants, overrides)
    points, problems = {}, list[str]()
    for value in axis.values:
        try:
            alone = config.model_copy(update={"axis": None})
            point = _at_one(path, alone, common, variants, overrides, (axis.key, value))
            points[value] = replace(point, name=f"{path.stem}, {axis.title} = {value:,}")
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    return replace(points[axis.values[-1]], name=path.stem, config=config, points=points)


def _at_one(
    path: Path,
    config: CompareConfig,
    common: Table,
    variants: Table,
    overrides: list[str],
    point: tuple[str, Number] | None = None,
) -> ComparisonConfig:
    """The comparison, perhaps with one more key of all its recipes."""
    recipes, problems = {}, []
    for name, changes in variants.items():
        try:
            recipes[name] = _recipe(path, name, common, changes, overrides, point)
        except InputError as error:
            problems += error.problems
    if not problems:
        problems = [*_unfair(path, recipes), *_wrong_names(path, recipes), *_wrong_metrics(path, config)]
        problems += _wrong_tests(path, config, recipes)
    limit = parse_budget(config.budget)
    problems += _endless(path, recipes, limit)
    if problems:
        raise InputError(problems)
    if not _writes_text(next(iter(recipes.values()))):
        config = config.model_copy(update={"searches": {"prediction": {}}})
    searches = _searches(path, config, recipes)
    return ComparisonConfig(path.stem, config, limit, recipes, variants, searches)


def _recipe(
    path: Path, name: str, common: Table, changes: Any, overrides: list[str], point: tuple[str, Number] | None
) -> Recipe:
    where = f"{path}: variant {name}"
    try:
        checked_name(name)
    except ValueError as error:
        raise InputError(f"{where}: its name: {error}.") from None
    if not isinstance(changes, dict):
        raise InputError(f"{where}: expected a table of the keys that it changes; got {changes!r}.")
    table = apply_overrides(lay_over(deepcopy(common), deepcopy(changes)), overrides)
    if point is not None:
        try:
            set_key(table, *point)
        except InputError as error:
            raise InputError(f"{path}: compare.axis.key: {problem}" for problem in error.problems) from None
    return parse_recipe({**table, "name": name}, where)


def _config(table: Any, path: Path, budget: str | None) -> CompareConfig:
    try:
        return CompareConfig.model_validate({**table, **({"budget": budget} if budget else {})})
    except ValidationError as error:
        raise InputError([f"{path}: {problem}" for problem in explain(error, CompareConfig, "compare")]) from None


def _unfair(path: Path, recipes: dict[str, Recipe]) -> list[str]:
    """What is not the same for all variants and should be."""
    (first, base), *others = recipes.items()
    problems = []
    if base.batch.tokens == "auto":
        problems.append(f'{path}: batch.tokens = "auto" can give each variant other batches; give a number.')
    problems += [
        f"{path}: {name}: its [{section}] would be trained outside the budget; leave that out."
        for name, recipe in recipes.items()
        for section in STAGES
        if getattr(recipe, section)
    ]
    for name, recipe in others:
        keys = sorted(differences(base.to_table(), recipe.to_table()))
        keys = [key for key in keys if key.startswith(SHARED) and key not in FREE]
        if keys:
            problems.append(
                f"{path}: {first} and {name} cannot be compared: these keys differ: {', '.join(keys)}. "
                "All variants need the same data, tokenizer and batches."
            )
    return problems


def _wrong_names(path: Path, recipes: dict[str, Recipe]) -> list[str]:
    folders = [folder_name(name) for name in recipes]
    clashes = [name for name in recipes if folders.count(folder_name(name)) > 1]
    return [f"{path}: the variants {', '.join(clashes)} would share a folder; rename them."] if clashes else []


def _wrong_metrics(path: Path, config: CompareConfig) -> list[str]:
    return [f"{path}: compare.metrics: {problem}" for problem in unknown(config.metrics)]


def _wrong_tests(path: Path, config: CompareConfig, recipes: dict[str, Recipe]) -> list[str]:
    """Tests on the axis that the recipe does not have."""
    known = list(getattr(next(iter(recipes.values())).data, "test", {}))
    return [
        f'{path}: compare.axis.tests: data.test has no "{name}".{suggest(name, known)} It has: {", ".join(known)}.'
        for name in (config.axis.tests if config.axis else ())
        if name not in known
    ]


def _endless(path: Path, recipes: dict[str, Recipe], budget: Budget) -> list[str]:
    """A schedule that falls to 0 at the last update cannot know which that is when time decides."""
    if budget.unit != "minutes":
        return []
    schedules = {name: recipe.training.schedule for name, recipe in recipes.items()}
    ending = [f'{name}: "{schedule}"' for name, schedule in schedules.items() if schedule in ENDING]
    if not ending:
        return []
    return [
        f"{path}: training.schedule is one that ends at a known update, and a budget of {budget.text} has none "
        f"({', '.join(ending)}). Choose inverse_sqrt or constant, or a budget in tokens (5Mtok) or operations "
        "(1e15flop)."
    ]


def _writes_text(recipe: Recipe) -> bool:
    """Whether outputs are searched for: labels are not."""
    return task_class(recipe).kinds["target"] == "tokens"


def _searches(path: Path, config: CompareConfig, recipes: dict[str, Recipe]) -> dict[str, dict[str, Search]]:
    """Of every variant, as its recipe and its model have them."""
    found: dict[str, dict[str, Search]] = {variant: {} for variant in recipes}
    problems: list[str] = []
    for variant, recipe in recipes.items():
        for name, asked in config.searches.items():
            where = f"{path}: compare.searches.{name}"
            try:
                search = search_settings(recipe.search, _suited(recipe, asked))
                if search.shortlist is not None:
                    problems.append(f"{where}: compared models have no shortlist; leave it out.")
                only = only_method(resolve("models", recipe.model.kind))  # type: ignore[attr-defined]
                if only is None and search.method in AT_ONCE:
                    kind = AT_ONCE[search.method]
                    problems.append(f'{where}: method "{search.method}" is for {kind} models; {variant} is not one.')
                found[variant][name] = search
            except InputError as error:
                problems += [f"{where}: {problem}" for problem in error.problems]
    if problems:
        raise InputError(list(dict.fromkeys(problems)))
    return found


def _suited(recipe: Recipe, asked: Table) -> Table:
    """What is asked of all variants, for a model that has one method alone: without what belongs to other methods."""
    only = only_method(resolve("models", recipe.model.kind))  # type: ignore[attr-defined]
    if only is None or asked.get("method") == only:
        return asked
    others = {"beam", *READ_BY_ONE} if only == "mask_predict" else {*READ_BY_ONE}
    kept = {key: value for key, value in asked.items() if key not in others}
    best_path = {"beam": 1} if only == "ctc" and asked.get("method", recipe.search.method) == "greedy" else {}
    return {**kept, "method": only, **best_path}


def folder_name(variant: str) -> str:
    """The variant's name with nothing that a file system could mind."""
    return re.sub(r"[^\w.-]+", "-", variant).strip(".-") or "variant"
