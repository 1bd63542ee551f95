"""What a language looks like: the sequences of up to three letters in some texts, by which others are told apart.

    profile = LanguageProfile.of(texts)
    profile.log_probability("Two dogs run.")   # nats a letter, of a smoothed trigram model
    profile.fit("Two dogs run.")               # about 1 for texts like these, 0 or less in another language

A model file holds that of its sources and that of its targets, some twenty kilobytes each. Letters alone count: case,
digits and punctuation say little of a language. Frequent n-grams tell languages apart (Cavnar and Trenkle, 1994).
"""

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any

ORDERS = (1, 2, 3)
KEPT = {1: 3000, 2: 1500, 3: 2000}  # n-grams of each order that are noted: the most frequent ones
TEXTS = 5_000  # that are looked at
LONGEST = 1_000  # letters of a text that are looked at
PRIOR = 4.0  # occurrences for which the shorter n-gram stands (MacKay and Peto, 1995)
FLOOR = 0.5  # occurrences of a letter that was never seen
UNSEEN = 5.0  # nats that such a letter counts against a text
ALPHABET = 200  # letters of a script at most, with few exceptions: Chinese and Japanese characters, Korean syllables


@dataclass(frozen=True)
class LanguageProfile:
    """How often sequences of letters stand in some texts.

    counts: of n-grams of one, two and three letters; a space stands for what is between words. total: how many letters
    there were. gain: nats a letter by which the texts' own letters are likelier in their order than one by one.
    """

    counts: Mapping[str, int]
    total: int
    gain: float

    @classmethod
    def of(cls, texts: Iterable[str]) -> "LanguageProfile | None":
        """That of texts; None where there are too few letters to know.

        One text of ten is not counted: the gain is measured on those.
        """
        read = [letters for text, _ in zip(texts, range(TEXTS), strict=False) if len(letters := letters_of(text)) > 2]
        held_out, counted = read[::10], [each for place, each in enumerate(read) if place % 10]
        found = {order: Counter[str]() for order in ORDERS}
        for letters in counted:
            for order, counts in found.items():
                counts.update(letters[at : at + order] for at in range(len(letters) - order + 1))
        if not held_out or found[1].total() < 2_000:
            return None
        kept = {gram: often for order, counts in found.items() for gram, often in counts.most_common(KEPT[order])}
        profile = cls(kept, found[1].total(), 1.0)
        gains = [profile.judged(letters)[0] * len(letters) for letters in held_out]
        gain = sum(gains) / sum(map(len, held_out))
        return cls(kept, found[1].total(), gain) if gain > 0.1 else None

    def log_probability(self, text: str) -> float:
        """Nats a letter; -inf of a text without letters."""
        letters = letters_of(text)
        return self._mean(letters, 3) if letters.strip() else -math.inf

    def fit(self, text: str) -> float:
        """How much of the order of the letters this language explains; see `judged`."""
        return self.judged(letters_of(text))[0]

    def judged(self, letters: str) -> tuple[float, float]:
        """How much of the order of letters this language explains, and their log-probability in nats a letter.

        The first is the gain of the trigram model over single letters, as a share of that of the profile's own texts: 1
        for texts like these, less for another topic, 0 or less for another language. Letters that the language does not
        have count against it. (0, -inf) of a text without letters.

        Args:
            letters: as `letters_of` gives them.
        """
        if not letters.strip():
            return 0.0, -math.inf
        nats = self._mean(letters, 3)
        new = [each for each in letters if each not in self.counts and script_of(each) not in self._scripts]
        return (nats - self._mean(letters, 1) - UNSEEN * len(new) / len(letters)) / self.gain, nats

    def _mean(self, letters: str, order: int) -> float:
        places = range(1, len(letters))
        return sum(math.log(self._probability(letters, at, order)) for at in places) / max(1, len(places))

    def _probability(self, letters: str, at: int, order: int) -> float:
        """Of the letter at a place behind those before it; what the table does not hold goes to shorter n-grams."""
        found = (self.counts.get(letters[at], 0) + FLOOR) / self.total
        for context in range(1, min(order - 1, at) + 1):
            before = letters[at - context : at]
            seen, kept = self.counts.get(before, 0), self._kept.get(before, 0)
            own = self.counts.get(before + letters[at], 0)
            found = (own + (max(0, seen - kept) + PRIOR) * found) / (max(seen, kept) + PRIOR)
        return found

    @cached_property
    def _scripts(self) -> frozenset[str]:
        """Those with so many letters that nobody has seen all; in an alphabet each new letter is another language's."""
        found = Counter(script_of(gram) for gram in self.counts if len(gram) == 1)
        return frozenset(script for script, letters in found.items() if letters > ALPHABET)

    @cached_property
    def _kept(self) -> Mapping[str, int]:
        """How often a sequence stands before a letter in the n-grams that are noted."""
        found = Counter[str]()
        for gram, often in self.counts.items():
            if len(gram) > 1:
                found[gram[:-1]] += often
        return found

    def to_dict(self) -> dict[str, Any]:
        """For a model file: of each order the n-grams in one string, and their counts, "5x3" for three of 5 each."""
        orders = []
        for order in ORDERS:
            grams = [gram for gram in self.counts if len(gram) == order]  # the most frequent first
            runs = ((often, len([*alike])) for often, alike in groupby(self.counts[gram] for gram in grams))
            orders.append({"grams": "".join(grams), "counts": " ".join(f"{often}x{many}" for often, many in runs)})
        return {"orders": orders, "total": self.total, "gain": round(self.gain, 4)}

    @classmethod
    def from_dict(cls, noted: Any) -> "LanguageProfile | None":
        """As a model file has it; None where it has none, or another kind of note."""
        try:
            counts = dict[str, int]()
            for order, table in zip(ORDERS, noted["orders"], strict=True):
                runs = (run.split("x") for run in table["counts"].split())
                often = [int(count) for count, many in runs for _ in range(min(int(many), KEPT[order]))]
                grams = [table["grams"][at : at + order] for at in range(0, len(table["grams"]), order)]
                counts |= dict(zip(grams, often, strict=True))
            total, gain = int(noted["total"]), float(noted["gain"])
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError):
            return None
        return cls(counts, total, gain) if total > 0 and gain > 0 and min(counts.values(), default=0) >= 0 else None


def script_of(letter: str) -> str:
    """What its name begins with: LATIN, CYRILLIC, CJK, HANGUL; "" of a letter without a name."""
    return unicodedata.name(letter, "").partition(" ")[0]


def letters_of(text: str) -> str:
    """The letters of a text in lower case, with one space for what is between, and at both ends; white space alone of
    none. Marks that belong to letters stay."""
    plain = unicodedata.normalize("NFC", text[: 2 * LONGEST]).lower()
    kept = "".join(each if each.isalpha() or unicodedata.category(each)[0] == "M" else " " for each in plain)
    return f" {' '.join(kept.split())} "[:LONGEST]
