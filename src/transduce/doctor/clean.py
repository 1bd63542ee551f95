"""A cleaned copy of a parallel corpus: pairs are dropped whole and for a counted reason, text is mended."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from transduce.core.destination import check_output, same_file
from transduce.core.errors import InputError
from transduce.data.files import writing
from transduce.doctor.characters import without_odd
from transduce.doctor.contents import usual_width, without_homoglyphs, without_invisibles
from transduce.doctor.examine import File
from transduce.doctor.lines import ScannedFile, as_text_file
from transduce.doctor.report import Report, Rows
from transduce.doctor.scan import Progress, in_silence
from transduce.doctor.writing import repaired, without_entities

MENDS = {
    "encoding": repaired,
    "entities": without_entities,
    "invisible": without_invisibles,
    "homoglyph": without_homoglyphs,
    "width": usual_width,
    "characters": without_odd,
}


@dataclass(frozen=True)
class Cleaned:
    """What cleaning did.

    Args:
        written: pairs in the cleaned copy.
        dropped: pairs left out, by reason, each counted once under its first reason; and, as
            `unmatched_source` and `unmatched_target`, single lines left out because they had no sure partner.
        mended: pairs written whose text was changed.
        changes: lines changed, by what was mended: `encoding`, `entities` of HTML, `invisible` characters, letters of
            another script (`homoglyph`), `width` of letters, odd `characters` and outer spaces; and pairs whose sides
            were exchanged back (`swapped`). Lines of pairs that are left out may be among them.
    """

    written: int
    dropped: dict[str, int] = field(default_factory=dict)
    mended: int = 0
    changes: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        return {"written": self.written, "dropped": self.dropped, "mended": self.mended, "changes": self.changes}


def clean(
    source: File,
    target: File,
    out_source: str | Path,
    out_target: str | Path,
    report: Report,
    *,
    progress: Progress = in_silence,
) -> Cleaned:
    """Write a cleaned copy of what `report` (of `examine`) is about; each file appears whole or not at all.

    Pairs are dropped, both sides together, for the reasons in `report.drop`; a shift is mended by leaving out
    the lines without a partner; exchanged sides are exchanged back; text that was decoded by the wrong encoding is
    repaired where ftfy is installed; entities of HTML become characters; zero-width characters go; letters of another
    script within Latin words become Latin; odd separators become a space, a byte order mark goes, outer spaces go.
    Outputs are compressed by their suffix.

    Raises:
        InputError: an output is an input or both outputs are one file; the report is of a single file; or
            the sides differ in length and it could not be found where.
    """
    files = as_text_file(source), as_text_file(target)
    outputs = Path(out_source), Path(out_target)
    _check(files, outputs, report)
    reasons = list(_first_reasons(report))
    counts, changes = Counter[str](), Counter[str]()
    with writing(outputs[0]) as source_out, writing(outputs[1]) as target_out:
        for reason, turned, raws in zip(reasons, _swapped(report), _paired_lines(files, report), strict=True):
            texts = None if reason else _mended(raws[::-1] if turned else raws, changes)
            if texts and all(texts):
                changes["swapped"] += turned
                source_out.write(texts[0].encode() + b"\n")
                target_out.write(texts[1].encode() + b"\n")
                counts["written"] += 1
                counts["mended"] += _changed(texts, raws)
            else:
                counts[reason or "empty"] += 1
            progress("writing the cleaned copy", 1)
    for role in ("source", "target"):
        counts[f"unmatched_{role}"] = report.lines[role] - len(reasons)
    written, mended = counts.pop("written", 0), counts.pop("mended", 0)
    return Cleaned(written, {reason: n for reason, n in counts.items() if n}, mended, dict(+changes))


def _check(files: tuple[ScannedFile, ScannedFile], outputs: tuple[Path, Path], report: Report) -> None:
    for output in outputs:
        check_output(output, [file.path for file in files])
    problems = []
    if outputs[0].resolve() == outputs[1].resolve() or same_file(*outputs):
        problems.append(f"{outputs[0]}: the two cleaned sides must go to two different files.")
    if report.alignment is None or report.pairs is None:
        problems.append("A single file was examined: only pairs of a source and a target can be cleaned.")
    elif not report.alignment.judged and report.lines["source"] != report.lines["target"]:
        problems.append(
            f"{files[0]} has {report.lines['source']:,} lines, {files[1]} {report.lines['target']:,}, and "
            "the place where they slip was not found, so it is unknown which lines belong together."
        )
    if problems:
        raise InputError(problems)


def _first_reasons(report: Report) -> Iterator[str]:
    """For each pair the first reason to drop it, or an empty string."""
    names = [*report.drop, ""]
    pairs = len(report.pairs) if report.pairs else 0
    masks = np.array([*report.drop.values(), np.ones(pairs, np.bool_)])
    return (names[first] for first in masks.argmax(axis=0))


def _swapped(report: Report) -> list[bool]:
    """Of each pair, whether its sides are exchanged."""
    return [False] * len(report.pairs or ()) if report.swapped is None else report.swapped.tolist()


def _paired_lines(files: tuple[ScannedFile, ScannedFile], report: Report) -> Iterator[tuple[bytes, bytes]]:
    """The raw lines of both sides that belong together, in order."""
    assert report.pairs is not None, "checked by the caller"
    return zip(
        _lines_at(files[0], report.pairs.source_rows),
        _lines_at(files[1], report.pairs.target_rows),
        strict=True,
    )


def _lines_at(file: ScannedFile, rows: Rows) -> Iterator[bytes]:
    """The raw lines at increasing rows."""
    lines, next_row = file.raw_lines(), 0
    for row in rows:
        yield next(islice(lines, int(row) - next_row, None))
        next_row = int(row) + 1


def _mended(raws: tuple[bytes, bytes], counts: Counter[str]) -> tuple[str, str]:
    source, target = (_mended_text(raw.decode(), counts) for raw in raws)
    return source, target


def _mended_text(text: str, counts: Counter[str]) -> str:
    for what, mend in MENDS.items():
        after = mend(text)
        counts[what] += after != text
        text = after
    return text


def _changed(texts: tuple[str, str], raws: tuple[bytes, bytes]) -> bool:
    return any(text.encode() != raw for text, raw in zip(texts, raws, strict=True))
