"""Subtitles that are cut at words: each is short enough to be read, and none is lost."""

import random
from itertools import pairwise

import pytest

from transduce.documents.subtitles import WIDTH, width
from transduce.inference.prediction import SpokenSegment, SpokenWord
from transduce.serve.subtitles import LONGEST, cues, subtitles


def spoken(words: list[str], rng: random.Random) -> list[SpokenWord]:
    at, found = 0.0, []
    for word in words:
        at = round(at + rng.choice([0.05, 0.2, 0.6, 1.5]), 3)
        found.append(SpokenWord(word, at, round(at + rng.uniform(0.04, 0.5), 3)))
        at = found[-1].end
    return found


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("letters", ["abcdefgh", "零一二三四五六"])
def test_each_is_short_and_together_they_are_the_text(seed: int, letters: str) -> None:
    rng = random.Random(seed)
    chinese = letters[0] == "零"
    sizes = [1] * 60 if chinese else [rng.randrange(1, 13) for _ in range(60)]
    names = ["".join(rng.choices(letters, k=size)) for size in sizes]
    words, text = spoken(names, rng), ("" if chinese else " ").join(names)
    found = cues(words, text)
    lines = [line for each in found for line in each.text.split("\n")]
    assert "".join(lines).replace(" ", "") == "".join(names)
    if not chinese:
        assert " ".join(lines).split() == names
    for each in found:
        assert len(each.text.split("\n")) <= 2 and each.start < each.end <= each.start + LONGEST
    assert max(map(width, lines)) <= WIDTH
    for one, other in pairwise(found):
        assert one.end <= other.start
    starts = {word.start for word in words}
    assert all(each.start in starts for each in found)
    assert found[-1].end <= words[-1].end


def test_a_word_stays_for_a_second_but_not_into_the_next() -> None:
    words = [SpokenWord("one", 0.0, 0.1), SpokenWord("two", 1.3, 1.35), SpokenWord("three", 9.0, 9.1)]
    found = [each[:3] for each in cues(words, "one two three")]
    assert found == [(0.0, 1.0, "one"), (1.3, 2.3, "two"), (9.0, 9.1, "three")]


def test_two_lines_are_about_as_long() -> None:
    words = [SpokenWord(word, n / 2, n / 2 + 0.3) for n, word in enumerate(["subtitle"] * 6)]
    [found] = cues(words, " ".join(["subtitle"] * 6))
    assert found.text == "subtitle subtitle subtitle\nsubtitle subtitle subtitle"


def test_a_character_of_chinese_is_as_wide_as_two() -> None:
    assert (width("ab"), width("零一"), width("é"), width("e\u0301")) == (2, 4, 1, 1)


def test_without_words_a_segment_is_a_subtitle() -> None:
    segment, words = [SpokenSegment(0.0, 3.0, "one two")], [SpokenWord("one", 0.5, 1), SpokenWord("two", 2.5, 3)]
    assert "00:00:00.000 --> 00:00:03.000\none two" in subtitles(segment, "vtt")
    assert subtitles(segment, "srt", words) == (
        "1\n00:00:00,500 --> 00:00:01,500\none\n\n2\n00:00:02,500 --> 00:00:03,000\ntwo\n"
    )
