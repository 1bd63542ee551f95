"""Faults of single pairs are planted in a clean corpus: each is found with its count, its lines and an example."""

import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from transduce.doctor import Report, Severity, clean, examine, partners
from transduce.doctor.alignment import AlignedPairs
from transduce.doctor.contents import (
    number_set,
    placeholder_set,
    repeats,
    usual_width,
    without_homoglyphs,
    without_invisibles,
)
from transduce.doctor.faults import Faults, _words_of_both
from transduce.doctor.lines import ScannedFile
from transduce.doctor.pair_checks import Paired
from transduce.doctor.scan import scan
from transduce.doctor.words import WordCollector, buckets

Corpus = tuple[list[str], list[str]]
Write = Callable[..., Path]
Lines = Callable[[str], list[str]]
Plant = Callable[[str, str], tuple[str, str]]

ROWS = [17, 60, 61, 150, 222, 301, 399]


def planted(corpus: Corpus, plant: Plant, rows: list[int] = ROWS) -> Corpus:
    source, target = list(corpus[0]), list(corpus[1])
    for row in rows:
        source[row], target[row] = plant(source[row], target[row])
    return source, target


def examined(write: Write, corpus: Corpus) -> Report:
    return examine(write("a.txt", corpus[0]), write("b.txt", corpus[1]))


def cleaned(report: Report) -> list[tuple[str, str]]:
    source, target = report.files["source"], report.files["target"]
    out = [source.path.with_name(name) for name in ("clean.a", "clean.b")]
    clean(source, target, *out, report)
    texts = [path.read_text(encoding="utf-8").split("\n")[:-1] for path in out]
    return list(zip(*texts, strict=True))


