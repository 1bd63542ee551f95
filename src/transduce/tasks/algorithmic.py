"""Binary vectors in and out: copy, repeat copy, associative recall, n-grams and sorting (Graves et al. 2014).

Nothing is read from files. An example of training is a function of (training.seed, its number), one that is held out of
(its set's name, its number), so a stopped training goes on with the examples that it would have seen.
"""

import json
import math
import zlib
from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator
from torch import nn

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.algorithmic import BITS, Algorithm, Example, Name, bayes_optimum
from transduce.data.columns import Columns
from transduce.data.columns.vectors import Vectors
from transduce.data.generated import EPOCH, DrawnBatches, GeneratedStore, drawn, generator
from transduce.data.tokenizers.tokenizer import TokenizerConfig
from transduce.inference.vectors import VectorPredictor
from transduce.metrics.bits import cost_tally
from transduce.metrics.tally import Tally
from transduce.models.protocols import Processes
from transduce.objectives.binary import BinaryCrossEntropy
from transduce.objectives.text import LossConfig
from transduce.tasks.base import Task
from transduce.tasks.protocols import Baseline, Dataset, TaskData, Tell

Range = Annotated[int, Field(ge=1)] | tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]]
EXAMPLES = 1000  # of training, that a baseline counts
READ = {"item": "associative_recall", "order": "dynamic_ngrams", "highest": "priority_sort"}


class AlgorithmicConfig(Config):
    """What a model of an algorithm is judged by."""

    kind: Literal["algorithmic"] = "algorithmic"
    metrics: tuple[str, ...] = ("wrong_bits", "wrong_bits_per_vector", "exact_match")
    """What validation, the final tests and `evaluate` report: wrong_bits, wrong_bits_per_vector, exact_match."""


class GeneratedExamples(Config):
    """How long generated examples are. A pair of numbers, [1, 20], means any between them, equally often."""

    length: Range = (1, 20)
    """Number of vectors of an example; of items for associative_recall, of bits for dynamic_ngrams."""
    repeats: Range = (1, 10)
    """How often repeat_copy repeats them."""

    @field_validator("length", "repeats")
    @classmethod
    def _rising(cls, given: int | tuple[int, int]) -> int | tuple[int, int]:
        if isinstance(given, tuple) and given[0] > given[1]:
            raise ValueError(f"expected the smaller number first; got {list(given)}")
        return given


class HeldOutExamples(GeneratedExamples):
    """Generated examples that training does not see."""

    examples: int = Field(default=100, ge=1)
    """Number of examples."""


class AlgorithmicData(Config):
    """Which algorithm, and how long its examples are in training and in each test."""

    name: Name = "copy"
    """copy, repeat_copy, associative_recall, dynamic_ngrams or priority_sort."""
    bits: int | None = Field(default=None, ge=1)
    """Bits of a vector. Unset: 8; 6 for associative_recall, 1 for dynamic_ngrams, which takes no other."""
    item: int = Field(default=3, ge=1)
    """Vectors of an item of associative_recall."""
    order: int = Field(default=6, ge=2)
    """Of dynamic_ngrams: each bit depends on the `order` - 1 bits before it."""
    highest: int = Field(default=16, ge=1)
    """Number of vectors that priority_sort answers, those of the highest priorities; all where there are fewer."""
    batch_size: int = Field(default=1, ge=1)
    """Number of examples in a batch. They are equally long, so there is no padding; batch.tokens is not read."""
    train: GeneratedExamples = GeneratedExamples()
    """The training examples; no example comes twice."""
    validation: HeldOutExamples | None = None
    """Picks the best weights."""
    test: dict[str, HeldOutExamples] = Field(default_factory=dict)
    """By name; scored once, at the end."""

    @model_validator(mode="after")
    def _only_what_is_read(self) -> Self:
        """A setting of another algorithm means nothing."""
        fields = type(self).model_fields
        unread = [key for key, name in READ.items() if name != self.name and getattr(self, key) != fields[key].default]
        if self.name == "dynamic_ngrams" and self.bits not in (None, 1):
            unread.append("bits")
        if unread:
            raise ValueError(f"{', '.join(unread)}: not read with this algorithm. Leave it out")
        least = self.algorithm.shortest
        sets = {"train": self.train, "validation": self.validation, **self.test}
        short = [name for name, each in sets.items() if each is not None and _pair(each.length)[0] < least]
        if short:
            raise ValueError(f"{', '.join(short)}: {self.name} needs a length of at least {least}")
        return self

    @property
    def algorithm(self) -> Algorithm:
        """With these settings."""
        return Algorithm(self.name, self.bits or BITS[self.name], self.item, self.order, self.highest)


