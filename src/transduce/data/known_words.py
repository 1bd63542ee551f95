"""Which words some texts have, in a few bits each: enough to say that most words of another text are new.

    known = KnownWords.of(texts)
    "maison" in known           # True; a word that no text has is taken to be known once in a hundred times
    known.unknown("my hause")   # [(3, 8)], characters of the text

A Bloom filter (Bloom 1970, "Space/time trade-offs in hash coding with allowable errors"): each word sets `HASHES` bits,
and is known if all of its bits are set. A model file holds that of its sources, ten bits a word. Nothing here imports
torch.
"""

import base64
import binascii
import math
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Self

from transduce.data.words import WORD

BITS, HASHES = 10, 7  # for each word: one new word in 120 is taken to be known (Bloom 1970, equation 17)
MOST = 200_000  # different words that are noted
MOST_BYTES = MOST * BITS // 8 + 1


@dataclass(frozen=True)
class KnownWords:
    """bits: of the filter, eight a byte."""

    bits: bytes

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        """Those of texts, in lower case; of more than `MOST` the first ones."""
        words = dict[str, None]()
        for text in texts:
            if len(words) >= MOST:
                break
            words |= dict.fromkeys(match[0].lower() for match in WORD.finditer(text))
        found = bytearray(math.ceil(max(1, len(words)) * BITS / 8))
        for word in words:
            for place in _places(word, 8 * len(found)):
                found[place // 8] |= 1 << place % 8
        return cls(bytes(found))

    def __contains__(self, word: str) -> bool:
        return all(self.bits[place // 8] >> place % 8 & 1 for place in _places(word.lower(), 8 * len(self.bits)))

    def unknown(self, text: str) -> list[tuple[int, int]]:
        """The words of a text that are not known, each as its characters [start, end)."""
        return [match.span() for match in WORD.finditer(text) if match[0] not in self]

    def to_text(self) -> str:
        """For a model file."""
        return base64.b64encode(self.bits).decode("ascii")

    @classmethod
    def from_text(cls, noted: Any) -> Self | None:
        """As a model file has it; None where it has none, or another kind of note."""
        if not isinstance(noted, str) or len(noted) > 2 * MOST_BYTES:
            return None
        try:
            bits = base64.b64decode(noted, validate=True)
        except (binascii.Error, ValueError):
            return None
        return cls(bits) if bits else None


def _places(word: str, size: int) -> list[int]:
    """The bits of a word (Kirsch and Mitzenmacher 2006: two hashes make all of them)."""
    digest = blake2b(word.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    first, step = int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little") | 1
    return [(first + number * step) % size for number in range(HASHES)]
