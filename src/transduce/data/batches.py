"""Which examples go into which batch: by token budget, in an order fixed by (seed, epoch) alone.

An epoch is planned pool by pool. Blocks of all stores are put in random order; the rows of `pool` blocks
together are sorted by length, cut where the budget is full, and the batches shuffled. Planning reads lengths,
never tokens, and its memory is one pool, however large the corpus.

The length of a side is the number of positions that a model sees: a source of n tokens has n + 1 (... </s>),
a target of n tokens n + 1 (<s> ... read, ... </s> predicted), and a row of a language model's n ids n - 1
(nothing is added; the last one is only predicted).
"""

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from transduce.core.config import Config
from transduce.core.errors import InputError
from transduce.data.store import BLOCK, Store

Numbers = NDArray[np.int64]


class BatchConfig(Config):
    """How large a batch is and how far rows travel when shuffled."""

    tokens: int | Literal["auto"] = 4096
    """Rows times the longest side, padding included; only one longer example may exceed it. auto: what fits here."""
    effective_tokens: int = Field(default=4096, ge=1)
    """With tokens = "auto": what an update has in all, in one batch or in several."""
    pool: int = Field(default=32, ge=1)
    """Blocks of 4,096 examples that are shuffled together."""

    @field_validator("tokens", mode="plain")
    @classmethod
    def _number_or_auto(cls, tokens: object) -> object:
        if tokens == "auto" or (isinstance(tokens, int) and not isinstance(tokens, bool) and tokens >= 1):
            return tokens
        raise ValueError('expected a number of at least 1, or "auto"')


class Rows(NamedTuple):
    """The examples of one batch: row `rows[i]` of store `stores[i]`. Both (N,).

    follows: whether each goes on where the same place of the batch before stopped, as in `StreamBatches`.
    stands_in: for a process that has no row of a batch that others have; counts nowhere.
    """

    stores: Numbers
    rows: Numbers
    follows: bool = False
    stands_in: bool = False

    def share(self, rank: int, world: int) -> "Rows":
        """The rows of process number `rank` of `world`: every `world`-th. Together they have each row once."""
        return Rows(self.stores[rank::world], self.rows[rank::world], self.follows)


class BatchPlan(Protocol):
    """Which examples go into which batch."""

    stores: list[Store]

    def epoch(self, number: int, start: int = 0) -> Iterator[Rows]:
        """The batches of an epoch, from the `start`-th on."""
        ...

    def count(self, number: int) -> int:
        """How many batches this epoch has."""
        ...


class _Visit(NamedTuple):
    """One showing of (part of) a block in an epoch, of the store `first` and of those that hold its rows cut anew."""

    first: int
    block: int
    showing: int
    share: float


class _Pool(NamedTuple):
    """Rows with their lengths, all (N,). `source` is 0 where there is none."""

    rows: Rows
    source: Numbers
    target: Numbers


