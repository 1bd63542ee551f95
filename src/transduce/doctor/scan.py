"""One pass over one file: a few numbers per line, from which every check is then plain array arithmetic.

No text is kept; about 90 bytes a line are, so ten million pairs need about 2 GB.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.data.files import is_utf8
from transduce.doctor.characters import REPLACEMENT_BIT, Alphabet, CharacterCounts
from transduce.doctor.contents import Bits, contents_of
from transduce.doctor.lines import ScannedFile
from transduce.doctor.words import WordCollector, WordStatistics, are_words, pieces
from transduce.doctor.writing import Marks, marks_of

LINES_AT_ONCE = 4096

Progress = Callable[[str, int], None]
Mask = NDArray[np.bool_]
Hashes = NDArray[np.uint64]


def in_silence(stage: str, lines: int) -> None:
    """The progress report of a caller who wants none."""


@dataclass(frozen=True)
class ScannedSide:
    """What one pass over one file found, one entry per line.

    Args:
        file: where the lines came from.
        exact: a hash of the line's bytes without outer white space.
        folded: a hash of its text, case folded, without outer white space.
        length: characters, outer white space aside.
        letters: characters that are letters of some script.
        script: number (in `scripts`) of the script that most of its letters are in; 0 for none.
        odd: bit b is set where the line holds the odd character `ODD_NAMES[b]`.
        invalid: the line is not UTF-8.
        words: its words.
        scripts: the names of the scripts met.
        marks: how it is written; see `transduce.doctor.writing`.
        bits, numbers, placeholders: what it holds; see `transduce.doctor.contents`.
        loose: a hash of its letters, case folded, without digits and punctuation; 0 for none.
    """

    file: ScannedFile
    exact: Hashes
    folded: Hashes
    length: NDArray[np.int32]
    letters: NDArray[np.int32]
    script: NDArray[np.uint8]
    odd: NDArray[np.uint16]
    invalid: Mask
    words: WordStatistics
    scripts: list[str]
    marks: Marks
    bits: Bits
    numbers: Hashes
    placeholders: NDArray[np.uint32]
    loose: Hashes

    def __len__(self) -> int:
        return len(self.exact)


def of_single_words(file: ScannedFile) -> bool:
    """Whether the first lines of `file` are mostly one word each."""
    return are_words([text.strip() for text in decode(list(islice(file.raw_lines(), LINES_AT_ONCE)))[0]])


@dataclass(frozen=True)
class ScannedLines:
    """What was found in some lines of a file; see `ScannedSide`. scripts: by number, of those met up to here."""

    exact: Hashes
    folded: Hashes
    length: NDArray[np.int32]
    letters: NDArray[np.int32]
    script: NDArray[np.uint8]
    odd: NDArray[np.uint16]
    invalid: Mask
    marks: Marks
    bits: Bits
    numbers: Hashes
    placeholders: NDArray[np.uint32]
    loose: Hashes
    words: WordStatistics
    scripts: list[str]


Scanner = Callable[[ScannedFile, Progress, bool], ScannedSide]
"""As `scan`."""


def scan(file: ScannedFile, progress: Progress = in_silence, by_character: bool = False) -> ScannedSide:
    """Read `file` once. A line that is not UTF-8 is marked, read with U+FFFD in it, and gone past.

    by_character: its words are its characters.
    """
    alphabet, lines = Alphabet(), file.raw_lines()

    def parts() -> Iterator[ScannedLines]:
        while raws := list(islice(lines, LINES_AT_ONCE)):
            yield scan_lines(raws, alphabet, by_character)
            progress(f"reading {file.path.name}", len(raws))

    return side_of(file, parts(), by_character)


def scan_lines(raws: list[bytes], alphabet: Alphabet, by_character: bool = False) -> ScannedLines:
    """Some lines. alphabet: learns the characters that it does not know yet."""
    texts, bad = decode(raws)
    stripped = [text.strip() for text in texts]
    words = WordCollector(by_character)
    found = [pieces(text, by_character) for text in stripped]
    for each in found:
        words.add_pieces(each)
    held = contents_of(stripped, found)
    measured = _measure(alphabet, texts, stripped, bad)
    return ScannedLines(
        exact=hashes([raw.strip() for raw in raws]),
        folded=hashes([text.casefold() for text in stripped]),
        length=measured.length,
        letters=measured.letters,
        script=measured.script,
        odd=measured.odd,
        invalid=bad,
        marks=marks_of(stripped),
        bits=held.bits,
        numbers=held.numbers,
        placeholders=held.placeholders,
        loose=_loose(found),
        words=words.words(),
        scripts=list(alphabet.scripts),
    )


def side_of(file: ScannedFile, parts: Iterable[ScannedLines], by_character: bool = False) -> ScannedSide:
    """The side whose lines are those of all parts, which may each have learnt their scripts by themselves."""
    alphabet = Alphabet()
    found = [replace(part, script=_renumbered(part, alphabet.scripts)) for part in parts]
    ends = np.cumsum([0, *(len(part.words.ids) for part in found)])

    def joined(name: str, kind: type[np.generic]) -> NDArray[Any]:
        return np.concatenate([np.zeros(0, kind), *(getattr(part, name) for part in found)])

    ids = np.concatenate([np.zeros(0, np.uint16), *(part.words.ids for part in found)])
    stops = [part.words.ends[1:] + first for part, first in zip(found, ends[:-1], strict=True)]
    return ScannedSide(
        file,
        exact=joined("exact", np.uint64),
        folded=joined("folded", np.uint64),
        length=joined("length", np.int32),
        letters=joined("letters", np.int32),
        script=joined("script", np.uint8),
        odd=joined("odd", np.uint16),
        invalid=joined("invalid", np.bool_),
        words=WordStatistics(np.concatenate([np.zeros(1, np.int64), *stops]), ids, by_character),
        scripts=alphabet.scripts,
        marks=joined("marks", np.uint8),
        bits=joined("bits", np.uint16),
        numbers=joined("numbers", np.uint64),
        placeholders=joined("placeholders", np.uint32),
        loose=joined("loose", np.uint64),
    )


def _loose(found: list[list[str]]) -> Hashes:
    """Hashes of the letters in the words of each line; 0 for none."""
    letters = ["".join(filter(str.isalpha, words)) for words in found]
    return np.where(np.array(letters) != "", hashes(letters), np.uint64(0))


def _renumbered(part: ScannedLines, scripts: list[str]) -> NDArray[np.uint8]:
    """The part's script numbers as places in `scripts`, to which new ones are added."""
    scripts += [each for each in part.scripts if each not in scripts]
    places = np.array([scripts.index(each) for each in part.scripts], np.uint8)
    return places[part.script]


