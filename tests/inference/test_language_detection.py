"""Which language a text is in: real texts, real profiles, twenty languages, and "und" for what nobody knows."""

import gzip
import json
import math
from collections import Counter
from pathlib import Path

import pytest

from declaration import ARTICLE
from transduce.data.character_profile import CharacterProfile, counted
from transduce.data.language_profile import LanguageProfile, letters_of
from transduce.inference.familiarity import Familiarity
from transduce.inference.language_detection import confidence_of, detected

READ = 1_500  # texts of a language, which is enough and quick


def lines(path: Path, first: int = READ + 100) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line, _ in zip(file, range(first), strict=False)]


@pytest.fixture(scope="module")
def texts(data_root: Path) -> dict[str, list[str]]:
    """Of captions in four languages, of news in two that identifiers do not know, and of Japanese."""
    found = {code: lines(data_root / f"multi30k/raw/train.{code}.gz") for code in ("cs", "de", "en", "fr")}
    found["ja"] = [line.replace(" ", "") for line in lines(data_root / "small_parallel_enja/train.ja.gz")]
    for code, name in (("ha", "hau"), ("lg", "lug")):
        rows = [json.loads(line) for line in lines(data_root / f"mafand/en-{name}.train.jsonl.gz")]
        found[code] = [row["translation"][name] for row in rows]
    return found


@pytest.fixture(scope="module")
def known(texts: dict[str, list[str]]) -> dict[str, list[LanguageProfile]]:
    """As models know them that were trained on these."""
    found = {code: LanguageProfile.of(listed[:READ]) for code, listed in texts.items()}
    return {code: [profile] for code, profile in found.items() if profile}


def test_of_twenty_languages_the_known_ones_are_told_and_the_others_are_not(
    known: dict[str, list[LanguageProfile]],
) -> None:
    found = {code: detected(text, known, identify=False)[0] for code, text in ARTICLE.items()}
    assert len(found) >= 20
    told = {code: detection.language for code, detection in found.items()}
    assert told == {code: code if code in known else "und" for code in ARTICLE}
    assert all((each.confidence == 0) == (each.language == "und") for each in found.values())


def test_lines_that_were_held_out(texts: dict[str, list[str]], known: dict[str, list[LanguageProfile]]) -> None:
    for code, listed in texts.items():
        found = Counter(detected(text, known, identify=False)[0].language for text in listed[READ : READ + 50])
        assert found[code] >= 43, (code, found)
        assert sum(found.values()) - found[code] - found["und"] <= 2, (code, found)


def test_confidence_is_what_share_is_right(
    texts: dict[str, list[str]], known: dict[str, list[LanguageProfile]]
) -> None:
    """Of fragments of 20 characters: expected calibration error in tens of percent, over told languages."""
    told = [
        (each.confidence / 100, each.language == code)
        for code, listed in texts.items()
        for text in listed[READ:]
        for each in detected(text[:20], known, identify=False)
        if each.language != "und"
    ]
    bins = [[each for each in told if int(min(9, 10 * each[0])) == number] for number in range(10)]
    errors = [abs(sum(sure for sure, _ in part) - sum(right for _, right in part)) for part in bins]
    assert len(told) > 200
    assert sum(errors) / len(told) < 0.15


@pytest.mark.parametrize("text", ["", "12:30", "—", "😀😀", "  \n"])
def test_what_has_no_letters_has_no_language(text: str, known: dict[str, list[LanguageProfile]]) -> None:
    assert detected(text, known) == [("und", 0.0)]
    assert confidence_of(text, "en", known) == 0


def test_characters_alone_are_never_sure(texts: dict[str, list[str]]) -> None:
    """Of files from before n-grams were noted."""
    known = {code: [CharacterProfile.of(texts[code][:READ])] for code in ("de", "en")}
    assert detected(ARTICLE["es"], known, identify=False) == [("und", 0.0)]
    assert 0 < confidence_of(ARTICLE["en"], "en", known, identify=False) < 50


def test_probabilities_are_those_of_the_formula_in_a_loop() -> None:
    """Dirichlet smoothing, letter by letter, with counts of a slow loop. All n-grams are kept, as there are few."""
    texts = [f"abra cadabra {each}" for each in ("ab", "ra", "da", "ca") * 60]
    profile = LanguageProfile.of(texts)
    assert profile is not None
    read = [letters_of(text) for place, text in enumerate(texts) if place % 10]

    def count(gram: str) -> int:
        return sum(text[at : at + len(gram)] == gram for text in read for at in range(len(text)))

    def probability(text: str, at: int) -> float:
        found = (count(text[at]) + 0.5) / sum(map(len, read))
        for context in (1, 2)[: min(2, at)]:
            before = text[at - context : at]
            following = sum(count(before + letter) for letter in "abcdr ")
            rest = max(0, count(before) - following) + 4
            found = (count(before + text[at]) + rest * found) / (max(count(before), following) + 4)
        return found

    text = letters_of("cadabra abc")
    expected = sum(math.log(probability(text, at)) for at in range(1, len(text))) / (len(text) - 1)
    assert profile.log_probability("Cadabra, abc!") == pytest.approx(expected, rel=1e-9)


def test_a_model_file_holds_it(known: dict[str, list[LanguageProfile]]) -> None:
    for profile, *_ in known.values():
        noted = json.loads(json.dumps(profile.to_dict(), ensure_ascii=False))
        assert len(json.dumps(noted, ensure_ascii=False).encode()) < 60_000
        again = LanguageProfile.from_dict(noted)
        assert again is not None
        assert (again.counts, again.total) == (profile.counts, profile.total)
        assert again.fit(ARTICLE["en"]) == pytest.approx(profile.fit(ARTICLE["en"]), abs=1e-2)
    written = {"ngrams": {"source": known["de"][0].to_dict(), "target": "damaged"}}
    found = Familiarity.of(written, None)
    assert isinstance(found.profile("source"), LanguageProfile) and found.profile("target") is None


@pytest.mark.parametrize("noted", [None, [], {}, {"orders": 1}, {"orders": [{}, {}, {}], "total": 1, "gain": 1}])
def test_a_damaged_note_is_none(noted: object) -> None:
    assert LanguageProfile.from_dict(noted) is None


def test_too_few_letters_make_no_profile() -> None:
    assert LanguageProfile.of(["two dogs run"] * 5) is None


def test_surprise_is_cross_entropy_less_entropy() -> None:
    profile = CharacterProfile.of(["aab", "abc"])
    shares = {each: (often + 0.5) / (6 + 0.5 * 4) for each, often in {"a": 3, "b": 2, "c": 1}.items()}
    entropy = -(3 * math.log(shares["a"]) + 2 * math.log(shares["b"]) + math.log(shares["c"])) / 6
    expected = -(math.log(shares["a"]) + math.log(0.5 / 8)) / 2 - entropy
    assert profile.surprise(counted(["a z"])) == pytest.approx(expected)


def test_with_an_identifier_twenty_languages_are_told() -> None:
    pytest.importorskip("py3langid")
    found = {code: detected(text, {})[0].language for code, text in ARTICLE.items()}
    right = [code for code, language in found.items() if code == language]
    assert len(right) >= len(ARTICLE) - 1 and len(right) >= 20
    assert detected("asdf qwer zxcv", {}) == [("und", 0.0)]
