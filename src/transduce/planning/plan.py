"""From files to a training: look at the data, decide, measure the speed, fit it into the time, promise."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transduce.core.cache import cache_folder
from transduce.core.config import UNSET
from transduce.core.errors import InputError
from transduce.core.model_file import load_model_file
from transduce.planning.decisions import Decision, Size, decide, deserved_updates, schedule, smaller, usual_size
from transduce.planning.facts import Facts, facts_of
from transduce.planning.inputs import Inputs, Named, pair_files, resolve_inputs
from transduce.planning.promise import Promise, in_words, promise
from transduce.planning.speed import Speed, measure
from transduce.recipe.recipe import Recipe, Table, lay_over, parse_recipe
from transduce.training.display import Display
from transduce.training.examination import examine_data

USUAL = 60.0  # minutes, where no time is given
ENOUGH = 0.5  # of the updates that the data deserves; with less, a smaller model learns more
FIRST = 1000  # updates, as long as none are decided
FULL = 0.95  # of the time is planned for
GIVEN = "chosen by you"


@dataclass(frozen=True)
class TrainingPlan:
    """What is decided for a training, and how long it takes.

    table: the recipe's. decisions: its keys with their reasons.
    """

    name: str
    table: Table
    decisions: list[Decision]
    promised: Promise

    @property
    def recipe(self) -> Recipe:
        """Parsed, with all defaults."""
        return parse_recipe({"name": self.name, **self.table}, self.name)


def make_plan(
    named: Named,
    given: Table,
    minutes: float | None,
    display: Display,
    name: str | None = None,
    force: bool = False,
) -> TrainingPlan:
    """Examine the data, and decide everything that `named` and `given` leave open.

    Args:
        given: a recipe's table, of the keys that are chosen already.
        minutes: the time that it may take, planning included; None: as much as the data deserves, an hour at most.
        name: of the training.
        force: of data that is certainly wrong, tell so and go on.

    Raises:
        InputError: what `resolve_inputs` and `examine_data` refuse; a wrong key; too little time.
    """
    begun = time.monotonic()
    given = _checked(given)
    inputs = resolve_inputs(named)
    train = (pair_files(inputs.train),)
    for note in inputs.notes:
        display.warn(note)
    facts = replace(facts_of(train, Path(), inputs.languages), languages_named=named.languages is not None)
    for line in facts.to_lines():
        display.tell(line)
    planner = _Planner(name or inputs.name, inputs, facts, given, display, begun)
    examine_data(planner.first_recipe(usual_size(facts)), cache_folder(), display.warn, force)
    return planner.plan(minutes)


def _checked(given: Table) -> Table:
    """`given`, from which a `training.start` that is unset is taken out.

    Raises:
        InputError: what is looked at before a recipe is made, which tells all else, is of the wrong kind.
    """
    training = given.get("training", {})
    if not isinstance(training, dict):
        raise InputError(f"training={training}: expected a key of this section, as in training.updates=2000.")
    start, updates = training.get("start"), training.get("updates")
    problems = []
    if start is not None and not isinstance(start, str):
        problems.append(f"training.start={start}: expected the name of a model file or a run directory.")
    if updates is not None and (not isinstance(updates, int) or isinstance(updates, bool)):
        problems.append(f"training.updates={updates}: expected a whole number.")
    if problems:
        raise InputError(problems)
    if start == UNSET:
        del training["start"]
    return given


class _Planner:
    def __init__(self, name: str, inputs: Inputs, facts: Facts, given: Table, display: Display, begun: float) -> None:
        self.name, self.inputs, self.facts, self.given, self.display = name, inputs, facts, given, display
        self.since = begun
        training = given.get("training", {})
        self.start: str | None = training.get("start")
        self.begun = load_model_file(self.start).config["model"] if self.start else {}
        self.keeps = self.start is not None and training.get("start_tokenizer", "keep") == "keep"

    def plan(self, minutes: float | None) -> TrainingPlan:
        """The largest model that can be trained in the time."""
        size: Size | None = usual_size(self.facts)
        wanted = self.given.get("training", {}).get("updates")
        while size is not None:
            speed = self._measured(size)
            limit = _fitting(speed, self._left(minutes))
            deserved = deserved_updates(self.facts)
            lower = None if wanted or self.start or "model" in self.given else smaller(size)
            if wanted or limit >= ENOUGH * deserved or lower is None:
                break
            self.display.tell(
                f"A model {size.width} wide would make {max(0, limit):,} updates in that time; the data deserves "
                f"{deserved:,}. A smaller one is tried."
            )
            size = lower
        if wanted:
            updates, reason = wanted, GIVEN
        else:
            updates, reason = self._updates(deserved, limit, minutes)
        return self._made(size, updates, reason, minutes, speed)

    def _left(self, minutes: float | None) -> float:
        """Seconds for training and tests: of a time that is given, what planning has left of it."""
        used = time.monotonic() - self.since if minutes else 0.0
        return FULL * 60 * (minutes or USUAL) - used

    def _updates(self, deserved: int, limit: int, minutes: float | None) -> tuple[int, str]:
        if limit < 1:
            raise InputError(
                f"--time: {in_words(60 * (minutes or USUAL))} is too short for the tests alone. Give it more time."
            )
        if limit < deserved:
            room = f"{in_words(60 * (minutes or USUAL))}{'' if minutes else ', the most without --time'}"
            return limit, f"what fits into {room}; the data deserves {deserved:,}"
        if minutes is None or limit == deserved:
            return deserved, "grows with the cube root of the text"
        updates = min(limit, 2 * deserved)
        most = "; more would not help" if updates < limit else ""
        return updates, f"there is time for more than the {deserved:,} that the data deserves{most}"

    def _measured(self, size: Size) -> Speed:
        """The speed of a recipe with a model of this size."""
        with self.display.console.status("measuring the speed"):
            return measure(self.first_recipe(size), self.display)

    def first_recipe(self, size: Size) -> Recipe:
        """With a model of this size, before it is known how long it trains."""
        table, _ = self._table(size, FIRST, "", None)
        return parse_recipe({"name": self.name, **table}, self.name)

    def _made(self, size: Size | None, updates: int, reason: str, minutes: float | None, speed: Speed) -> TrainingPlan:
        limit = None if minutes is None else (self._left(minutes) - speed.tests - speed.start) / 60
        table, decisions = self._table(size, updates, reason, limit)
        promised = promise(speed, table["training"]["updates"], table["training"]["validate_every"])
        return TrainingPlan(self.name, table, decisions, promised)

    def _table(
        self, size: Size | None, updates: int, reason: str, minutes: float | None
    ) -> tuple[Table, list[Decision]]:
        data = self.given.get("data", {})
        data = data if isinstance(data, dict) else {}
        files, inputs = list[Decision](), self.inputs
        files.append(Decision("data.train", [inputs.train], "your data"))
        if inputs.validation and "validation" not in data:
            files.append(Decision("data.validation", inputs.validation, "found beside the training files"))
        if inputs.tests and "test" not in data:
            files.append(Decision("data.test", inputs.tests, "found beside the training files"))
        validation, test = "validation" in data or bool(inputs.validation), "test" in data or bool(inputs.tests)
        decided = [*files, *decide(self.facts, validation, test, size), *schedule(self.facts, updates, reason)]
        decided = self._fine_tuned(decided) if self.start else decided
        if minutes is not None:
            reason = "the time given, less that of the tests; the learning rate falls to 0 at its end"
            decided.append(Decision("training.minutes", round(minutes, 2), reason))
        table = lay_over(_nested(decided), self.given)
        reasons = {each.key: each for each in decided}
        found = list[Decision]()
        for key, value in _flat(table, {*reasons}):
            same = key in reasons and reasons[key].value == value
            found.append(reasons[key] if same else Decision(key, value, GIVEN))
        return table, found

    def _fine_tuned(self, decided: list[Decision]) -> list[Decision]:
        """The same for a training from another model: with its sizes, its embeddings, and its tokenizers if kept."""
        data = {"train": [self.inputs.train]}
        usual = parse_recipe({"name": self.name, "data": data, "model": {"kind": self.begun["kind"]}}, self.name)
        known = usual.to_table()["model"] | {"kind": None}
        reason = "as in the model that training starts from"
        sizes = [
            Decision(f"model.{key}", value, reason) for key, value in self.begun.items() if known.get(key) != value
        ]
        own = ("model.", "training.embeddings", *(("tokenizer.",) if self.keeps else ()))
        return [*(each for each in decided if not each.key.startswith(own)), *sizes]


def _fitting(speed: Speed, seconds: float) -> int:
    """How many updates fit, with their validations, and the tests."""
    left = seconds - speed.start - speed.tests - 13 * speed.validation
    updates = int(left / speed.update)
    return updates // 10 * 10 if updates > 100 else updates


def _nested(decisions: Sequence[Decision]) -> Table:
    table: Table = {}
    for key, value, _ in decisions:
        *sections, last = key.split(".")
        inner = table
        for section in sections:
            inner = inner.setdefault(section, {})
        inner[last] = value
    return table


def _flat(table: Table, known: set[str], above: str = "") -> list[tuple[str, Any]]:
    found = list[tuple[str, Any]]()
    for key, value in table.items():
        name = f"{above}{key}"
        if isinstance(value, dict) and name not in known:
            found += _flat(value, known, f"{name}.")
        else:
            found.append((name, value))
    return found
