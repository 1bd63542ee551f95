"""The algorithmic tasks of Graves et al. 2014, section 4: binary vectors in and out, made from random numbers alone.

- copy: vectors, then a delimiter; the answer is the vectors.
- repeat_copy: vectors, then a delimiter with a number (1 .. 10, scaled to mean 0 and deviation 1); the answer is the
  vectors so often, then an end.
- associative_recall: items of some vectors, each behind a delimiter, then one of them again between two delimiters of
  another kind; the answer is the item that followed it.
- dynamic_ngrams: bits, each drawn by a table of the bits before it, which is another table in each sequence; the answer
  to each bit is the next one.
- priority_sort: vectors with priorities, then a delimiter; the answer is the vectors of the highest priorities, the
  highest first.

Inputs are 0 while a model answers, so the answer stands at the last steps of an example.

Shapes: S steps, F numbers of an input, A steps of the answer, O numbers of an output, L vectors, K bits of a vector.
"""

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Name = Literal["copy", "repeat_copy", "associative_recall", "dynamic_ngrams", "priority_sort"]
NAMES: tuple[str, ...] = get_args(Name)
BITS = {"copy": 8, "repeat_copy": 8, "associative_recall": 6, "dynamic_ngrams": 1, "priority_sort": 8}
REPEATS = 10  # the numbers 1 .. 10 are scaled to mean 0 and deviation 1
STEPS = 1000  # a priority is a multiple of 1 / 1000

Floats = NDArray[np.float32]
Example = tuple[Floats, Floats]  # (S, F), (A, O)


@dataclass(frozen=True)
class Algorithm:
    """One of the tasks.

    bits: K. item: vectors of an item. order: of n-grams; a bit depends on the order - 1 before. highest: how many
        vectors sorting answers.
    """

    name: str
    bits: int
    item: int = 3
    order: int = 6
    highest: int = 16

    @property
    def widths(self) -> tuple[int, int]:
        """F and O."""
        more = {"copy": (1, 0), "repeat_copy": (2, 1), "dynamic_ngrams": (0, 0)}.get(self.name, (2, 0))
        return self.bits + more[0], self.bits + more[1]

    @property
    def shortest(self) -> int:
        """The smallest length that has an answer."""
        return {"associative_recall": 2, "dynamic_ngrams": self.order}.get(self.name, 1)

    def example(self, length: int, repeats: int, random: np.random.Generator) -> Example:
        """One of `length` vectors, or items, or bits."""
        make = {
            "copy": self._copy,
            "repeat_copy": self._repeat_copy,
            "associative_recall": self._recall,
            "dynamic_ngrams": self._ngrams,
            "priority_sort": self._sort,
        }[self.name]
        return make(length, repeats, random)

    def answers(self, x_SF: Floats) -> int:
        """At how many of the last steps of an input the answer stands; 0 where it has no place for one."""
        if self.name == "dynamic_ngrams":
            return max(0, len(x_SF) - (self.order - 2))
        (delimiters,) = np.nonzero(x_SF[:, self.bits + (self.name == "associative_recall")])
        return 0 if not len(delimiters) else len(x_SF) - 1 - int(delimiters[-1])

    def _copy(self, length: int, repeats: int, random: np.random.Generator) -> Example:
        bits_LK = _bits((length, self.bits), random)
        x_SF = np.zeros((2 * length + 1, self.bits + 1), np.float32)
        x_SF[:length, : self.bits] = bits_LK
        x_SF[length, self.bits] = 1
        return x_SF, bits_LK

    def _repeat_copy(self, length: int, repeats: int, random: np.random.Generator) -> Example:
        bits_LK = _bits((length, self.bits), random)
        x_SF = np.zeros((length * (repeats + 1) + 2, self.bits + 2), np.float32)
        x_SF[:length, : self.bits] = bits_LK
        x_SF[length, self.bits :] = 1, scaled(repeats)
        answer_AO = np.zeros((length * repeats + 1, self.bits + 1), np.float32)
        answer_AO[:-1, : self.bits] = np.tile(bits_LK, (repeats, 1))
        answer_AO[-1, self.bits] = 1
        return x_SF, answer_AO

    def _recall(self, length: int, repeats: int, random: np.random.Generator) -> Example:
        items = _bits((length, self.item, self.bits), random)
        asked = int(random.random() * (length - 1))
        x_SF = np.zeros(((length + 2) * (self.item + 1), self.bits + 2), np.float32)
        for place, item in enumerate([*items, items[asked]]):
            first = place * (self.item + 1)
            x_SF[first, self.bits + (place == length)] = 1
            x_SF[first + 1 : first + 1 + self.item, : self.bits] = item
        x_SF[(length + 1) * (self.item + 1), self.bits + 1] = 1
        return x_SF, items[asked + 1]

    def _ngrams(self, length: int, repeats: int, random: np.random.Generator) -> Example:
        before = self.order - 1
        table = np.sin(0.5 * math.pi * random.random(2**before)) ** 2  # Beta(1/2, 1/2)
        drawn = random.random(length)
        bits = [int(each < 0.5) for each in drawn[:before]]
        for place in range(before, length):
            bits.append(int(drawn[place] < table[_context(bits[place - before : place])]))
        bits_L1 = np.array(bits, np.float32)[:, None]
        return bits_L1[:-1], bits_L1[before:]

    def _sort(self, length: int, repeats: int, random: np.random.Generator) -> Example:
        bits_LK = _bits((length, self.bits), random)
        priorities = np.round((2 * random.random(length) - 1) * STEPS) / STEPS
        answered = min(self.highest, length)
        x_SF = np.zeros((length + 1 + answered, self.bits + 2), np.float32)
        x_SF[:length, : self.bits] = bits_LK
        x_SF[length, self.bits] = 1
        x_SF[:length, self.bits + 1] = priorities
        return x_SF, bits_LK[np.argsort(-priorities, kind="stable")[:answered]]


def scaled(repeats: int) -> float:
    mean, deviation = (REPEATS + 1) / 2, math.sqrt((REPEATS**2 - 1) / 12)
    return (repeats - mean) / deviation


def bayes_optimum(bits: NDArray[np.floating], order: int) -> NDArray[np.float64]:
    """(A,) the best estimate that the next bit is 1, after each context (Murphy 2012; Graves et al. 2014, equation 10).

        P(1 | context) = (N1 + 1/2) / (N1 + N0 + 1)

    N1 and N0 count how often 1 and 0 followed the context before, in the same sequence.

    Args:
        bits: (S,) all but the last, which nothing follows.
    """
    before = order - 1
    said = [int(each) for each in bits]
    counts = np.zeros((2**before, 2))
    found = []
    for place in range(before, len(said) + 1):
        context = _context(said[place - before : place])
        found.append((counts[context, 1] + 0.5) / (counts[context].sum() + 1))
        if place < len(said):
            counts[context, said[place]] += 1
    return np.array(found)


def _context(bits: list[int]) -> int:
    return int("".join(map(str, bits)), 2) if bits else 0


def _bits(shape: tuple[int, ...], random: np.random.Generator) -> Floats:
    return (random.random(shape) < 0.5).astype(np.float32)