class Algorithmic(Task):
    """Vectors -> vectors, after the input's last delimiter."""

    Config = AlgorithmicConfig
    Data = AlgorithmicData
    kinds: ClassVar[dict[str, str]] = {"source": "vectors", "target": "vectors"}
    default_model = "neural_turing_machine"
    never_split: ClassVar[bool] = True
    any_output: ClassVar[str] = "[[0]]"
    drawing: ClassVar[str] = "memory_drawing"
    drawn_alone: ClassVar[bool] = True
    explorable: ClassVar[bool] = False

    @classmethod
    def learn_columns(cls, config: TokenizerConfig, data: AlgorithmicData) -> Columns:
        """Nothing is learnt: the algorithm says how wide they are."""
        reads, writes = data.algorithm.widths
        return {"source": Vectors(reads), "target": Vectors(writes)}

    @staticmethod
    def training_files(data: AlgorithmicData) -> list[Path]:
        """None."""
        return []

    @property
    def predictor(self) -> VectorPredictor:
        """Rounded probabilities of the answer."""
        return VectorPredictor(self.columns, self.data.algorithm.answers)

    def objective(self, model: nn.Module, config: LossConfig | None = None) -> BinaryCrossEntropy:
        """The answer's bits.

        Raises:
            InputError: a model that processes no vectors.
        """
        if not isinstance(model, Processes):
            raise InputError(
                f"[model] kind: {type(model).__name__} processes no vectors; expected neural_turing_machine or "
                "vector_decoder."
            )
        return BinaryCrossEntropy()

    @property
    def max_source_length(self) -> int:
        """The longest input of training, in steps."""
        lengths, repeats = _pair(self.data.train.length), _pair(self.data.train.repeats)
        return len(self.data.algorithm.example(lengths[1], repeats[1], generator(0))[0])

    @property
    def context(self) -> str:
        """The input, and no other bit of the answer."""
        return "the input up to that step"

    def open(self, cache: Path, tell: Tell) -> TaskData:
        """Generated examples; nothing is read or kept."""
        data = self.data
        validation = self._held_out("validation", data.validation) if data.validation else None
        tests = {name: self._held_out(name, given) for name, given in data.test.items()}
        described = {"validation": data.validation, **data.test}
        held_out = {name: _described(data, given) for name, given in described.items() if given}
        provenance = {"train": [_described(data, data.train)], **held_out}
        return TaskData([(self._training(0), 1.0)], validation, tests, provenance, drawn=self._batches)

    def costs(self, log_probabilities: Sequence[float]) -> dict[str, Tally]:
        """Bits a sequence."""
        return {"cost": cost_tally(log_probabilities)}

    def baseline(self, data: TaskData, tell: Tell) -> Baseline:
        """For dynamic_ngrams the best estimate that there is, its cost in bits a sequence in the settings; for others
        each bit as it mostly is.
        """
        if self.data.name != "dynamic_ngrams":
            [(store, _)] = data.corpora
            known = np.concatenate(store.read("target", np.arange(min(len(store), EXAMPLES))))
            usual_F = (known.mean(0) > 0.5).astype(np.float32)
            return Baseline("most frequent bits", partial(self._usual_answers, usual_F), {"bits": usual_F.tolist()})
        costs = {name: self._best_cost(each.texts) for name, each in data.tests.items()}
        for name, cost in costs.items():
            tell(f"{name}: the Bayes optimum costs {cost:.2f} bits a sequence.")
        return Baseline("Bayes optimum", self._best_answers, {"order": self.data.order, "bits_per_sequence": costs})

    def _usual_answers(self, usual_F: NDArray[np.float32], texts: Sequence[str]) -> list[str]:
        source, target = self.columns["source"], self.columns["target"]
        lengths = map(self.data.algorithm.answers, source.encode(texts))
        return [target.decode(np.tile(usual_F, (length, 1))) for length in lengths]  # type: ignore[arg-type]

    def _best_answers(self, texts: Sequence[str]) -> list[str]:
        source, target = self.columns["source"], self.columns["target"]
        found = (bayes_optimum(np.asarray(each)[:, 0], self.data.order) > 0.5 for each in source.encode(texts))
        return [target.decode(each[:, None]) for each in found]  # type: ignore[arg-type]

    def _best_cost(self, texts: Sequence[tuple[str, str]]) -> float:
        total = 0.0
        for source, answer in texts:
            one_A = bayes_optimum(np.array(json.loads(source))[:, 0], self.data.order)
            total -= float(np.log2(np.where(np.array(json.loads(answer))[:, 0] == 1, one_A, 1 - one_A)).sum())
        return total / len(texts) if texts else math.nan

    def _batches(self, seed: int) -> DrawnBatches:
        return DrawnBatches(self._training(seed), self.data.batch_size)

    def _training(self, seed: int) -> GeneratedStore:
        size = self.data.batch_size
        return self._store(self.data.train, EPOCH * size, (0, seed), size)

    def _held_out(self, name: str, given: HeldOutExamples) -> Dataset:
        store = self._store(given, given.examples, (1, zlib.crc32(name.encode())), 1)
        rows = np.arange(given.examples)
        sides = (
            [column.decode(each) for each in store.read(side, rows)]  # type: ignore[arg-type]
            for side, column in self.columns.items()
        )
        return Dataset(store, list(zip(*sides, strict=True)))

    def _store(self, given: GeneratedExamples, count: int, seeds: tuple[int, int], equally_long: int) -> GeneratedStore:
        """`equally_long`: so many rows in a row are equally long."""
        algorithm, lengths, repeats = self.data.algorithm, _pair(given.length), _pair(given.repeats)

        @lru_cache(maxsize=2 * equally_long)  # the sides of a batch are read one after the other
        def generate(row: int) -> Example:
            sizes = generator(*seeds, 0, row // equally_long)
            length, times = drawn(*lengths, sizes), drawn(*repeats, sizes)
            return algorithm.example(length, times, generator(*seeds, 1, row))

        return GeneratedStore(count, generate, ("source", "target"))


def _pair(given: int | tuple[int, int]) -> tuple[int, int]:
    return given if isinstance(given, tuple) else (given, given)


def _described(data: AlgorithmicData, given: GeneratedExamples) -> dict[str, Any]:
    """For the model file and the report."""
    settings = data.model_dump(mode="json", include={"name", *READ}) | {"bits": data.algorithm.bits}
    settings = {key: value for key, value in settings.items() if READ.get(key, data.name) == data.name}
    sizes = given.model_dump(mode="json")
    if data.name != "repeat_copy":
        sizes.pop("repeats")
    return {**settings, **sizes, "sha256": []}
