"""Lines are taken out of one side: the place must be found from the text alone. Clean corpora stay silent."""

import random
from collections.abc import Callable
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest

from transduce.data.pairs.pair_files import PairFiles
from transduce.doctor import Report, Severity, examine
from transduce.doctor.examine import sides_of
from transduce.doctor.shift import likeliest_states

Corpus = tuple[list[str], list[str]]
Write = Callable[..., Path]
Lines = Callable[[str], list[str]]


def shifts(write: Write, source: list[str], target: list[str]) -> list[tuple[int, int | None]]:
    """First line (from 1) and offset of every stretch but a first one at offset 0."""
    alignment = examine(write("a", source), write("b", target)).alignment
    assert alignment is not None
    assert alignment.judged
    stretches = [(part.first + 1, part.offset) for part in alignment.stretches]
    return stretches[1:] if stretches[0] == (1, 0) else stretches


@pytest.mark.parametrize("equal_counts", [True, False])
@pytest.mark.parametrize(("side", "offset"), [("source", 1), ("target", -1)])
def test_random_deletions_in_captions(
    multi30k: Lines, write: Write, side: str, offset: int, equal_counts: bool
) -> None:
    dice = random.Random(f"{side} {equal_counts}")
    source, target = multi30k("en")[:2000], multi30k("de")[:2000]
    shortened, other = (source, target) if side == "source" else (target, source)
    place = dice.randrange(len(shortened))
    del shortened[place]
    if equal_counts:
        other.pop()
    found = shifts(write, source, target) or [(len(source), offset)]
    assert len(found) == 1
    assert found[0][1] == offset
    assert abs(found[0][0] - (place + 1)) <= 20


@pytest.mark.parametrize(
    ("languages", "lines"), [("en de", 150), ("en fr", 1000), ("en cs", 150), ("de cs", 1000), ("en de", 5000)]
)
def test_clean_captions_raise_no_alarm(multi30k: Lines, write: Write, languages: str, lines: int) -> None:
    source, target = (multi30k(language)[:lines] for language in languages.split())
    assert shifts(write, source, target) == []


def test_several_shifts_and_their_end(corpus: Corpus, write: Write) -> None:
    source, target = corpus
    target = target[:100] + target[101:200] + ["baka nuraxi."] + target[200:300] + target[302:]
    found = shifts(write, source, target)
    assert [offset for _, offset in found] == [-1, 0, -2]
    assert np.allclose([line for line, _ in found], [101, 201, 301], atol=3)


def test_a_far_shift_is_looked_for_where_nothing_matches(multi30k: Lines, write: Write) -> None:
    source, target = multi30k("en")[:2000], multi30k("fr")[:2000]
    found = shifts(write, source[:1500] + source[1540:], target[:500] + target[540:])
    assert [offset for _, offset in found] == [None, -40, 0]
    assert np.allclose([line for line, _ in found], [501, 541, 1501], atol=3)


def test_unequal_counts_tell_the_place(corpus: Corpus, write: Write) -> None:
    report = examine(write("a", corpus[0]), write("b", corpus[1][:249] + corpus[1][250:]))
    unequal, shift = report.findings
    assert (unequal.kind, unequal.severity, unequal.count) == ("unequal_counts", Severity.ERROR, 1)
    assert "400 lines, the target 399 lines" in unequal.sentence
    assert (shift.kind, shift.severity) == ("shift", Severity.ERROR)
    assert abs(shift.lines[0] - 250) <= 2
    assert "shifted by -1" in shift.sentence
    assert "1 line missing from the target" in shift.sentence


def test_extra_lines_at_the_end_are_no_shift(corpus: Corpus, write: Write) -> None:
    report = examine(write("a", corpus[0]), write("b", [*corpus[1], "nuba lira.", "zuka."]))
    (unequal,) = report.findings
    assert unequal.kind == "unequal_counts"
    assert "the target's last 2 are extra" in unequal.sentence


def test_a_stretch_of_strangers_is_told(multi30k: Lines, write: Write) -> None:
    source, target = multi30k("en")[:2000], multi30k("de")[:2000]
    target[800:1100] = multi30k("de")[20_000:20_300]
    report = examine(write("a", source), write("b", target))
    (unmatched,) = (f for f in report.findings if f.kind == "unmatched")
    assert abs(unmatched.lines[0] - 801) <= 5
    assert abs(unmatched.count - 300) <= 10


