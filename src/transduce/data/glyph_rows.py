"""Rows of glyphs with a question that takes attention: what people are asked to look for, as texts with labels.

- black_cards: R7 B3 R1 R9 B8 R3. What do the black cards add up to? There are always two: 11.
- find_eight: S 3 8 0 B 6. At which place does the 8 stand, among glyphs that look like it? 3.

Rows have 6 to 12 glyphs. A row is a function of (name, seed, its number); nothing is stored.
"""

import zlib
from typing import Literal, get_args

import numpy as np

from transduce.data.generated import drawn, generator

Name = Literal["black_cards", "find_eight"]
NAMES: tuple[str, ...] = get_args(Name)
SHORTEST, LONGEST = 6, 12
BLACK, RED, HIGHEST = "B", "R", 9
BLACK_CARDS = 2  # always as many: from weights that add up to 1 a mean can be read, and no sum of who knows how many
WANTED, ALIKE = "8", ("3", "6", "9", "0", "B", "S")


def glyph_row(name: Name, seed: int, number: int) -> tuple[str, str]:
    """The text and the label of the row of this number."""
    random = generator(zlib.crc32(name.encode()), seed, number)
    length = drawn(SHORTEST, LONGEST, random)
    if name == "find_eight":
        glyphs = [ALIKE[drawn(0, len(ALIKE) - 1, random)] for _ in range(length)]
        place = drawn(0, length - 1, random)
        glyphs[place] = WANTED
        return " ".join(glyphs), str(place + 1)
    values = [drawn(1, HIGHEST, random) for _ in range(length)]
    black = _places(length, random)
    cards = [f"{BLACK if place in black else RED}{value}" for place, value in enumerate(values)]
    return " ".join(cards), str(sum(values[place] for place in black))


def counts(name: Name, glyph: str) -> bool:
    """Whether the answer depends on this glyph: a black card, or the 8."""
    return glyph == WANTED if name == "find_eight" else glyph.startswith(BLACK)


def _places(length: int, random: np.random.Generator) -> set[int]:
    """Different ones, of the black cards."""
    found: set[int] = set()
    while len(found) < BLACK_CARDS:
        found.add(drawn(0, length - 1, random))
    return found
