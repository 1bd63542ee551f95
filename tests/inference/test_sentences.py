"""Segments: what stands between them is white space, and nothing is lost."""

import re
import sys
import unicodedata
from functools import cache
from itertools import pairwise

import pytest
import regex
from hypothesis import given
from hypothesis import strategies as st

from growing import grows_as_a_line
from transduce.inference.sentence_marks import SENTENCE_ENDS, WITHOUT_SPACES
from transduce.inference.sentences import ENDED, rejoined, segments, sentences


def cut(text: str, lines: bool = True) -> list[str]:
    return [text[first:last] for first, last in segments(text, lambda line: False, lines)]


@given(st.text(alphabet=' \n\r\t\u2028\u00a0.。!?,aBé漢")។ល།༄ཀ「」“”と问', max_size=60), st.booleans(), st.booleans())
def test_a_text_put_together_again_is_the_text(text: str, whole: bool, lines: bool) -> None:
    spans = segments(text, lambda line: whole, lines)
    parts = [text[first:last] for first, last in spans]
    assert rejoined(text, spans, parts) == text
    assert all(part and part == part.strip() for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())  # only white space is left out
    assert all(first >= end for (_, end), (first, _) in pairwise(spans))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two!  Three?", ["One.", "Two!", "Three?"]),
        ("Dr. Smith met Mr. Jones. They left.", ["Dr. Smith met Mr. Jones.", "They left."]),
        ("It costs 3.50 now. e.g. this one. Yes", ["It costs 3.50 now.", "e.g. this one.", "Yes"]),
        ("1. The first. 2. The second.", ["1. The first.", "2. The second."]),
        ("He said “No.” Then he left.", ["He said “No.”", "Then he left."]),
        ("你好。再见！真的？！是", ["你好。", "再见！", "真的？！", "是"]),
        ("a line\n\n\n  another line \n", ["a line", "another line"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert cut(text) == expected


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("de", ["Das ist z. B. gut.", "Am 3. Oktober kam Dr. Müller.", "Er ging."]),
        ("de-AT", ["Am 3. Oktober kam sie.", "Er ging."]),
        ("DE_at", ["Am 3. Oktober kam sie.", "Er ging."]),
        ("fr", ["Il voit M. Dupont.", "MM. Petit et Durand partent."]),
        ("fr", ["M. Dupont est là.", "Oui."]),
        ("ar", ["كيف حالك؟", "أنا بخير.", "شكرا!"]),
        ("hi", ["यह एक वाक्य है।", "यह दूसरा है।", "क्या?"]),
        ("ur", ["یہ ایک جملہ ہے۔", "یہ دوسرا ہے۔"]),
        ("ja", ["こんにちは。", "元気ですか？", "はい！"]),
        ("a language that nobody knows", ["One.", "Two."]),
    ],
)
@pytest.mark.parametrize("space", ["", " ", "\u00a0", "\u2028 \t", "\n\r\n"])
def test_sentences_of_many_languages(language: str, expected: list[str], space: str) -> None:
    between = space if language == "ja" else space or " "
    text = f" {between.join(expected)}\u3000"
    assert [text[a:b] for a, b in sentences(text, language)] == expected


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", ["Come with me.", "Tom will."]),
        ("en", ["He said no.", "“It is OK.”", "I left."]),
        ("en", ["See no. 5 of them.", "They moved to Bangor, Me. 04401."]),
        ("fr", ["C'est du vol.", "Et l'art, etc.", "Élodie part, vol. 2 sous le bras."]),
        ("cs", ["Lidé na jízdních kol.", "Žena čeká."]),
    ],
)
def test_words_that_are_abbreviations_elsewhere_end_sentences(language: str, expected: list[str]) -> None:
    text = " ".join(expected)
    assert [text[start:end] for start, end in sentences(text, language)] == expected


def unicode_has(name: str) -> set[str]:
    """The characters with this property, of those that Python knows, too."""
    return set(regex.findall(rf"\p{{{name}}}", characters()))


