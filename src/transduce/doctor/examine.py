"""The examination: scan every file once, find where the sides slip, run every check, fetch examples."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from transduce.core.errors import InputError
from transduce.data.corpus import read_pairs
from transduce.data.pairs.pair_files import PairFiles
from transduce.doctor.alignment import mended
from transduce.doctor.characters import odd_bit
from transduce.doctor.faults import Faults, check_faults
from transduce.doctor.lines import LineSample, ScannedFile, as_text_file, column_of
from transduce.doctor.pair_checks import (
    Hashes,
    Paired,
    check_leak,
    check_near_leak,
    check_pairs,
    copy_mask,
    duplicate_mask,
    empty_masks,
    pair_hash,
    ratio_mask,
    repeated_lines,
)
from transduce.doctor.report import Finding, Mask, Report, Severity, worst_first
from transduce.doctor.scan import Progress, ScannedSide, Scanner, in_silence, of_single_words, scan
from transduce.doctor.shift import align, check_alignment
from transduce.doctor.side_checks import check_side, endless_mask, foreign_mask
from transduce.doctor.writing import not_looked_for

File = str | Path | ScannedFile

EXAMPLES = 3
EXAMPLE_CHARACTERS = 120


def examine(
    source: File,
    target: File,
    test_source: File | None = None,
    test_target: File | None = None,
    progress: Progress = in_silence,
    scanner: Scanner = scan,
    tests: Mapping[str, tuple[File, File | None]] | None = None,
) -> Report:
    """Examine a parallel corpus, and what of a test set has leaked into it.

    Args:
        source: the source side: a path, or a column of a tab-separated file (see `column_of`).
        target: the target side, line for line.
        test_source: the source side of a test set.
        test_target: its target side.
        progress: called with what is being done and how many lines more of it are done.
        scanner: reads the two sides.
        tests: further held-out sets, by name: "validation", "test flickr".

    Raises:
        InputError: a file is missing or damaged, a side has no lines, or the test sides differ in length.
    """
    files = {"source": as_text_file(source), "target": as_text_file(target)}
    by_character = any(of_single_words(file) for file in files.values())
    sides = {role: _scanned(file, progress, by_character, scanner) for role, file in files.items()}
    alignment = align(sides["source"], sides["target"], progress)
    pairs = mended(alignment, len(sides["source"]), len(sides["target"]))
    paired = Paired(sides["source"], sides["target"], pairs)
    findings = check_alignment(sides["source"], sides["target"], alignment)
    for role, side in sides.items():
        findings += check_side(side, role)
    findings += check_pairs(paired)
    progress("judging pairs", 0)
    faults = Faults(paired)
    findings += check_faults(faults)
    drop = reasons_to_drop(paired, faults.swapped) | faults.reasons_to_drop()
    sets: dict[str, tuple[File, File | None]] = {} if test_source is None else {"test": (test_source, test_target)}
    for name, both in {**sets, **(tests or {})}.items():
        tested = _test_sides(name, *both, progress)
        findings += _leaks(paired, tested, name)
        if f"{name} target" in tested:
            leaked = _in_test(paired, tested, name)
            drop["in_test_set"] = drop["in_test_set"] | leaked if "in_test_set" in drop else leaked
        files, sides = files | {role: side.file for role, side in tested.items()}, sides | tested
    findings = _with_examples(findings, files, paired)
    lines = {role: len(side) for role, side in sides.items()}
    return Report(
        files,
        lines,
        worst_first(findings),
        alignment,
        pairs,
        drop,
        swapped=faults.swapped,
        not_looked_for=_not_looked_for(sides),
    )


def examine_text(
    text: File, test: File | None = None, progress: Progress = in_silence, scanner: Scanner = scan
) -> Report:
    """Examine a single file, such as the text for a language model: the checks that need no second side."""
    files = {"text": as_text_file(text)}
    sides = {"text": _scanned(files["text"], progress, scanner=scanner)}
    findings = check_side(sides["text"], "text") + repeated_lines(sides["text"], "text")
    if test is not None:
        sides["test source"] = tested = _scanned(as_text_file(test), progress)
        files["test source"] = tested.file
        findings += check_leak(sides["text"].exact, tested.exact, tested, "line", Severity.WARNING, "test")
    lines = {role: len(side) for role, side in sides.items()}
    findings = worst_first(_with_examples(findings, files, None))
    return Report(files, lines, findings, not_looked_for=_not_looked_for(sides))


def reasons_to_drop(paired: Paired, swapped: Mask) -> dict[str, Mask]:
    """Why `clean` would leave pairs out, most basic reason first. swapped: pairs whose scripts are right, exchanged."""
    source_rows, target_rows = paired.pairs.source_rows, paired.pairs.target_rows
    one_empty, both_empty = empty_masks(paired)
    return {
        "invalid_utf8": paired.source.invalid[source_rows] | paired.target.invalid[target_rows],
        "empty": one_empty | both_empty,
        "wrong_script": (foreign_mask(paired.source)[source_rows] | foreign_mask(paired.target)[target_rows])
        & ~swapped,
        "copy": copy_mask(paired),
        "extreme_length": endless_mask(paired.source)[source_rows] | endless_mask(paired.target)[target_rows],
        "extreme_ratio": ratio_mask(paired),
        "duplicate": duplicate_mask(paired),
    }


def _not_looked_for(sides: dict[str, ScannedSide]) -> list[str]:
    return list(dict.fromkeys(each for side in sides.values() for each in not_looked_for(side.marks)))


def _scanned(file: ScannedFile, progress: Progress, by_character: bool = False, scanner: Scanner = scan) -> ScannedSide:
    side = scanner(file, progress, by_character)
    if not len(side):
        raise InputError(f"{file}: the file is empty; expected lines of text.")
    return side


def _test_sides(name: str, source: File, target: File | None, progress: Progress) -> dict[str, ScannedSide]:
    tests = {f"{name} source": _scanned(as_text_file(source), progress)}
    if target is not None:
        tests[f"{name} target"] = _scanned(as_text_file(target), progress)
        lines = [len(side) for side in tests.values()]
        if lines[0] != lines[1]:
            raise InputError(
                f"The test set's sides must have the same number of lines: {source} has {lines[0]:,}, "
                f"{target} has {lines[1]:,}."
            )
    return tests


def _leaks(paired: Paired, tests: dict[str, ScannedSide], name: str) -> list[Finding]:
    source = tests[f"{name} source"]
    findings = check_leak(paired.source.exact, source.exact, source, "source", Severity.WARNING, name)
    if f"{name} target" in tests:
        findings += check_leak(paired.exact, _pair_hashes(tests, name), source, "pair", Severity.ERROR, name)
        findings += check_near_leak(paired, source, tests[f"{name} target"], name)
    return findings


def _in_test(paired: Paired, tests: dict[str, ScannedSide], name: str) -> Mask:
    """Pairs that the test set has, too, but for case."""
    source, target = paired.source.folded, paired.target.folded
    tested = pair_hash(tests[f"{name} source"].folded, tests[f"{name} target"].folded)
    return np.isin(pair_hash(source[paired.pairs.source_rows], target[paired.pairs.target_rows]), tested)


def _pair_hashes(tests: dict[str, ScannedSide], name: str) -> Hashes:
    return pair_hash(tests[f"{name} source"].exact, tests[f"{name} target"].exact)


def _with_examples(findings: list[Finding], files: dict[str, ScannedFile], paired: Paired | None) -> list[Finding]:
    """The same findings with the text of their first lines, each file read once more at most."""
    rows_of: dict[str, set[int]] = {role: set() for role in files}
    for finding in findings:
        for role, rows in _example_rows(finding, files, paired).items():
            rows_of[role].update(rows)
    texts = {
        role: dict(zip(sorted(rows), files[role].texts_at(sorted(rows)), strict=True))
        for role, rows in rows_of.items()
        if rows
    }
    return [replace(finding, examples=_examples(finding, files, paired, texts)) for finding in findings]


def _example_rows(finding: Finding, files: dict[str, ScannedFile], paired: Paired | None) -> dict[str, list[int]]:
    role = "source" if finding.side == "pair" else finding.side
    rows = [line - files[role].first_line for line in finding.lines[:EXAMPLES]]
    if finding.side != "pair" or paired is None:
        return {role: rows}
    places = np.searchsorted(paired.pairs.source_rows, rows)
    found = [
        (row, int(paired.pairs.target_rows[place]))
        for row, place in zip(rows, places, strict=True)
        if place < len(paired.pairs) and paired.pairs.source_rows[place] == row
    ]
    return {"source": [row for row, _ in found], "target": [row for _, row in found]}


def _examples(
    finding: Finding,
    files: dict[str, ScannedFile],
    paired: Paired | None,
    texts: dict[str, dict[int, str]],
) -> list[str]:
    columns = [
        [visible(texts[role][row]) for row in rows] for role, rows in _example_rows(finding, files, paired).items()
    ]
    return [" ||| ".join(cells) for cells in zip(*columns, strict=True)]


def visible(text: str) -> str:
    """Text as it can be shown on one line: what cannot be seen is escaped, what is too long is cut."""
    shown = "".join(c if c.isprintable() and not odd_bit(c) else c.encode("unicode_escape").decode() for c in text)
    return shown if len(shown) <= EXAMPLE_CHARACTERS else shown[: EXAMPLE_CHARACTERS - 3] + "..."


@dataclass(frozen=True)
class PairSide(LineSample):
    """One side of pairs, each text in one line; several columns are joined as they are learnt."""

    files: PairFiles | None = None
    root: Path = Path()
    side: int = 0

    def all_lines(self) -> Iterator[bytes]:
        """The texts of this side. Raises InputError as `read_pairs`."""
        assert self.files is not None
        return (pair[self.side].replace("\n", " ").encode() for _, *pair in read_pairs(self.files, self.root))

    def __str__(self) -> str:
        return f"{self.path}, {'target' if self.side else 'source'}"


def sides_of(files: PairFiles, root: Path) -> tuple[LineSample, LineSample]:
    """Source and target. Lines of text files and cells of single columns may be anything, which is examined.

    Other sides raise InputError, when they are read, for rows that are none.
    """
    paths = files.paths(root)
    if files.of_two_files:
        return LineSample(paths[0]), LineSample(paths[1])
    if files.format_name == "tsv" and len(files.sources) == 1:
        separator = files.separator or "\t"
        return column_of(paths[0], files.sources[0], separator), column_of(paths[0], files.target_column, separator)
    source = PairSide(paths[0], header=files.reader.header(paths[0]), files=files, root=root)
    return source, replace(source, side=1)
