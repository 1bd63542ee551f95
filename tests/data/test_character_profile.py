"""The characters of texts: what is unseen, which of two sides a text is of, and what a model file keeps of it."""

import json
import math
import random

import pytest

from transduce.core.bounded_json import table_of_settings
from transduce.data import character_profile
from transduce.data.character_profile import COUNTED, CharacterProfile, counted

SWAHILI = ["mbwa wawili wanakimbia", "paka mweusi", "nyekundu"]
ENGLISH = ["two dogs are running", "the black cat", "red"]


def test_unseen_characters_are_counted_without_white_space() -> None:
    profile = CharacterProfile.of(["ab a", "b\tc"])
    assert profile.unseen(counted(["a b\nc"])) == 0
    assert profile.unseen(counted(["ax  xx"])) == 0.75
    assert profile.unseen(counted([""])) == 0


def test_a_text_is_nearer_to_its_own_side() -> None:
    """The difference of the two mean logarithms of the likelihood, written out."""
    one, other = CharacterProfile.of(ENGLISH), CharacterProfile.of(SWAHILI)
    for texts, sign in ((["a third dog runs"], 1), (["mbwa wa tatu anakimbia"], -1)):
        assert sign * one.nearness(other, counted(texts)) > 0.1
    one, other = CharacterProfile.of(["aab"]), CharacterProfile.of(["abb"])
    assert one.nearness(other, counted(["a b a"])) == pytest.approx((2 * math.log(2.5 / 1.5) + math.log(1.5 / 2.5)) / 3)
    assert one.divergence(counted(["aab"])) < 0.5 < one.divergence(counted(["bbbc"]))


def test_a_model_file_keeps_it_small_and_whole() -> None:
    drawn = random.Random(1)
    han = [chr(0x4E00 + min(int(drawn.expovariate(1 / 900)), 9000)) for _ in range(60_000)]
    profile = CharacterProfile.of(["".join(han), "a b"])
    text = json.dumps({"characters": {"source": profile.to_dict(), "target": profile.to_dict()}}, ensure_ascii=False)
    read = CharacterProfile.from_dict(table_of_settings(text)["characters"]["source"])
    assert read == profile
    assert len(profile.counts) == COUNTED
    assert profile.different == len({*han}) + 2
    assert len(text.encode()) < 10 * profile.different
    assert read.unseen(counted(["一人龘"])) == pytest.approx(sum(each not in han for each in "一人龘") / 3)


def test_of_too_many_characters_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(character_profile, "MOST", 3)
    assert CharacterProfile.of(["abc"]).to_dict()
    assert CharacterProfile.from_dict(CharacterProfile.of(["abcd"]).to_dict()) is None


@pytest.mark.parametrize(
    "noted",
    [
        None,
        {},
        [],
        {"frequent": "ab", "counts": [1], "others": "", "rest": 0},
        {"frequent": "a", "counts": ["1"], "others": "", "rest": 0},
        {"frequent": "a", "counts": [-1], "others": "", "rest": 0},
        {"frequent": "a", "counts": [1], "others": 3, "rest": 0},
        {"frequent": "a", "counts": [1], "others": "", "rest": None},
    ],
)
def test_a_note_of_another_kind_says_nothing(noted: object) -> None:
    assert CharacterProfile.from_dict(noted) is None