@cache
def characters() -> str:
    """All that Python knows, without halves."""
    every = (chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    return "".join(each for each in every if unicodedata.category(each) != "Cn")


def test_the_ends_of_sentences_are_those_of_unicode() -> None:
    marks = unicode_has("Sentence_Terminal")
    assert {"।", "۔", "။", "።", "։", "᱾", "॥", "។"} < marks
    assert all(ENDED.search(f"a{mark}”") for mark in marks | {"།", "༎"})
    known = re.compile(f"[{SENTENCE_ENDS}]")
    assert {each for each in map(chr, range(0x80, 0x20000)) if known.match(each)} >= marks - {*"!.?"}
    assert not [each for each in unicode_has("Letter") | unicode_has("Mark") if known.match(each)]


@pytest.mark.parametrize(
    "script",
    ["Thai", "Lao", "Tibetan", "Khmer", "Tai_Le", "New_Tai_Lue", "Tai_Tham", "Balinese", "Javanese", "Tai_Viet"],
)
def test_scripts_without_spaces_are_known_by_all_their_letters(script: str) -> None:
    known = re.compile(f"[{WITHOUT_SPACES}]")
    assert all(known.match(letter) for letter in unicode_has(f"Script={script}"))


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("km", ["ខ្ញុំទៅផ្សារ។", "អ្នកនៅផ្ទះ៕"]),
        ("km", ["មានត្រី សាច់ ។ល។", "អ្នកនៅផ្ទះ។"]),
        ("bo", ["ང་ཁྲོམ་ལ་འགྲོ།", "ཁྱོད་ཁྱིམ་ལ་བསྡད། །", "དེ་རེད༎"]),
        ("bo", ["༄༅། །ང་ཁྲོམ་ལ་འགྲོ།།", "དེ་རེད།"]),
        ("my", ["ကျွန်တော်သွားမယ်။", "သူလာမယ်။"]),
    ],
)
@pytest.mark.parametrize("space", ["", " ", "  "])
def test_sentences_of_scripts_without_spaces(language: str, expected: list[str], space: str) -> None:
    text = space.join(expected)
    assert [text[start:end] for start, end in sentences(text, language)] == expected
    many = space.join(expected * 300)  # longer than what sentencex is shown at once
    assert [many[start:end] for start, end in sentences(many, language)] == expected * 300


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("ja", ["彼は来た。", "「元気？」と彼は聞いた。", "雨だ。"]),
        ("ja", ["「元気？元気だよ。」って言った。", "「うん。」という。"]),
        ("ja", ["『元気？』と彼は聞いた。"]),
        ("ja", ["「元気？」", "とても元気です。"]),
        ("ja", ["「元気？」", "「うん。」"]),
        ("zh", ["他来了。", "“你好吗？”他问。", "我说：“好。”"]),
        ("zh", ["「你好嗎？」她輕聲問道。"]),
        ("zh", ["“好。”", "我知道。"]),
        ("zh", ["“好。”", "我们走了。"]),
    ],
)
def test_a_quotation_stays_with_who_says_it(language: str, expected: list[str]) -> None:
    text = "".join(expected)
    assert [text[start:end] for start, end in sentences(text, language)] == expected


@pytest.mark.parametrize("text", ["B\u00a0.é]", "a\ud800. B"])
def test_what_sentencex_cannot_take_is_a_text_like_others(text: str) -> None:
    assert rejoined(text, sentences(text), [text[a:b] for a, b in sentences(text)]) == text


def test_a_long_line_is_cut_as_a_short_one() -> None:
    expected = [f"Sentence {number} is {'very ' * (number % 7)}long." for number in range(500)]
    assert cut(" ".join(expected)) == expected


def test_a_line_that_fits_stays_whole_and_lines_stay_apart() -> None:
    text = "One. Two.\r\nThree. Four.\n\n\tFive. "
    assert [text[a:b] for a, b in segments(text, lambda line: True)] == ["One. Two.", "Three. Four.", "Five."]
    assert cut(text, lines=False) == ["One.", "Two.", "Three.", "Four.", "Five."]


@pytest.mark.parametrize("unit", [" ", "a. ", ". ", "。", "\n", "x", '." ', "ក។", "ཀ། །", "「あ？」と", "“啊？”他问。"])
def test_no_text_takes_long(unit: str) -> None:
    assert grows_as_a_line(lambda size: segments(unit * (size // len(unit)), lambda line: False), 5_000)


@pytest.mark.parametrize(
    ("text", "outputs", "expected"),
    [
        ("Hello. How are you?", ["你好。", "你好吗？"], "你好。你好吗？"),
        ("Hello.\nHow are you?", ["你好。", "你好吗？"], "你好。\n你好吗？"),
        ("Hello.  How?", ["你好。", "怎么样？"], "你好。  怎么样？"),  # somebody's own layout
        ("Hello. See Tom.", ["你好。", "Tom 来了。"], "你好。 Tom 来了。"),
        ("你好。 你好吗？", ["你好。", "你好吗？"], "你好。 你好吗？"),
        ("你好。你好吗？", ["Hello.", "How are you?"], "Hello. How are you?"),
        ("你好。你好吗？", ["안녕.", "잘 지내?"], "안녕. 잘 지내?"),
        ("Hello. How?", ["안녕.", "잘 지내?"], "안녕. 잘 지내?"),
        ("Hello. How?", ["สวัสดี", "สบายดีไหม"], "สวัสดี สบายดีไหม"),  # Thai has a space between sentences
    ],
)
def test_outputs_stand_beside_each_other_as_their_script_has_it(text: str, outputs: list[str], expected: str) -> None:
    assert rejoined(text, sentences(text), outputs) == expected
