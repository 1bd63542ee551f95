"""From files to a training: look at the data, decide, measure the speed, fit it into the time, promise."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from transduce.core.cache import cache_folder
from transduce.core.config import UNSET
from transduce.core.errors import InputError
from transduce.data.pairs.inputs import Inputs, Named
from transduce.planning.decisions import FEWEST_BETWEEN, VALIDATIONS, Decision, Size, affordable_validations
from transduce.planning.fine_tuning import affordable
from transduce.planning.promise import Promise, in_words, promise
from transduce.planning.protocols import Start, TaskPlanner
from transduce.planning.recognition import planner_of
from transduce.planning.speed import SENTENCES, Speed, measure
from transduce.recipe.recipe import Recipe, Table, lay_over, parse_recipe
from transduce.training.display import Display
from transduce.training.examination import examine_data

USUAL = 60.0  # minutes, where no time is given
ENOUGH = 0.5  # of the updates that the data deserves; with less, a smaller model learns more
FIRST = 1000  # updates, as long as none are decided
FULL = 0.95  # of the time is planned for
MEASURING = 0.1  # of the time is for measuring the speed, at most
LEAST = 0.25  # of the time is for training, at least, however long planning and tests take
WRITING = 0.1  # of the time is for pairs that a model writes, at most
HELPFUL = 2  # times the updates that the data deserves; more would not help
GIVEN = "chosen by you"


@dataclass(frozen=True)
class TrainingPlan:
    """What is decided for a training, and how long it takes.

    table: the recipe's. decisions: its keys with their reasons.
    since: when it was asked for, by `time.monotonic`; None: in an earlier process.
    """

    name: str
    table: Table
    decisions: list[Decision]
    promised: Promise
    since: float | None = None

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
    since: float | None = None,
) -> TrainingPlan:
    """Examine the data, and decide everything that `named` and `given` leave open.

    Args:
        given: a recipe's table, of the keys that are chosen already.
        minutes: the time that it may take, planning included; None: as much as the data deserves, an hour at most.
        name: of the training.
        force: of data that is certainly wrong, tell so and go on.
        since: when it was asked for, by `time.monotonic`; None: now.

    Raises:
        InputError: what `planner_of` and `examine_data` refuse; a wrong key; too few examples.
    """
    begun = time.monotonic() if since is None else since
    given = _checked(given)
    task = planner_of(named)
    for note in task.inputs.notes:
        display.warn(note)
    for line in task.to_lines():
        display.tell(line)
    for warning in task.warnings():
        display.warn(warning)
    planner = _Planner(name or task.inputs.name, task, task.inputs.below(named.root), given, display, begun)
    examine_data(planner.first_recipe(task.usual_size()), cache_folder(), display.warn, force)
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


class _Length(NamedTuple):
    """Of a training.

    updates: the most, as the data deserves or somebody chose: never what a moment's speed allows.
    expected: so many fit into the time.
    reason: of `updates`.
    minutes: after which it ends if it has not before; None: it takes what the updates take.
    validations: how many there are; fewer where they would take much of the time.
    """

    updates: int
    expected: int
    reason: str
    minutes: float | None
    validations: int = VALIDATIONS


class _Planner:
    def __init__(
        self, name: str, task: TaskPlanner, inputs: Inputs, given: Table, display: Display, since: float
    ) -> None:
        self.name, self.task, self.inputs, self.given, self.display = name, task, inputs, given, display
        self.since = since
        training = given.get("training", {})
        self.start = Start.of(training)
        self.updates: int | None = training.get("updates")
        self.most_written: int | None = None  # pairs that the model to start from has time to write

    def plan(self, minutes: float | None) -> TrainingPlan:
        """The largest model that can be trained in the time."""
        size, deserved = self.task.usual_size(), self.task.deserved_updates(self.start)
        left = MEASURING * _seconds(minutes)
        speed, took = self._measured(size, left / 2)
        while True:
            fitting = _fitting(speed, self._for_training(speed, minutes))
            lower = None if self.updates or self.start or "model" in self.given else self.task.smaller(size)
            if lower is None or fitting >= ENOUGH * deserved:
                break
            self.display.tell(
                f"A model {size.width} wide would make {fitting:,} updates in that time; the data deserves "
                f"{deserved:,}. A smaller one is tried."
            )
            left -= took
            if took < left:
                speed, took = self._measured(lower, left / 2)
            else:
                speed = speed.of_a_smaller_model(lower.work / size.work)
            size = lower
        speed = self._with_time_to_write(speed, WRITING * _seconds(minutes))
        return self._made(size, self._length(deserved, fitting, speed, minutes), speed)

    def _with_time_to_write(self, speed: Speed, seconds: float) -> Speed:
        """No more pairs to replay than can be written in that time."""
        if not self.start or not speed.sentence:
            return speed
        self.most_written = int(seconds / (SENTENCES * speed.sentence))
        return speed._replace(start=min(speed.start, speed.validation + seconds))

    def _for_training(self, speed: Speed, minutes: float | None) -> float:
        """Seconds for updates and validations: of a time that is given, what planning, the last validation and the
        tests leave of it."""
        left = FULL * _seconds(minutes) - (self._used() if minutes else 0.0) - _afterwards(speed)
        return max(left, LEAST * _seconds(minutes))

    def _used(self) -> float:
        return time.monotonic() - self.since

    def _length(self, deserved: int, fitting: int, speed: Speed, minutes: float | None) -> _Length:
        helpful = 1 if self.start else HELPFUL
        wanted = self.updates or (helpful * deserved if minutes else deserved)
        if minutes is None and (self.updates or fitting >= wanted):
            reason = GIVEN if self.updates else self.task.why_deserved(self.start)
            validations = affordable_validations(wanted * speed.update, speed.validation)
            return _Length(wanted, wanted, reason, None, validations)
        seconds = self._for_training(speed, minutes)
        self._tell_short(seconds, speed, minutes)
        reason = GIVEN if self.updates else _why(deserved, helpful, fitting, minutes)
        validations = affordable_validations(seconds, speed.validation)
        return _Length(wanted, min(wanted, fitting), reason, seconds / 60, validations)

    def _tell_short(self, training: float, speed: Speed, minutes: float | None) -> None:
        """Where training and tests do not fit into the time, how long it will take instead."""
        after, used = _afterwards(speed), self._used() if minutes else 0.0
        if used + training + after <= _seconds(minutes):
            return
        self.display.warn(
            f"{in_words(_seconds(minutes))} are too short for all: planning took {in_words(self._used())}, and the "
            f"last validation and the tests will take about {in_words(after)}. {in_words(training)} are for training "
            f"nevertheless, so all will take about {in_words(self._used() + training + after)}."
        )

    def _measured(self, size: Size, seconds: float) -> tuple[Speed, float]:
        """The speed of a recipe with a model of this size, measured for so long, and how long it took."""
        begun = time.monotonic()
        with self.display.busy("measuring the speed"):
            return measure(self.first_recipe(size), self.display, seconds), time.monotonic() - begun

    def first_recipe(self, size: Size) -> Recipe:
        """With a model of this size, before it is known how long it trains."""
        table, _ = self._table(size, _Length(FIRST, FIRST, "", None))
        return parse_recipe({"name": self.name, **table}, self.name)

    def _made(self, size: Size, length: _Length, speed: Speed) -> TrainingPlan:
        table, decisions = self._table(size, length)
        every = table["training"]["validate_every"]
        promised = promise(speed, length.expected, every, self._used())
        return TrainingPlan(self.name, table, decisions, promised, self.since)

    def _table(self, size: Size, length: _Length) -> tuple[Table, list[Decision]]:
        data = self.given.get("data", {})
        data = data if isinstance(data, dict) else {}
        files, inputs = list[Decision](), self.inputs
        if inputs.root:
            files.append(Decision("data.root", inputs.root.as_posix(), "where your data lies"))
        files.append(Decision("data.train", [inputs.train], "your data"))
        for part, entries in (("validation", inputs.validation), ("test", inputs.tests)):
            if entries and part not in data:
                reason = "your data" if part in inputs.named else "found beside the training files"
                files.append(Decision(f"data.{part}", entries, reason))
        validation, test = "validation" in data or bool(inputs.validation), "test" in data or bool(inputs.tests)
        planned = self.task.schedule(length.updates, length.reason, length.expected, self.start, length.validations)
        decided = [*files, *self.task.decide(validation, test, size, self.start), *planned]
        if self.most_written is not None:
            decided = affordable(decided, self.most_written)
        if length.minutes is not None:
            reason = "the time, less that of planning and tests; the learning rate falls to 0 at its end"
            decided.append(Decision("training.minutes", max(0.01, round(length.minutes, 2)), reason))
        table = lay_over(_nested(decided), self.given)
        reasons = {each.key: each for each in decided}
        found = list[Decision]()
        for key, value in _flat(table, {*reasons}):
            same = key in reasons and reasons[key].value == value
            found.append(reasons[key] if same else Decision(key, value, GIVEN))
        return table, found


def _seconds(minutes: float | None) -> float:
    return 60 * (minutes or USUAL)


def _afterwards(speed: Speed) -> float:
    """Seconds that are not of `training.minutes`, or come when they are over."""
    return speed.start + speed.validation + speed.tests


def _fitting(speed: Speed, seconds: float) -> int:
    """How many updates fit, with the validations between them."""
    validations = affordable_validations(seconds, speed.validation)
    updates = int((seconds - validations * speed.validation) / speed.update)
    if updates < validations * FEWEST_BETWEEN:
        updates = max(1, int(seconds / (speed.update + speed.validation / FEWEST_BETWEEN)))
    return updates // 10 * 10 if updates > 100 else updates


def _why(deserved: int, helpful: int, fitting: int, minutes: float | None) -> str:
    """The reason of the most updates that there may be, under a time."""
    room = in_words(_seconds(minutes))
    if minutes is None:
        return f"what the data deserves; {room}, the most without --time, end it before, after about {fitting:,}"
    most = f"{helpful} times the {deserved:,} that the data deserves; more would not help"
    if helpful == 1:
        most = "what the data deserves from a trained model; more would not help"
    return most if fitting >= helpful * deserved else f"{most}. {room} end it before, after about {fitting:,}"


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