def shuffled(lines: list[str]) -> list[str]:
    return random.Random(3).sample(lines, len(lines))


def test_unrelated_files_are_told(multi30k: Lines, write: Write) -> None:
    english, german = multi30k("en")[:1500], multi30k("de")[1500:3000]
    report = examine(write("a", english), write("b", shuffled(german)))
    (finding,) = report.of_kind("unrelated")
    assert (finding.severity, finding.count) == (Severity.ERROR, 1500)
    assert not report.of_kind("shift")
    sorted_by_length = [sorted(lines, key=len) for lines in (english, german)]  # as if lengths said that they belong
    (finding,) = examine(*(write(f"sorted{n}", lines) for n, lines in enumerate(sorted_by_length))).findings[:1]
    assert (finding.kind, finding.severity) == ("alignment_unjudged", Severity.WARNING)


def dictionary(entries: int) -> Corpus:
    """Words in alphabetical order, none twice, and what stands for their letters: one of two phonemes each."""
    dice = random.Random(entries)
    letters = [chr(ord("a") + number) for number in range(26)]
    words = sorted({"".join(dice.choices(letters, k=dice.randint(3, 9))) for _ in range(entries)})
    return words, [" ".join(f"{letter.upper()}{dice.randrange(2)}" for letter in word) for word in words]


@pytest.mark.parametrize("joined", [False, True])
def test_words_and_their_pronunciations_belong_together(write: Write, joined: bool) -> None:
    words, spoken = dictionary(2000)
    spoken = [each.replace(" ", "") for each in spoken] if joined else spoken
    report = examine(write("a", words), write("b", spoken))
    assert report.findings == []
    assert report.alignment is not None
    assert report.alignment.judged
    [(line, offset)] = shifts(write, words, spoken[:700] + spoken[701:])
    assert offset == -1
    assert abs(line - 701) <= 5


def test_a_dictionary_of_copies_is_not_called_copied(write: Write) -> None:
    lemmas = [word * 3 for word in dictionary(300)[0]]
    forms = [lemma if place % 3 else lemma + "ed" for place, lemma in enumerate(lemmas[:200])]
    forms += [lemma + "ing" for lemma in lemmas[200:]]
    assert examine(write("a", lemmas), write("b", forms)).findings == []


@pytest.mark.parametrize("language", ["g2p_sigmorphon2020/ice", "g2p_sigmorphon2021/dut", "g2p_sigmorphon2021/kor"])
def test_real_pronunciations_pass(data_root: Path, language: str) -> None:
    report = examine(*sides_of(PairFiles(file=f"{language}_train.tsv.gz"), data_root))
    assert report.findings == []


def test_a_side_of_few_words_is_not_called_unrelated(write: Write) -> None:
    dice = random.Random(3)
    sums = [(dice.randrange(1000), dice.randrange(1000)) for _ in range(1500)]
    report = examine(
        write("a", [" ".join(f"{one}+{other}") for one, other in sums]),
        write("b", [" ".join(str(one * other % 997)) for one, other in sums]),
    )
    (finding,) = report.of_kind("alignment_unjudged")
    assert finding.severity is Severity.NOTE
    assert "so few different words" in finding.sentence


def test_a_short_file_is_not_judged(corpus: Corpus, write: Write) -> None:
    report: Report = examine(write("a", corpus[0][:30]), write("b", corpus[1][1:31]))
    (finding,) = report.findings
    assert (finding.kind, finding.severity) == ("alignment_unjudged", Severity.NOTE)


@pytest.mark.parametrize("seed", range(20))
def test_viterbi_equals_trying_every_path(seed: int) -> None:
    dice = np.random.default_rng(seed)
    evidence_LS = dice.normal(size=(6, 3)).astype(np.float32)
    start_S, change_S = dice.random(3), dice.random(3)

    def worth(path: tuple[int, ...]) -> float:
        gained = sum(float(evidence_LS[line, state]) for line, state in enumerate(path))
        changes = sum(change_S[after] for before, after in pairwise(path) if before != after)
        return gained - start_S[path[0]] - float(changes)

    best = max(product(range(3), repeat=6), key=worth)
    assert tuple(likeliest_states(evidence_LS, start_S, change_S).tolist()) == best
