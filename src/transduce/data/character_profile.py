"""Which characters some texts have, and how often: enough to say that a text is in a writing that training never had.

    profile = CharacterProfile.of(texts)
    profile.unseen(counted(["LLANFAIR"]))    # share of its characters that none of the texts has
    profile.nearness(other, counted(texts))  # nats a character by which texts are likelier here than in another one

A model file holds that of its sources and that of its targets, a few kilobytes.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

MOST = 30_000  # different characters; of more, nothing is noted
COUNTED = 200  # characters whose counts are noted: the most frequent ones


@dataclass(frozen=True)
class CharacterProfile:
    """How often each character stands in the texts, white space left out.

    counts: of the most frequent ones. others: further characters. rest: how often these stand there in all.
    """

    counts: Mapping[str, int]
    others: frozenset[str] = frozenset()
    rest: int = 0

    @classmethod
    def of(cls, texts: Iterable[str]) -> "CharacterProfile":
        return cls.of_counted(counted(texts))

    @classmethod
    def of_counted(cls, characters: "Counter[str]") -> "CharacterProfile":
        """That of texts whose characters are counted."""
        found = characters.most_common()
        return cls(
            dict(found[:COUNTED]), frozenset(each for each, _ in found[COUNTED:]), sum(n for _, n in found[COUNTED:])
        )

    @property
    def different(self) -> int:
        """How many characters there are."""
        return len(self.counts) + len(self.others)

    @cached_property
    def characters(self) -> frozenset[str]:
        return self.others.union(self.counts)

    def unseen(self, characters: "Counter[str]") -> float:
        """The share of the characters of texts that are not among these; 0 of none."""
        new = sum(often for each, often in characters.items() if each not in self.characters)
        return new / max(1, characters.total())

    def nearness(self, other: "CharacterProfile", texts: "Counter[str]") -> float:
        """Nats a character by which characters of texts are likelier here than there; below 0 they are less likely."""
        apart = sum(often * (self._nats(each) - other._nats(each)) for each, often in texts.items())
        return apart / max(1, texts.total())

    def divergence(self, characters: "Counter[str]") -> float:
        """How unlike texts are: Kullback and Leibler's, of their characters from these, in nats.

        0.03 at most for texts of one kind and language, 0.1 for another kind, 0.2 or more for another language.
        """
        total = characters.total()
        shares = ((each, often / total) for each, often in characters.items())
        return sum(share * (math.log(share) - self._nats(each)) for each, share in shares)

    def surprise(self, characters: "Counter[str]") -> float:
        """Nats a character by which characters of texts are less likely than these texts' own: about 0 for texts like
        them, 0.2 or more in most other languages."""
        return -sum(often * self._nats(each) for each, often in characters.items()) / characters.total() - self._entropy

    @cached_property
    def _entropy(self) -> float:
        rare = self.rest * self._rare if self.others else 0.0
        told = sum(often * self._logarithms[each] for each, often in self.counts.items()) + rare
        return -told / max(1, sum(self.counts.values()) + self.rest)

    def _nats(self, character: str) -> float:
        """The logarithm of a probability; unseen characters have that of half an occurrence."""
        return self._logarithms.get(character, self._rare if character in self.others else self._unseen)

    @cached_property
    def _total(self) -> float:
        return sum(self.counts.values()) + self.rest + 0.5 * (self.different + 1)

    @cached_property
    def _logarithms(self) -> dict[str, float]:
        return {each: math.log((often + 0.5) / self._total) for each, often in self.counts.items()}

    @cached_property
    def _rare(self) -> float:
        return math.log((self.rest / max(1, len(self.others)) + 0.5) / self._total)

    @cached_property
    def _unseen(self) -> float:
        return math.log(0.5 / self._total)

    def to_dict(self) -> dict[str, Any]:
        """For a model file; nothing where there are too many characters."""
        if self.different > MOST:
            return {}
        others = "".join(sorted(self.others))
        return {
            "frequent": "".join(self.counts),
            "counts": [*self.counts.values()],
            "others": others,
            "rest": self.rest,
        }

    @classmethod
    def from_dict(cls, noted: Any) -> "CharacterProfile | None":
        """As a model file has it; None where it has none, or another kind of note."""
        if not isinstance(noted, Mapping):
            return None
        frequent: Any = noted.get("frequent")
        counts: Any = noted.get("counts")
        others: Any = noted.get("others")
        rest: Any = noted.get("rest")
        if not isinstance(frequent, str) or not isinstance(others, str) or not isinstance(counts, list):
            return None
        if not frequent or len(frequent) != len(counts):
            return None
        if not all(type(each) is int and each >= 0 for each in (*counts, rest)):
            return None
        return cls(dict(zip(frequent, counts, strict=True)), frozenset(others), rest)


def counted(texts: Iterable[str]) -> "Counter[str]":
    """The characters of texts with how often they stand there, white space left out."""
    found = Counter[str]()
    for text in texts:
        found.update(text)
    for each in [each for each in found if each.isspace()]:
        del found[each]
    return found
