"""One fault at a time is planted in a clean corpus; exactly that one must be found, at its line."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from transduce.core.errors import InputError
from transduce.data.corpus import read_pairs
from transduce.data.pairs.pair_files import PairFiles
from transduce.doctor import Finding, Report, Severity, examine, examine_text
from transduce.doctor.examine import sides_of

Corpus = tuple[list[str], list[str]]
Write = Callable[..., Path]


def report_of(write: Write, source: list[str] | list[bytes], target: list[str] | list[bytes]) -> Report:
    return examine(write("a.txt", source), write("b.txt", target))


def only_finding(report: Report) -> Finding:
    (finding,) = report.findings
    return finding


def put(lines: list[str], changes: dict[int, str]) -> list[str]:
    """The lines with some replaced; numbers count from 1."""
    return [changes.get(number, line) for number, line in enumerate(lines, start=1)]


def test_a_clean_corpus_has_no_findings(corpus: Corpus, write: Write) -> None:
    report = report_of(write, *corpus)
    assert report.findings == []
    assert report.alignment is not None
    assert report.alignment.judged
    assert report.lines == {"source": 400, "target": 400}


@pytest.mark.parametrize(
    ("character", "name", "severity"),
    [
        ("\r", "carriage return", Severity.WARNING),
        ("\t", "tab", Severity.NOTE),
        ("\0", "NUL", Severity.WARNING),
        ("\ufeff", "byte order mark", Severity.WARNING),
        ("\u2028", "line separator", Severity.WARNING),
        ("\u2029", "paragraph separator", Severity.WARNING),
        ("\x85", "next line", Severity.WARNING),
        ("\x0c", "other control character", Severity.WARNING),
        ("\ufffd", "replacement character", Severity.WARNING),
    ],
)
def test_odd_characters(corpus: Corpus, write: Write, character: str, name: str, severity: Severity) -> None:
    source, target = corpus
    spoiled = put(target, {9: target[8] + " " + character + " ", 33: target[32][:3] + character + target[32][3:]})
    finding = only_finding(report_of(write, source, spoiled))
    assert (finding.kind, finding.severity, finding.lines) == ("odd_character", severity, [9, 33])
    assert (finding.side, finding.count) == ("target", 2)
    assert name in finding.sentence
    assert all(example.isprintable() for example in finding.examples)


def test_the_line_ends_and_the_byte_order_mark_of_windows_are_no_text(corpus: Corpus, write: Write) -> None:
    source, target = corpus
    windows = [f"{line}\r" for line in target]
    assert report_of(write, ["\ufeff" + source[0], *source[1:]], windows).findings == []
    inside = put(windows, {9: target[8][:3] + "\r" + target[8][3:] + "\r"})
    assert only_finding(report_of(write, source, inside)).lines == [9]


def test_invalid_utf8_is_gone_past(corpus: Corpus, write: Write) -> None:
    source = [line.encode() for line in corpus[0]]
    source[4] += b" caf\xe9"
    source[399] = b"\xff" + source[399]
    finding = only_finding(report_of(write, source, corpus[1]))
    assert (finding.kind, finding.severity) == ("invalid_utf8", Severity.ERROR)
    assert (finding.side, finding.lines) == ("source", [5, 400])


def test_empty_on_one_side_and_on_both(corpus: Corpus, write: Write) -> None:
    source, target = put(corpus[0], {3: "", 7: " \u3000", 11: ""}), put(corpus[1], {7: "", 200: ""})
    report = report_of(write, source, target)
    assert [(f.kind, f.lines) for f in report.findings] == [
        ("empty_one_side", [3, 11, 200]),
        ("empty_both_sides", [7]),
    ]


def test_copies_but_not_short_names(corpus: Corpus, write: Write) -> None:
    copies = {5: corpus[0][4], 80: corpus[0][79].upper() + " "}
    names = {20: "Angela Merkel", 21: "1 234 567, 8 910 111", 22: "OK"}
    source, target = put(corpus[0], names), put(corpus[1], copies | names)
    [finding] = report_of(write, source, target).of_kind("copy")
    assert finding.lines == [5, 80]


def test_pairs_that_are_mostly_empty_or_the_same_teach_nothing(corpus: Corpus, write: Write) -> None:
    half = len(corpus[0]) // 2
    same = only_finding(examine(write("a", corpus[0]), write("b", [*corpus[0][: half + 1], *corpus[1][half + 1 :]])))
    assert (same.kind, same.severity, same.count) == ("same_sides", Severity.ERROR, half + 1)
    empty = only_finding(examine(write("a", corpus[0]), write("b", [*[""] * (half + 1), *corpus[1][half + 1 :]])))
    assert (empty.kind, empty.severity, empty.count) == ("empty_one_side", Severity.ERROR, half + 1)


def test_duplicates_and_several_targets_are_told_apart(corpus: Corpus, write: Write) -> None:
    source = put(corpus[0], {100: corpus[0][0], 101: corpus[0][1]})
    target = put(corpus[1], {100: corpus[1][0] + " "})
    report = report_of(write, source, target)
    assert [(f.kind, f.severity, f.lines) for f in report.findings] == [
        ("duplicate", Severity.NOTE, [100]),
        ("several_targets", Severity.NOTE, [2, 101]),
    ]
    many = report_of(write, source + source[:20], target + target[:20])
    assert many.of_kind("duplicate")[0].severity is Severity.WARNING


def test_wrong_script(corpus: Corpus, write: Write) -> None:
    strange = {7: "Это предложение на другом языке", 8: "ここは日本語です、はい", 9: "Да 12", 10: "Ωmega"}
    [finding] = report_of(write, corpus[0], put(corpus[1], strange)).of_kind("wrong_script")
    assert (finding.side, finding.lines) == ("target", [7, 8])
    assert "CJK" in finding.sentence.upper()
    assert "Latin is usual" in finding.sentence


def test_a_second_script_in_use_is_not_wrong(corpus: Corpus, write: Write) -> None:
    target = [f"Это предложение {n}" if n % 4 == 0 else line for n, line in enumerate(corpus[1])]
    assert not report_of(write, corpus[0], target).of_kind("wrong_script")


def test_extreme_lengths(corpus: Corpus, write: Write) -> None:
    source, target = corpus
    long = {50: " ".join(source[:60])}
    report = report_of(write, put(source, long), put(target, {50: " ".join(target[:60]), 60: target[59] * 9}))
    assert [(f.kind, f.side, f.lines) for f in report.findings] == [
        ("extreme_length", "source", [50]),
        ("extreme_length", "target", [50]),
        ("extreme_ratio", "pair", [60]),
    ]


def test_leaked_test_set(corpus: Corpus, write: Write) -> None:
    source, target = corpus
    test_source = write("ta", ["unseen one .", source[5], source[6], ""])
    test_target = write("tb", ["unseen uno .", target[5], "another", ""])
    report = examine(write("a", source), write("b", target), test_source, test_target)
    leaks = {f.kind: f for f in report.findings}
    assert leaks["test_source_in_train"].lines == [2, 3]
    assert leaks["test_pair_in_train"].lines == [2]
    assert leaks["test_pair_in_train"].severity is Severity.ERROR
    assert leaks["test_pair_in_train"].examples == [source[5]]
    assert report.has_errors
    assert report.drop["in_test_set"].nonzero()[0].tolist() == [5]
    with pytest.raises(InputError, match="the same number of lines"):
        examine(write("a", source), write("b", target), test_source, write("tb", target[:2]))


@pytest.mark.parametrize("header", [["source\ttarget"], []])
def test_tab_separated_file(corpus: Corpus, write: Write, header: list[str]) -> None:
    rows = [f"{a}\t{b}" for a, b in zip(*corpus, strict=True)]
    rows[3] = "only a source\t"
    report = examine(*sides_of(PairFiles(file=str(write("pairs.tsv", header + rows))), Path()))
    finding = only_finding(report)
    assert (finding.kind, finding.lines) == ("empty_one_side", [4 + len(header)])
    assert report.lines["source"] == 400


@pytest.mark.parametrize(("header", "columns"), [(["id\tTarget\tSource"], ("Source", "Target")), ([], (2, 1))])
def test_columns_are_those_asked_for(
    corpus: Corpus, write: Write, header: list[str], columns: tuple[int | str, int | str]
) -> None:
    rows = [f"{n}\t{b}\t{a}" for n, (a, b) in enumerate(zip(*corpus, strict=True))]
    keys = {"source_column": columns[0], "target_column": columns[1]}
    files = PairFiles.model_validate({"file": str(write("pairs.tsv", [*header, *rows])), **keys})
    source, target = sides_of(files, Path())
    assert [line.decode() for line in source.raw_lines()] == corpus[0]
    assert [line.decode() for line in target.raw_lines()] == corpus[1]
    assert str(source).endswith("pairs.tsv, column 2")  # as a recipe counts


def test_lines_without_a_column_are_refused_as_training_does(write: Write) -> None:
    files = PairFiles(file=str(write("pairs.tsv", ["a\tb", "", "c", "d\te"])))
    wanted = r"pairs\.tsv: expected 2 tab-separated columns in every line, but 1 line has fewer \(line 3\)"
    with pytest.raises(InputError, match=wanted):
        [*sides_of(files, Path())[1].raw_lines()]
    with pytest.raises(InputError, match=wanted):
        [*read_pairs(files, Path())]


def test_single_text(corpus: Corpus, write: Write) -> None:
    lines = put(corpus[0], {2: "", 10: corpus[0][0], 12: "x\x00y"})
    report = examine_text(write("text", lines), write("test", [corpus[0][19], "never seen"]))
    assert {(f.kind, tuple(f.lines)) for f in report.findings} == {
        ("empty", (2,)),
        ("duplicate", (10,)),
        ("odd_character", (12,)),
        ("test_line_in_train", (1,)),
    }


def test_report_is_json(corpus: Corpus, write: Write) -> None:
    report = report_of(write, corpus[0], put(corpus[1], {5: corpus[0][4]}))
    answer = json.loads(json.dumps(report.to_dict()))
    assert answer["findings"][0]["kind"] == "copy"
    assert answer["findings"][0]["examples"] == [f"{corpus[0][4]} ||| {corpus[0][4]}"]
    assert answer["would_drop"]["copy"] == 1
    assert answer["alignment"]["stretches"] == [{"first_line": 1, "last_line": 400, "offset": 0}]


def test_an_empty_file_is_refused(corpus: Corpus, write: Write) -> None:
    with pytest.raises(InputError, match=r"b\.txt: the file is empty"):
        report_of(write, corpus[0], [])
