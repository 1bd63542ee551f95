"""Reading a corpus for the doctor as a bulk job: the numbers of each line, from which every check is then arithmetic.

That is most of an examination's time. Where the sides slip, what comes twice and what is usual are found where the
command was started, from the numbers of all lines; so is a cleaned copy written.
"""

import base64
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from transduce.bulk.blocks import LineBlock, blocks_of
from transduce.bulk.job import Advance, BulkEngine, BulkJob
from transduce.doctor.characters import Alphabet
from transduce.doctor.lines import ScannedFile
from transduce.doctor.scan import LINES_AT_ONCE, Progress, ScannedLines, ScannedSide, Scanner, scan_lines, side_of
from transduce.doctor.words import WordStatistics

ANY_BYTES = "surrogateescape"  # how bytes that are not UTF-8 travel as text


class ScanningWorker:
    """Reads lines, which need not be UTF-8: a row has the "text" of one, decoded with `ANY_BYTES`.

    Args:
        settings: "by_character", see `scan`.
        models: none.
    """

    def __init__(self, settings: dict[str, Any], models: list[Path]) -> None:
        self._by_character = bool(settings["by_character"])

    def answer(self, block: LineBlock, advance: Advance) -> dict[str, Any]:
        """The fields of `ScannedLines`."""
        raws = [row["text"].encode("utf-8", ANY_BYTES) for row in block.rows]
        found = scan_lines(raws, Alphabet(), self._by_character)
        advance(len(raws))
        arrays = {
            each.name: getattr(found, each.name) for each in fields(found) if each.name not in ("words", "scripts")
        }
        arrays |= {"word_ends": found.words.ends, "word_ids": found.words.ids}
        return {"scripts": found.scripts, "arrays": {name: _packed(values) for name, values in arrays.items()}}


def scanner_on(engine: BulkEngine) -> Scanner:
    """A scanner whose reading an engine does."""

    def scan(file: ScannedFile, progress: Progress, by_character: bool) -> ScannedSide:
        job = BulkJob("scan", {"by_character": by_character})
        rows = ({"text": raw.decode("utf-8", ANY_BYTES)} for raw in file.raw_lines())
        told = f"reading {file.path.name}"

        def parts() -> Iterator[ScannedLines]:
            blocks = blocks_of(rows, LINES_AT_ONCE)
            for answer in engine.answers(job, blocks, lambda lines: progress(told, lines)):
                yield _lines(answer, by_character)

        return side_of(file, parts(), by_character)

    return scan


def _lines(answer: dict[str, Any], by_character: bool) -> ScannedLines:
    arrays = {name: _unpacked(*packed) for name, packed in answer["arrays"].items()}
    words = WordStatistics(arrays.pop("word_ends"), arrays.pop("word_ids"), by_character)
    return ScannedLines(**arrays, words=words, scripts=answer["scripts"])


def _packed(values: Any) -> tuple[str, str]:
    """An array of numbers as text."""
    return values.dtype.str, base64.b64encode(np.ascontiguousarray(values).tobytes()).decode()


def _unpacked(kind: str, text: str) -> Any:
    return np.frombuffer(base64.b64decode(text), np.dtype(kind))
