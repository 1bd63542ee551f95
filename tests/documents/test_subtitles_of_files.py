"""Subtitles keep all but their lines, which are broken and shared out as people read them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.core.errors import InputError
from transduce.documents.subtitles import CUE, WIDTH, Subtitles, broken, shared, width


def never_whole(line: str) -> bool:
    return False


CUES = st.lists(
    st.sampled_from(["two words", "- one", "- two", "<i>so</i>", "a --> b", "42", "你好", "&lt;", "世界"]),
    min_size=1,
    max_size=4,
)


@given(st.lists(CUES, max_size=4), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_what_is_no_line_of_a_subtitle_stays(cues: list[list[str]], newline: str, ends: bool) -> None:
    """Line by line, as a reader of the file would go through it."""
    cues = [[each for each in cue if "-->" not in each] or ["x"] for cue in cues]
    rows = ["WEBVTT", ""]
    for number, cue in enumerate(cues):
        rows += [f"{number}", f"0{number}:00 --> 0{number}:01", *cue, ""]
    source = newline.join(rows[: None if ends else -1])
    document = Subtitles(source, never_whole)
    found = document.rejoined([("Q", []) for _ in document.pieces])
    blocks, made = (re.split(r"(?:\r?\n){2}", each.strip()) for each in (source, found))
    assert len(blocks) == len(made)
    for one, other in zip(blocks[1:], made[1:], strict=True):
        assert one.splitlines()[:2] == other.splitlines()[:2]
        words = re.findall(r"[^\W\d_]", re.sub("<.*?>|&lt;", "", "".join(one.splitlines()[2:])))
        assert ("Q" in other) == bool(words)
    assert source[len(source.rstrip()) :] == found[len(found.rstrip()) :]


@given(st.text(alphabet="ab你好。， <i>", max_size=120))
def test_a_wide_line_is_broken_where_it_is_most_equal(text: str) -> None:
    text = " ".join(text.split())
    lines = broken(text)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")
    plain = [re.sub("<[^<>]*>", "", each) for each in lines]
    if width(re.sub("<[^<>]*>", "", text)) <= WIDTH:
        assert lines == [text]
        return
    places = [
        place
        for place in range(1, len(text))
        if (
            text[place] == " "
            or (all(each in "你好。，" for each in text[place - 1 : place + 1]) and text[place] in "你好")
        )
        and text[:place].rfind("<") <= text[:place].rfind(">")
    ]
    if "<" not in text and places:
        best = min(max(width(text[:place]), width(text[place:])) for place in places)
        assert len(lines) == 2
        assert max(map(width, plain)) <= best


@pytest.mark.parametrize(
    ("text", "cues"),
    [
        ("1\n0 --> 1\nTwo dogs.\n \n2\n1 --> 2\nA cat.\n", ["Two dogs.\n", "A cat.\n"]),
        ("1\n0 --> 1\nTwo dogs.\n2\n1 --> 2\nA cat.\n", ["Two dogs.\n", "A cat.\n"]),
        ("1\r\n0 --> 1\r\nTwo\r\ndogs.\r\n\r\n2\r\n1 --> 2\r\nA cat.", ["Two\r\ndogs.\r\n", "A cat."]),
    ],
)
def test_a_subtitle_ends_at_a_blank_line_and_at_the_next_times(text: str, cues: list[str]) -> None:
    assert CUE.findall(text) == cues


def test_arrows_without_end_take_no_time() -> None:
    assert CUE.findall("-->" * 100_000) == []


def test_bare_carriage_returns_are_refused() -> None:
    with pytest.raises(InputError, match="carriage return"):
        Subtitles("1\r0 --> 1\rTwo dogs.\r", lambda _: True)


def told(source: str, output: str) -> str:
    document = Subtitles(source, never_whole, escapes=False)
    return document.rejoined([(output, []) for _ in document.pieces])


def test_a_sentence_over_several_subtitles_is_one_and_its_words_are_shared_out() -> None:
    cues = ["The cat that we saw", "in the garden,", "sleeps here."]
    source = "\n\n".join(f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\n{text}" for n, text in enumerate(cues)) + "\n"
    [piece] = Subtitles(source, never_whole).pieces
    assert piece.text == "The cat that we saw in the garden, sleeps here."
    made = told(source, "Le chat que nous avons vu dans le jardin dort ici.")
    assert [each.split("\n")[2:] for each in made.strip().split("\n\n")] == [
        ["Le chat que nous avons"],  # 19 of 45 characters are 21 of 50
        ["vu dans le jardin"],
        ["dort ici."],
    ]
    assert re.sub("[a-zL ,.]{5,}", "", made) == re.sub("[a-zT ,.]{5,}", "", source)


@pytest.mark.parametrize(
    ("one", "other", "pause"),
    [
        ("Two dogs.", "a cat", 0.1),
        ("Two dogs,", "a cat", 9.0),
        ("Two dogs", "A cat", 0.1),
        ("- Two dogs,", "a cat", 0.1),
        ("<i>Two dogs,</i>", "a cat", 0.1),
        ("两只狗", "一只猫", 0.1),
    ],
)
def test_what_may_be_two_sentences_is_read_as_two(one: str, other: str, pause: float) -> None:
    source = f"1\n00:01.000 --> 00:02.000\n{one}\n\n2\n00:0{2 + pause:.3f} --> 00:12.000\n{other}\n"
    assert len(Subtitles(source, never_whole).pieces) == 2


@given(st.text(alphabet="ab 你好", max_size=60), st.lists(st.integers(0, 30), min_size=2, max_size=4))
def test_shared_words_are_all_there_in_their_order(text: str, shares: list[int]) -> None:
    text = " ".join(text.split())
    parts = shared(text, shares)
    assert len(parts) == len(shares)
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")
    assert all(set(part.split()) <= set(text.split()) for part in parts if text.isascii())
