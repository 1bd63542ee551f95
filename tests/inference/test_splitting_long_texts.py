"""Long texts are cut at the best break that helps, and nothing of them is lost."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from transduce.inference import splitting


def split_to_fit(text: str, length: Callable[[str], int], limit: int) -> list[str]:
    return [text[start:end] for start, end in splitting.split_to_fit(text, length, limit)]


def words(text: str) -> int:
    return len(text.split())


def test_what_fits_is_left_alone() -> None:
    assert split_to_fit("one two. three", words, 3) == ["one two. three"]


def test_sentences_stay_whole_and_share_a_piece_while_they_fit() -> None:
    text = "One two. Three! Four five? Six seven eight… Nine."
    assert split_to_fit(text, words, 5) == ["One two. Three! Four five?", "Six seven eight… Nine."]
    assert split_to_fit(text, words, 3) == ["One two. Three!", "Four five?", "Six seven eight…", "Nine."]


def test_a_long_sentence_breaks_at_commas_then_at_spaces() -> None:
    assert split_to_fit("one two, three four; five six", words, 4) == ["one two, three four;", "five six"]
    assert split_to_fit("one two three, four", words, 2) == ["one two", "three,", "four"]


def test_what_has_no_break_is_cut_in_halves() -> None:
    assert split_to_fit("abcdefgh", len, 4) == ["abcd", "efgh"]
    assert split_to_fit("abcdefghi", len, 4) == ["abcd", "ef", "ghi"]


def test_chinese_and_japanese_break_without_spaces() -> None:
    assert split_to_fit("我来了。你好！他走了。", len, 5) == ["我来了。", "你好！", "他走了。"]
    assert split_to_fit("我来了，你好，他走了", len, 5) == ["我来了，", "你好，", "他走了"]


def test_one_character_that_is_too_long_is_left() -> None:
    assert split_to_fit("🙂", lambda text: 4 * len(text), 3) == ["🙂"]


@given(st.text("ab .,;!。，é\t\u2028", max_size=60), st.integers(1, 9))
def test_every_piece_fits_and_only_white_space_is_lost(text: str, limit: int) -> None:
    pieces = split_to_fit(text, len, limit)
    assert all(len(piece) <= limit for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())