DROPPED: dict[str, Plant] = {
    "near_copy": lambda s, t: (s, "Translation: " + s.upper()),
    "url_only": lambda s, t: (f"https://example.org/{len(s)}?q={s[:3]}", t),
    "placeholders_differ": lambda s, t: (s + " %s {name}", t + " %s"),
    "numbers_differ": lambda s, t: (s + " 12 of 1,000!", t + " 13 of 1000."),
    "repetition": lambda s, t: (s, " ".join([t[:-1], *t[:-1].split()[-2:] * 4]) + "!"),
    "cut_target": lambda s, t: (s, t[: len(t) // 2].rstrip(" !")),
    "cut_source": lambda s, t: (s[: len(s) // 2].rstrip(" ."), t),
    "note_one_side": lambda s, t: (s, t + " [Translator's note: unclear!]"),
}
MENDED: dict[str, Plant] = {
    "invisible": lambda s, t: (s, f"{t[:4]}\u200b{t[4:]}"),
    "homoglyph": lambda s, t: (s[0] + s[1:].translate(str.maketrans("aeo", "\u0430\u0435\u043e")), t),
    "mixed_width": lambda s, t: (s, "".join(chr(ord(c) + 0xFEE0) if c.isalpha() else c for c in t)),
}


@pytest.mark.parametrize("kind", [*DROPPED, *MENDED, "case"])
def test_each_fault_is_found_with_its_lines(corpus: Corpus, write: Write, kind: str) -> None:
    plant = (DROPPED | MENDED).get(kind, lambda s, t: (s, t.upper()))
    spoilt = planted(corpus, plant)
    report = examined(write, spoilt)
    [finding] = report.of_kind(kind)
    assert (finding.count, finding.lines) == (len(ROWS), [row + 1 for row in ROWS])
    assert finding.severity is Severity.WARNING
    assert finding.examples
    assert len(report.findings) == 1
    assert not report.has_errors
    pairs = list(zip(*corpus, strict=True))
    if kind in DROPPED:
        assert cleaned(report) == [pair for row, pair in enumerate(pairs) if row not in ROWS]
    if kind in MENDED:
        assert cleaned(report) == pairs


def test_what_many_pairs_have_belongs_to_the_corpus(corpus: Corpus, write: Write) -> None:
    """Commands such as SCAN's are answered by repetition; captions without a point at their end are captions."""
    often = list(range(0, 400, 3))
    for kind, plant in (("repetition", DROPPED["repetition"]), ("cut_target", lambda s, t: (s, t[:15]))):
        assert not examined(write, planted(corpus, plant, often)).of_kind(kind)
    alike = [" ".join(reversed(line.split())) for line in corpus[0]]
    report = examined(write, (corpus[0], alike))
    assert not [*report.of_kind("near_copy"), *report.of_kind("swapped"), *report.of_kind("other_language")]


@pytest.mark.parametrize("rows", [[5, 80, 399], list(range(300, 400)), list(range(200, 400)), list(range(0, 400, 2))])
def test_exchanged_sides_are_found_and_put_right(corpus: Corpus, write: Write, rows: list[int]) -> None:
    report = examined(write, planted(corpus, lambda s, t: (t, s), rows))
    [finding] = report.of_kind("swapped")
    right = cleaned(report) == list(zip(*corpus, strict=True))
    assert finding.count == len(rows)
    if len(rows) < 150 or rows[0] > 20:  # else either way is as likely
        assert right
        assert finding.lines[0] == rows[0] + 1
    assert finding.severity is (Severity.ERROR if len(rows) > 20 else Severity.WARNING)


def test_a_constant_target_is_no_answer_but_labels_are(corpus: Corpus, write: Write) -> None:
    some = list(range(3, 400, 10))
    [finding] = examined(write, planted(corpus, lambda s, t: (s, "OK!"), some)).of_kind("constant_target")
    assert (finding.count, finding.severity) == (len(some), Severity.WARNING)
    [finding] = examined(write, (corpus[0], ["OK!"] * 399 + ["no!"])).of_kind("constant_target")
    assert (finding.count, finding.severity) == (399, Severity.ERROR)
    labels = [("good!", "bad!")[number % 2] for number in range(400)]
    assert not examined(write, (corpus[0], labels)).of_kind("constant_target")


def test_near_duplicates_and_leaks_but_for_case(corpus: Corpus, write: Write) -> None:
    source, target = list(corpus[0]), list(corpus[1])
    source[10], target[10] = source[3].rstrip(".") + " 7", target[3]
    source[11], target[11] = source[4], target[4]  # word for word, which is a duplicate
    tests = [write("ta", [source[20].upper(), source[21]]), write("tb", [target[20].lower(), target[21]])]
    report = examine(write("a.txt", source), write("b.txt", target), *tests)
    [near], [exact] = report.of_kind("near_duplicate"), report.of_kind("duplicate")
    assert (near.lines, exact.lines) == ([11], [12])
    [near], [exact] = report.of_kind("test_pair_nearly_in_train"), report.of_kind("test_pair_in_train")
    assert (near.lines, near.severity, exact.lines) == ([1], Severity.WARNING, [2])
    assert report.drop["in_test_set"].nonzero()[0].tolist() == [20, 21]


def test_many_lines_with_a_nul_are_an_error(corpus: Corpus, write: Write) -> None:
    report = examined(write, planted(corpus, lambda s, t: (s, t[:3] + "\0" + t[3:])))
    assert [(f.kind, f.severity) for f in report.findings] == [("odd_character", Severity.ERROR)]


@pytest.mark.parametrize("count", [20, 75])
def test_lines_of_another_language_in_the_same_script(multi30k: Lines, write: Write, count: int) -> None:
    english, french, german = (multi30k(language)[:1500] for language in ("en", "fr", "de"))
    rows = sorted(random.Random(count).sample(range(1500), count))
    for strangers, said in (
        (german, "another language than the others"),
        (english[99:] + english[:99], "the language of the"),
    ):
        target = [strangers[row] if row in rows else line for row, line in enumerate(french)]
        [finding] = examined(write, (english, target)).of_kind("other_language")
        assert said in finding.sentence
        assert abs(finding.count - count) <= 0.1 * count
        assert len({*finding.lines} - {row + 1 for row in rows}) <= 1


def test_lines_beside_a_random_partner(multi30k: Lines, write: Write) -> None:
    english, german = (multi30k(language)[:2000] for language in ("en", "de"))
    undamaged = examined(write, (english, german))
    assert not undamaged.has_errors
    assert not {"wrong_partner", "other_language", "swapped"} & {finding.kind for finding in undamaged.findings}
    rows = sorted(random.Random(5).sample(range(2000), 120))
    partners_of = dict(zip(rows, rows[1:] + rows[:1], strict=True))
    report = examined(write, (english, [german[partners_of.get(row, row)] for row in range(2000)]))
    [finding] = report.of_kind("wrong_partner")
    assert abs(finding.count - 120) <= 24
    assert {*finding.lines} <= {row + 1 for row in rows}
    sure = report.drop["wrong_partner"].nonzero()[0].tolist()
    assert len(sure) > 60
    assert len({*sure} & {*rows}) > 0.8 * len(sure)


def test_words_on_both_sides_equal_those_of_sets(corpus: Corpus, write: Write) -> None:
    source = corpus[0][:50]
    target = [" ".join([*line.split()[::2], "new", "."]) for line in source[1:] + source[:1]]
    sides = [scan(ScannedFile(write(name, lines))) for name, lines in (("s", source), ("t", target))]
    rows = np.arange(10, 50), np.arange(40)
    both, either = _words_of_both(*sides, *rows)
    marks = {*buckets(".")}
    for place, (a, b) in enumerate(zip(*rows, strict=True)):
        sets = {*buckets(source[a])} - marks, {*buckets(target[b])} - marks
        assert (both[place], either[place]) == (len(sets[0] & sets[1]), len(sets[0] | sets[1]))


def test_translations_are_learnt_as_by_a_slow_loop() -> None:
    sides = []
    for lines in (["a b", "a c", "b c", "a"], ["x y", "x z", "y z", "x"]):
        collector = WordCollector()
        for line in lines:
            collector.add(line)
        number_of = np.full(1 << 16, -1)
        number_of[[buckets(word)[0] for word in sorted({*" ".join(lines).split()})]] = range(3)
        sides.append(collector.words().only(number_of))
    rows = np.arange(4)
    t = partners._learn(*sides, rows, rows).t_VW.reshape(3, 3)
    pairs = [([0, 1], [0, 1]), ([0, 2], [0, 2]), ([1, 2], [1, 2]), ([0], [0])]
    frequency, slow = np.bincount([w for _, ws in pairs for w in ws]) / 7, np.full((3, 3), 1 / 3)
    for _ in range(partners.ITERATIONS):
        count = np.zeros((3, 3))
        for vs, ws in pairs:
            for w in ws:
                total = sum(slow[v, w] for v in vs) + partners.NULL * frequency[w]
                for v in vs:
                    count[v, w] += slow[v, w] / total
        slow = count / (count.sum(axis=1, keepdims=True) + partners.SHRINK)
    np.testing.assert_allclose(t, slow, rtol=1e-5)


def test_numbers_and_placeholders_are_sets() -> None:
    assert number_set("10,000 men") == number_set("010.000 Männer") == number_set("10 000") == number_set("１ 万 円")
    assert number_set("in 1999, 3 men") == number_set("3 in 1999") != number_set("3 in 1998")
    assert number_set("²") == number_set("none") == 0
    same = ["%s of {name}", "{name}: %s", "%s%s {name}"]
    assert len({placeholder_set(text) for text in same}) == 1
    assert placeholder_set("100 %durable") == placeholder_set("50 % sure {") == placeholder_set("a < b") == 0
    each = ["%1$s", "%(count)d", "{{x}}", "${y}", '<x id="1"/>', "{}", "{0}", "%@"]
    assert all(placeholder_set(f"a {one} b") for one in each)


def test_a_phrase_is_repeated_when_it_stands_there_often_in_a_row() -> None:
    assert repeats(["no"] * 6)
    assert repeats(["he", "said", "a", "b", "c", "a", "b", "c", "a", "b", "c", "a", "b", "c"])
    assert repeats(["sea", ".", "sea", ".", "sea", ".", "sea", "."])
    assert not repeats(["no"] * 5)
    assert not repeats(["."] * 30)
    assert not repeats(["the", "man", "and", "the", "dog", "and", "the", "cat", "and", "the", "cow"])


def test_what_deceives_is_mended_and_the_rest_is_kept() -> None:
    assert without_homoglyphs("p\u0430ypal и \u0430 μm Ωmega") == "paypal и \u0430 μm Ωmega"
    assert without_homoglyphs("Привет, мир") == "Привет, мир"
    kept = ["👨‍👩‍👧 family", "می‌خواهم", "ภาษา\u200bไทย", "क्‍ष"]  # joiners that their scripts or emoji need
    assert [without_invisibles(text) for text in kept] == kept
    assert without_invisibles("a\u200bb c\u00add\u2060 e\u200c") == "ab cd e"
    assert usual_width("Ｈｅｌｌｏ １") == "Hello １"
    assert usual_width("ﾃﾞｰﾀとＤＶＤ") == "データとＤＶＤ"


def test_another_language_needs_a_language(write: Write, corpus: Corpus) -> None:
    """A few lines of names are none, and a side of few lines is not judged."""
    names = [f"{a} {b} Kovač, Ü. Müller {a}" for a, b in zip(corpus[0][0].split(), corpus[0][1].split(), strict=False)]
    source, target = [*corpus[0], *names], [*corpus[1], *names]
    pairs = AlignedPairs(*[np.arange(len(source))] * 2)
    sides = [scan(ScannedFile(write(name, lines))) for name, lines in (("s", source), ("t", target))]
    assert not Faults(Paired(sides[0], sides[1], pairs)).other_language.any()