class Batches:
    """The batches of weighted stores.

    A store of weight 1 shows each row once an epoch, of weight 2.5 twice and a random half of the rows a
    third time, of weight 0.5 a random half of them; which half, changes with the epoch.

    Args:
        stores: each with its weight; all must have the same fields.
        cuts: so many stores in a row hold the same examples, cut into tokens in different ways. An example is shown as
            often as its weight says, each time from one of them, which a random order deals out.

    Raises:
        InputError: the fields differ; the weights are so small that an epoch shows nothing.
    """

    def __init__(self, stores: Sequence[tuple[Store, float]], config: BatchConfig, seed: int, cuts: int = 1) -> None:
        self.stores = [store for store, _ in stores]
        self._weights = [weight for _, weight in stores]
        self._config, self._seed, self._cuts = config, seed, cuts
        fields = {store.fields for store in self.stores}
        if len(fields) != 1:
            raise InputError(
                f"batches: expected stores with the same fields; got {sorted(fields) or 'no store at all'}."
            )
        if config.tokens == "auto":
            raise InputError('batch.tokens = "auto" is measured by training; give a number here.')
        self._budget = config.tokens
        if not any(self._count(visit) for visit in self._visits()):
            rows, told = sum(map(len, self.stores[::cuts])), ", ".join(f"{each:g}" for each in self._weights[::cuts])
            raise InputError(
                f"data.train: the weights ({told}) are so small that an epoch shows none of {rows:,} examples. Give "
                "larger ones."
            )

    def epoch(self, number: int, start: int = 0) -> Iterator[Rows]:
        """The batches of an epoch, from the `start`-th on."""
        return islice(self._plan(number), start, None)

    def count(self, number: int) -> int:
        """How many batches this epoch has; plans it to the end."""
        return sum(1 for _ in self._plan(number))

    def _plan(self, number: int) -> Iterator[Rows]:
        visits = self._visits()
        order = _shuffled(len(visits), self._random(number))
        before: set[int] = set()  # a batch may still be read when the next pool has begun
        for index, first in enumerate(range(0, len(visits), self._config.pool)):
            random = self._random(number, 1, index)
            chosen = [visits[place] for place in order[first : first + self._config.pool]]
            pool = self._gather(chosen, number)
            batches = _cut(pool, _sorted_by_length(pool, random), self._budget, random.random())
            for place in _shuffled(len(batches), random):
                yield batches[place]
            used = {store for visit in chosen for store in self._stores_of(visit)}
            for store in used | before:
                self.stores[store].release()
            before = used

    def _visits(self) -> list[_Visit]:
        """Every block as often as its store's weight says; the last time perhaps in part."""
        return [
            _Visit(first, block, showing, min(1.0, self._weights[first] - showing))
            for first in range(0, len(self.stores), self._cuts)
            for showing in range(int(np.ceil(self._weights[first])))
            for block in range(max(self.stores[store].blocks for store in range(first, first + self._cuts)))
        ]

    def _gather(self, visits: list[_Visit], number: int) -> _Pool:
        chosen = [
            (store, visit.block, rows)
            for visit in visits
            for store, rows in zip(self._stores_of(visit), self._rows_by_store(visit, number), strict=True)
        ]
        stores = [np.full(len(rows), store) for store, _, rows in chosen]
        source, target = ([self._lengths_of(field, *each) for each in chosen] for field in ("source", "target"))
        rows = [rows + block * BLOCK for _, block, rows in chosen]
        return _Pool(Rows(np.concatenate(stores), np.concatenate(rows)), np.concatenate(source), np.concatenate(target))

    def _stores_of(self, visit: _Visit) -> range:
        """The stores that hold these examples."""
        return range(visit.first, visit.first + self._cuts)

    def _rows_by_store(self, visit: _Visit, number: int) -> list[Numbers]:
        """The rows within the block that each of these stores shows."""
        chosen = self._rows_of(visit, number)
        if self._cuts == 1:
            return [chosen]
        order = _shuffled(len(chosen), self._random(number, 3, visit.first, visit.block, visit.showing))
        dealt = [chosen[order[cut :: self._cuts]] for cut in range(self._cuts)]
        left = [len(self.stores[store]) - visit.block * BLOCK for store in self._stores_of(visit)]
        return [rows[rows < most] for rows, most in zip(dealt, left, strict=True)]  # a cut may be too long for a filter

    def _rows_of(self, visit: _Visit, number: int) -> Numbers:
        """The rows within the block: all, or a random share; the blocks' shares add up to the store's."""
        size = self._size(visit)
        if visit.share == 1.0:
            return np.arange(size)
        return _shuffled(size, self._random(number, 2, visit.first, visit.block))[: self._count(visit)]

    def _count(self, visit: _Visit) -> int:
        """How many rows of the block are shown."""
        first = visit.block * BLOCK
        return int((first + self._size(visit)) * visit.share) - int(first * visit.share)

    def _size(self, visit: _Visit) -> int:
        """Rows of the block, in the longest of the stores."""
        longest = max(len(self.stores[store]) for store in self._stores_of(visit))
        return min(BLOCK, longest - visit.block * BLOCK)

    def _lengths_of(self, field: str, store: int, block: int, rows: Numbers) -> Numbers:
        opened = self.stores[store]
        if field not in opened.fields or not len(rows):
            return np.zeros(len(rows), dtype=np.int64)
        added = 1 if "source" in opened.fields else -1
        return opened.lengths(field, block)[rows] + added

    def _random(self, *place: int) -> np.random.Generator:
        return np.random.Generator(np.random.PCG64([self._seed, *place]))


class SizedBatches:
    """Batches of equally many rows, whatever their lengths, in an order fixed by (seed, epoch); the last is smaller."""

    def __init__(self, store: Store, size: int, seed: int) -> None:
        self.stores = [store]
        self._size, self._seed = size, seed

    def epoch(self, number: int, start: int = 0) -> Iterator[Rows]:
        random = np.random.Generator(np.random.PCG64([self._seed, number]))
        order = _shuffled(len(self.stores[0]), random)
        batches = (order[first : first + self._size] for first in range(0, len(order), self._size))
        return islice((Rows(np.zeros(len(rows), np.int64), rows) for rows in batches), start, None)

    def count(self, number: int) -> int:
        """How many batches each epoch has."""
        return -(-len(self.stores[0]) // self._size)


def _shuffled(size: int, random: np.random.Generator) -> Numbers:
    """A random order of `size` things, by sorting plain random numbers: numpy may change how it permutes."""
    return np.argsort(random.random(size), kind="stable")


def _sorted_by_length(pool: _Pool, random: np.random.Generator) -> Numbers:
    """By target length, then source length, then at random.

    Source lengths rise and fall by turns, so that they do not jump from longest to shortest where the target
    length grows by one; a batch that spans the two would be half padding.
    """
    source = np.where(pool.target % 2 == 0, pool.source, -pool.source)
    return np.lexsort((random.random(len(source)), source, pool.target))


def _cut(pool: _Pool, order: Numbers, budget: int, share: float) -> list[Rows]:
    """Consecutive rows of `order`, as many to a batch as rows x longest side stays within the budget.

    The first batch gets a random share of the budget, which moves all cuts after it: long rows have few
    equals to change places with, and would otherwise meet the same company every epoch.
    """
    longer = np.maximum(pool.source, pool.target)[order].tolist()
    cuts, first, longest = [0], 0, 0
    room = budget if len(longer) * max(longer, default=0) <= budget else share * budget
    for place, length in enumerate(longer):
        longest = max(longest, length)
        if place > first and (place + 1 - first) * longest > room:
            cuts.append(place)
            first, longest, room = place, length, budget
    cuts.append(len(longer))
    stores, rows = pool.rows.stores[order], pool.rows.rows[order]
    return [Rows(stores[a:b], rows[a:b]) for a, b in pairwise(cuts) if b > a]
