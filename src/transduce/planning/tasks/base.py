"""What planners have in common whose model reads texts by an encoder: sizes, epochs, held-out parts, fine-tuning."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar, Protocol

from transduce.data.pairs.inputs import Inputs, Named
from transduce.planning import decisions, fine_tuning
from transduce.planning.decisions import Decision, Size, rounded
from transduce.planning.protocols import Start
from transduce.recipe.recipe import Table, parse_recipe, with_model_to_start_from

HELD_OUT_SHARE = (0.1, 1000)  # of the examples in validation, and in the test; at most so many
STARTED_EPOCHS = 3  # from a pretrained model
LEAST_UPDATES = 300
RATES = ((0, 1e-4), (385, 7e-5), (768, 5e-5))  # widths of a pretrained model from which it learns at this rate


class ReadFacts(Protocol):
    """What is asked of a corpus whose texts are read."""

    @property
    def examples(self) -> int:
        """How many there are."""

    @property
    def amount(self) -> int:
        """What sizes and epochs follow from: examples, or words."""

    @property
    def positions(self) -> int:
        """Tokens of an epoch, about, with the end of each text."""

    @property
    def longest(self) -> float:
        """Tokens that all but one text in a thousand stay below."""

    def to_lines(self) -> list[str]:
        """In sentences."""


class EncoderPlanner(ABC):
    """A `TaskPlanner` of one kind of task whose model reads texts.

    kind: of the task. model: its kind where it starts from a model for another task; readers: those for this task.
    unit: what `amount` counts.
    sizes: amounts from which a model is so wide. epochs: of up to `epochs_up_to`; of more, fewer in proportion to
    their root. most: tokens of a batch.
    """

    kind: ClassVar[str]
    model: ClassVar[str]
    readers: ClassVar[tuple[str, ...]]
    unit: ClassVar[str] = "examples"
    sizes: ClassVar[tuple[tuple[int, int], ...]]
    epochs: ClassVar[int]
    epochs_up_to: ClassVar[int]
    most: ClassVar[int] = 2048
    held_out_how: ClassVar[str] = ""
    """Which examples are held out, in words."""

    def __init__(self, named: Named) -> None:
        self.named, self.inputs = named, self.files(named)

    @staticmethod
    @abstractmethod
    def files(named: Named) -> Inputs:
        """The files that are meant, as entries of [data]. Raises InputError for what cannot be one."""

    @cached_property
    @abstractmethod
    def facts(self) -> ReadFacts:
        """Raises InputError for files that cannot be learnt from."""

    @abstractmethod
    def warnings(self) -> list[str]:
        """As `TaskPlanner.warnings`."""

    @abstractmethod
    def _task(self) -> list[Decision]:
        """[task], and what picks the best weights."""

    @abstractmethod
    def _tokenizer(self) -> list[Decision]: ...

    @abstractmethod
    def _model(self, size: Size) -> list[Decision]:
        """[model] and the learning rate of a training from nothing."""

    def to_lines(self) -> list[str]:
        """As `TaskPlanner.to_lines`."""
        return self.facts.to_lines()

    def usual_size(self) -> Size:
        """By the amount of data."""
        return Size([width for least, width in self.sizes if self.facts.amount >= least][-1], 1)

    def smaller(self, size: Size) -> Size | None:
        """As `TaskPlanner.smaller`."""
        found = [Size(width, 1) for _, width in self.sizes]
        return found[found.index(size) - 1] if size in found[1:] else None

    def deserved_updates(self, start: Start | None) -> int:
        """Some epochs of little data, fewer of more in proportion to its root; three from another model."""
        epoch = self.facts.positions / self._batch()
        if start:
            return max(1, rounded(STARTED_EPOCHS * epoch))
        epochs = self.epochs * min(1.0, math.sqrt(self.epochs_up_to / self.facts.amount))
        return rounded(max(LEAST_UPDATES, epochs * epoch))

    def why_deserved(self, start: Start | None) -> str:
        """As `TaskPlanner.why_deserved`."""
        if start:
            return f"{STARTED_EPOCHS} epochs, as a pretrained model learns quickly"
        epochs = self.deserved_updates(None) * self._batch() / self.facts.positions
        up_to = f"{self.epochs_up_to:,} {self.unit}"
        return f"about {rounded(epochs)} epochs; {self.epochs} of up to {up_to}, of more fewer"

    def decide(self, validation: bool, test: bool, size: Size, start: Start | None) -> list[Decision]:
        """As `TaskPlanner.decide`."""
        seen = f"about 60 updates see all examples; 512 at least, {self.most:,} at most"
        return [
            *self._task(),
            *self._held_out(validation, test),
            *self._filters(),
            *(self._tokenizer() if start is None or not start.keeps else ()),
            Decision("batch.tokens", self._batch(), seen),
            *(self._started(start) if start else self._model(size)),
        ]

    def schedule(
        self, updates: int, reason: str, expected: int, start: Start | None, validations: int
    ) -> list[Decision]:
        """As for pairs; from another model, the learning rate rises over a tenth of the updates."""
        planned = decisions.schedule(updates, reason, expected, validations)
        if start is None:
            return planned
        warmup = Decision("training.warmup", max(1, expected // 10), "a tenth of the updates, for a pretrained model")
        return [warmup if each.key == warmup.key else each for each in planned]

    def _held_out(self, validation: bool, test: bool) -> list[Decision]:
        share, most = HELD_OUT_SHARE
        count = max(1, min(most, round(share * self.facts.examples)))
        reason = f"a tenth of the examples, at most 1,000; {self.held_out_how}"
        missing = [part for part, there in (("validation", validation), ("test", test)) if not there]
        return [Decision(f"data.hold_out.{part}", count, reason) for part in missing]

    def _filters(self) -> list[Decision]:
        most = 2 ** math.ceil(math.log2(max(256.0, min(1024.0, self.facts.longest))))
        reason = (
            f"the longest texts have about {rounded(self.facts.longest):,} tokens; longer ones are dropped and told"
        )
        return [Decision("data.filters.max_tokens", most, reason)] if most != 256 else []

    def _batch(self) -> int:
        wanted = max(self.facts.positions / 60, 2 * min(1024.0, self.facts.longest), 512.0)
        return int(2 ** round(math.log2(min(float(self.most), wanted))))

    def _for_amount(self, size: Size) -> str:
        """Why a model has this size."""
        smaller = "; smaller than usual, as the time is short" if size != self.usual_size() else ""
        return f"for {self.facts.amount:,} {self.unit}{smaller}"

    def _started(self, start: Start) -> list[Decision]:
        """The model and the optimizer of a training from another model."""
        own = {} if start.model["kind"] in self.readers else {"kind": self.model}
        table: Table = {"task": {"kind": self.kind}, "training": {"start": start.path}, "model": own}
        model = with_model_to_start_from(table).get("model", {})
        return [*self._inherited(model), *_fine_tuning(start), *fine_tuning.measured(start, self.kind)]

    def _inherited(self, model: Table) -> Iterator[Decision]:
        """The keys of the model that are not as usual."""
        kind = model.get("kind", self.model)
        table = {"name": "start", "task": {"kind": self.kind}, "data": {"train": [self.inputs.train]}}
        usual = parse_recipe({**table, "model": {"kind": kind}}, "start").to_table()["model"] | {"kind": None}
        for key, value in {"kind": kind, **model}.items():
            if usual.get(key) != value and key != "dropout":
                yield Decision(f"model.{key}", value, "as in the model that training starts from")


def _fine_tuning(start: Start) -> list[Decision]:
    width = start.model.get("d_model", RATES[-1][0])
    rate = [rate for least, rate in RATES if width >= least][-1]
    return [
        Decision("model.dropout", 0.1, "usual where a pretrained model is fine-tuned"),
        Decision("training.optimizer", "adamw", "usual where a pretrained model is fine-tuned"),
        Decision("training.learning_rate", rate, f"for a pretrained model {width} wide"),
    ]
