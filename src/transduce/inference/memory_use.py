"""What a translation memory has to do with a prediction: pairs that are nearly the text, and where tokens came from.

Nothing here imports torch.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from transduce.core.extras import library

MOST = 5  # matches of a text


class FuzzyMatch(NamedTuple):
    """A pair of the memory whose source is nearly the text.

    similarity: in percent, as translation tools show it: 100 (1 - d / n), rounded down. d is the edit distance of the
        two texts in characters (Levenshtein 1966), and n the length of the longer one. Only equal texts have 100.
    pair: its number in the file that the memory was read from, counted from 1.
    """

    similarity: int
    source: str
    target: str
    pair: int


class OriginEntry(NamedTuple):
    """An entry of a datastore that says a token.

    pair: the number of the pair that it is from, as in `FuzzyMatch`. position: its place in the target, from 0.
    weight: its share in what the memory said, p_knn. distance: squared, of its key from the decoder's state.
    source, target: the texts of the pair.
    """

    pair: int
    position: int
    weight: float
    distance: float
    source: str
    target: str


class TokenOrigin(NamedTuple):
    """Where a token of an output came from.

    memory: lambda, the weight of the memory at this place.
    share: the part of the token's probability that is the memory's: lambda p_knn / p.
    entries: those of the nearest entries that say this token, the heaviest first.
    """

    token: str
    memory: float
    share: float
    entries: tuple[OriginEntry, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON; without the texts of pairs, which `origins_table` lists once."""
        entries = [
            {"pair": each.pair, "position": each.position, "weight": each.weight, "distance": each.distance}
            for each in self.entries
        ]
        return {"token": self.token, "memory": self.memory, "share": self.share, "entries": entries}


def origins_table(origins: Sequence[TokenOrigin]) -> dict[str, Any]:
    """For JSON: the origin of each token, and the texts of the pairs that are named, by number."""
    named = {str(each.pair): {"source": each.source, "target": each.target} for one in origins for each in one.entries}
    return {"origins": [each.to_dict() for each in origins], "origin_pairs": named}


class FuzzyIndex:
    """The pairs of a memory, which can be looked up by nearly equal sources.

    Args:
        numbers: of the pairs, in the file that they were read from.

    Raises:
        InputError: rapidfuzz is not installed.
    """

    def __init__(self, sources: Sequence[str], targets: Sequence[str], numbers: Sequence[int]) -> None:
        self._process = library("rapidfuzz.process", "looking for fuzzy matches", "memory", "rapidfuzz")
        self._distance = library("rapidfuzz.distance", "looking for fuzzy matches", "memory", "rapidfuzz")
        self._sources, self._targets, self._numbers = list(sources), targets, numbers

    def matches(self, text: str, least: int, most: int = MOST) -> tuple[FuzzyMatch, ...]:
        """The pairs whose sources are at least so similar, the most similar first, those as similar by their number.

        Args:
            least: similarity in percent.
        """
        if not text.strip():
            return ()
        scorer = self._distance.Levenshtein.normalized_similarity
        found = self._process.extract(text, self._sources, scorer=scorer, score_cutoff=least / 100, limit=None)
        ordered = sorted(found, key=lambda each: (-each[1], each[2]))[:most]
        return tuple(
            FuzzyMatch(_percent(score), source, self._targets[place], self._numbers[place])
            for source, score, place in ordered
        )


def _percent(similarity: float) -> int:
    """Rounded down; a rounding error below is none."""
    return math.floor(100 * similarity + 1e-9)
