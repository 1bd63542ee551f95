"""One pass over one file: a few numbers per line, from which every check is then plain array arithmetic.

No text is kept; about 66 bytes a line are, so ten million pairs need about 1.5 GB.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from transduce.data.doctor.characters import REPLACEMENT_BIT, Alphabet, CharacterCounts
from transduce.data.doctor.lines import ScannedFile
from transduce.data.doctor.words import WordCollector, WordStatistics, are_words
from transduce.data.doctor.writing import Marks, marks_of
from transduce.data.files import is_utf8

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
        marks: how it is written; see `transduce.data.doctor.writing`.
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

    def __len__(self) -> int:
        return len(self.exact)


def of_single_words(file: ScannedFile) -> bool:
    """Whether the first lines of `file` are mostly one word each."""
    return are_words([text.strip() for text in decode(list(islice(file.raw_lines(), LINES_AT_ONCE)))[0]])


def scan(file: ScannedFile, progress: Progress = in_silence, by_character: bool = False) -> ScannedSide:
    """Read `file` once. A line that is not UTF-8 is marked, read with U+FFFD in it, and gone past.

    by_character: its words are its characters.
    """
    exact, folded, invalid, measures = list[Hashes](), list[Hashes](), list[Mask](), list[CharacterCounts]()
    marks = list[Marks]()
    alphabet, words, lines = Alphabet(), WordCollector(by_character), file.raw_lines()
    while raws := list(islice(lines, LINES_AT_ONCE)):
        texts, bad = decode(raws)
        stripped = [text.strip() for text in texts]
        exact.append(hashes([raw.strip() for raw in raws]))
        folded.append(hashes([text.casefold() for text in stripped]))
        invalid.append(bad)
        measures.append(_measure(alphabet, texts, stripped, bad))
        marks.append(marks_of(stripped))
        for text in stripped:
            words.add(text)
        progress(f"reading {file.path.name}", len(raws))
    measured = CharacterCounts.joined(measures)
    return ScannedSide(
        file,
        exact=np.concatenate([np.zeros(0, np.uint64), *exact]),
        folded=np.concatenate([np.zeros(0, np.uint64), *folded]),
        length=measured.length,
        letters=measured.letters,
        script=measured.script,
        odd=measured.odd,
        invalid=np.concatenate([np.zeros(0, np.bool_), *invalid]),
        words=words.words(),
        scripts=alphabet.scripts,
        marks=np.concatenate([np.zeros(0, np.uint8), *marks]),
    )


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
    """64-bit hashes, good within this process."""
    return np.fromiter((hash(value) for value in values), np.int64, len(values)).view(np.uint64)
