"""Error rates against jiwer's, and a slow recursion."""

import random
from functools import lru_cache

import pytest

from transduce.core.errors import InputError
from transduce.metrics.error_rate import (
    character_error_rate_tally,
    edits,
    phoneme_error_rate_tally,
    word_error_rate_tally,
)
from transduce.metrics.evaluate import tallies
from transduce.metrics.paired import paired_bootstrap

TALLIES = {"cer": character_error_rate_tally, "wer": word_error_rate_tally}


def drawn(seed: int, count: int = 40) -> tuple[list[str], list[str]]:
    random_ = random.Random(seed)

    def text() -> str:
        return " ".join(
            "".join(random_.choices("ab零一", k=random_.randrange(1, 4))) for _ in range(random_.randrange(1, 6))
        )

    return [text() if random_.random() < 0.9 else "" for _ in range(count)], [text() for _ in range(count)]


def slow(one: str, other: str) -> int:
    @lru_cache(None)
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        same = distance(i - 1, j - 1) + (one[i - 1] != other[j - 1])
        return min(same, distance(i - 1, j) + 1, distance(i, j - 1) + 1)

    return distance(len(one), len(other))


@pytest.mark.parametrize("name", TALLIES)
@pytest.mark.parametrize("seed", range(3))
def test_it_is_that_of_jiwer(name: str, seed: int) -> None:
    jiwer = pytest.importorskip("jiwer")
    said, wanted = drawn(seed)
    tally = TALLIES[name](said, wanted)
    assert tally.value == pytest.approx(100 * getattr(jiwer, name)(wanted, said))
    for row, one, other in zip(tally.statistics_SN, said, wanted, strict=True):
        assert row[0] / row[1] == pytest.approx(getattr(jiwer, name)(other, one))


def test_the_phoneme_error_rate_is_jiwers_of_words() -> None:
    """Phonemes have spaces between them, and a phoneme may be several characters."""
    jiwer = pytest.importorskip("jiwer")
    said, wanted = ["t ʃ i ː z", "b ɔ n ʒ u ʁ", "a"], ["t͡ʃ iː z", "b ɔ̃ ʒ u ʁ", "a b"]
    [tally] = tallies(["per"], said, wanted)
    assert (tally.name, tally.lower_is_better, tally.note) == ("PER", True, "")
    assert "unit:phoneme" in tally.signature
    assert tally.value == pytest.approx(100 * jiwer.wer(wanted, said))


def test_units_that_a_text_does_not_separate_are_told() -> None:
    assert "use cer" in phoneme_error_rate_tally(["bɔnʒuʁ"], ["bɔ̃ʒuʁ"]).note
    chinese = ["今天天气很好。"]
    assert "use cer" in tallies(["wer"], chinese, chinese, "zh")[0].note
    assert "use cer" in tallies(["wer"], chinese, chinese)[0].note
    assert [tallies([name], ["a b"], ["a c"])[0].note for name in ("wer", "per", "cer")] == ["", "", ""]


def test_signatures_say_what_is_counted() -> None:
    several = [["a b", "a c"], ["a"]]
    made = [each(["a b", "b"], several) for each in (*TALLIES.values(), phoneme_error_rate_tally)]
    units = ["character|space:kept", "word", "phoneme"]
    assert [each.signature for each in made] == [f"nrefs:var|unit:{unit}|case:mixed|punctuation:kept" for unit in units]
    assert character_error_rate_tally([" a b\n"], ["a b "]).value == 0  # space at the ends is not counted
    assert character_error_rate_tally(["ab"], ["a b"]).value == pytest.approx(100 / 3)


def test_notes_are_for_languages_without_spaces_and_phonemes_without_any() -> None:
    assert word_error_rate_tally(["오늘 날씨"], ["오늘 날씨"], "ko").note == ""
    assert phoneme_error_rate_tally(["a", "b"], ["a", "a b"]).note == ""  # one of them has a space


def test_edits_are_those_of_the_recursion() -> None:
    for one, other in zip(*drawn(7, 60), strict=True):
        assert edits(one, other) == edits(other, one) == slow(one, other)
    assert (edits("", ""), edits("abc", ""), edits("", "ab"), edits("kitten", "sitting")) == (0, 3, 2, 3)


def test_the_nearest_of_several_references_counts() -> None:
    assert character_error_rate_tally(["abcd"], [["xxxx", "abce", "a"]]).statistics_SN.tolist() == [[1, 4]]


def test_of_several_references_the_lowest_rate_counts_not_the_fewest_edits() -> None:
    assert character_error_rate_tally(["ab"], [["b", "abcd"]]).statistics_SN.tolist() == [[2, 4]]
    assert word_error_rate_tally(["a b"], [["b", "a b c d"]]).statistics_SN.tolist() == [[2, 4]]
    assert character_error_rate_tally(["ab"], [["", "abcd"]]).statistics_SN.tolist() == [[2, 4]]
    said, one = drawn(5)
    other, third = drawn(6)[1], drawn(7)[1]
    tally = character_error_rate_tally(said, [list(each) for each in zip(one, other, third, strict=True)])
    for row, text, *several in zip(tally.statistics_SN, said, one, other, third, strict=True):
        assert row[0] / row[1] == min(slow(text, each) / len(each) for each in several)


def test_lower_is_better_and_has_an_interval() -> None:
    said, wanted = drawn(1)
    cer, wer = tallies(["cer", "wer"], said, wanted)
    score = cer.score()
    assert score.interval is not None and score.interval[0] <= score.value <= score.interval[1]
    assert (cer.lower_is_better, wer.lower_is_better, score.name) == (True, True, "CER")
    perfect = character_error_rate_tally(wanted, wanted)
    assert perfect.value == 0 and paired_bootstrap(cer, perfect).better == "second"


def test_nothing_to_say_is_no_division_by_zero() -> None:
    assert word_error_rate_tally(["", "a b"], ["", ""]).value == 200
    with pytest.raises(InputError):
        word_error_rate_tally([], [])
