"""What a line's characters are: which script, how many letters, and the odd ones that upset other tools.

Code points are looked up in tables that are filled as characters are met, so a line costs array arithmetic
and no Python loop over its characters.

Shape letters: C code points of a block, L lines of a block, S scripts.
"""

import unicodedata
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ODD = {
    "carriage return": "\r",
    "tab": "\t",
    "NUL": "\0",
    "byte order mark (U+FEFF)": "\ufeff",
    "line separator (U+2028)": "\u2028",
    "paragraph separator (U+2029)": "\u2029",
    "next line (U+0085)": "\x85",
    "replacement character (U+FFFD)": "\ufffd",
}
OTHER_CONTROL = "other control character"
ODD_NAMES = [*ODD, OTHER_CONTROL]
REPLACEMENT_BIT = ODD_NAMES.index("replacement character (U+FFFD)")

# Scripts that one language mixes within a sentence count as one.
FAMILY = {"HIRAGANA": "CJK", "KATAKANA": "CJK", "BOPOMOFO": "CJK", "KATAKANA-HIRAGANA": "CJK"}
WIDTHS = {"FULLWIDTH", "HALFWIDTH", "MATHEMATICAL", "COMBINING"}
NO_SCRIPT = ""
CODE_POINTS = 0x110000


@dataclass(frozen=True)
class CharacterCounts:
    """One entry per line: length and letters in characters, script by number, odd characters as bits."""

    length: NDArray[np.int32]
    letters: NDArray[np.int32]
    script: NDArray[np.uint8]
    odd: NDArray[np.uint16]


class Alphabet:
    """Tables from code point to script number and to odd-character bit, filled as characters are met."""

    def __init__(self) -> None:
        self.scripts = [NO_SCRIPT]
        self._script_of = np.zeros(CODE_POINTS, np.uint8)
        self._odd_of = np.zeros(CODE_POINTS, np.uint16)
        self._known = np.zeros(CODE_POINTS, np.bool_)

    def measure(self, texts: list[str]) -> CharacterCounts:
        """The measures of each text. None of them may hold "\\n"."""
        block = "".join(text + "\n" for text in texts).encode("utf-32-le")
        codes_C = np.frombuffer(block, np.uint32)
        self._learn(codes_C)
        ends_L = np.flatnonzero(codes_C == ord("\n"))
        starts_L = np.concatenate([[0], ends_L[:-1] + 1]).astype(np.int64)
        counts_LS = self._scripts_per_line(codes_C, starts_L, ends_L)
        letters_L = counts_LS[:, 1:].sum(axis=1)
        return CharacterCounts(
            length=(ends_L - starts_L).astype(np.int32),
            letters=letters_L.astype(np.int32),
            script=np.where(letters_L > 0, _dominant(counts_LS, self.scripts), 0).astype(np.uint8),
            odd=np.bitwise_or.reduceat(self._odd_of[codes_C], starts_L),
        )

    def _scripts_per_line(
        self, codes_C: NDArray[np.uint32], starts_L: NDArray[np.int64], ends_L: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        line_C = np.repeat(np.arange(len(ends_L)), ends_L - starts_L + 1)
        cell_C = line_C * len(self.scripts) + self._script_of[codes_C]
        counts = np.bincount(cell_C, minlength=len(ends_L) * len(self.scripts))
        return counts.reshape(len(ends_L), len(self.scripts))

    def _learn(self, codes_C: NDArray[np.uint32]) -> None:
        for code in np.unique(codes_C[~self._known[codes_C]]):
            character = chr(code)
            script = script_of(character)
            if script not in self.scripts:
                self.scripts.append(script)
            self._script_of[code] = self.scripts.index(script)
            self._odd_of[code] = odd_bit(character)
            self._known[code] = True


def _dominant(counts_LS: NDArray[np.int64], scripts: list[str]) -> NDArray[np.int64]:
    """The script with most letters, 0 (none) left out; of several the first by name, however they were met."""
    if counts_LS.shape[1] == 1:
        return np.zeros(len(counts_LS), np.int64)
    order = np.array(sorted(range(1, len(scripts)), key=scripts.__getitem__))
    return order[counts_LS[:, order].argmax(axis=1)]


def script_of(character: str) -> str:
    """The script of a letter, from the first word of its Unicode name; "" for what is no letter."""
    if unicodedata.category(character) not in {"Lu", "Ll", "Lt", "Lo"}:
        return NO_SCRIPT
    words = [word for word in unicodedata.name(character, "").split() if word not in WIDTHS]
    return FAMILY.get(words[0], words[0]) if words else NO_SCRIPT


def odd_bit(character: str) -> int:
    """The bit of the odd character's place in `ODD_NAMES`; 0 for an ordinary one."""
    if character == "\n":
        return 0
    for place, odd in enumerate(ODD.values()):
        if character == odd:
            return 1 << place
    return 1 << ODD_NAMES.index(OTHER_CONTROL) if unicodedata.category(character) == "Cc" else 0


def without_odd(text: str) -> str:
    """Odd separators become a space, the byte order mark goes; outer spaces go with them."""
    if text.isprintable():
        return text.strip()
    return "".join(_plain(character) for character in text).strip()


def _plain(character: str) -> str:
    if character == "\ufeff":
        return ""
    return " " if odd_bit(character) and character != "\ufffd" else character