def _measure(alphabet: Alphabet, texts: list[str], stripped: list[str], bad: Mask) -> CharacterCounts:
    """Odd characters are looked for in the whole line, the rest is measured without outer white space."""
    inner, whole = alphabet.measure(stripped), alphabet.measure(texts)
    odd = np.where(bad, whole.odd & ~np.uint16(1 << REPLACEMENT_BIT), whole.odd)
    return CharacterCounts(inner.length, inner.letters, inner.script, odd)


def decode(raws: list[bytes]) -> tuple[list[str], Mask]:
    """Each line as text, and which of them are not UTF-8 (their bad bytes become U+FFFD)."""
    bad = np.zeros(len(raws), np.bool_)
    try:
        return b"\n".join(raws).decode("utf-8").split("\n"), bad
    except UnicodeDecodeError:
        bad[:] = [not is_utf8(raw) for raw in raws]
        return [raw.decode("utf-8", errors="replace") for raw in raws], bad


def hashes(values: list[bytes] | list[str]) -> Hashes:
    """64-bit hashes, the same in every process."""
    encoded = (value if isinstance(value, bytes) else value.encode("utf-8", "surrogatepass") for value in values)
    return np.frombuffer(b"".join(blake2b(each, digest_size=8).digest() for each in encoded), "<u8")
