"""What it means that a phrase stands in a text, and the automata that find it: characters, then tokens."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_words import Toy, stands

from transduce.search.automaton import Automaton
from transduce.search.phrases import Phrases, ends, goes_on, held, kind, lacking, occurrences, plain
from transduce.search.token_text import SpellingReader


@pytest.mark.parametrize(
    ("phrase", "text", "found"),
    [
        ("he", "he is", True),
        ("he", "is he", True),
        ("he", "(he)", True),
        ("he", "the", False),
        ("he", "hers", False),
        ("he", "He", False),
        ("New York", "in New  York.", True),
        ("New York", "New\u00a0York", True),
        ("New York", "New Yorkers", False),
        ("New York", "NewYork", False),
        ("don", "don't", True),
        ("5", "15", False),
        ("5", "1.5", True),
        ("!", "what!?", True),
        ("cafe", "caf\u00e9", False),
        ("caf\u00e9", "cafe\u0301", True),
        ("cafe\u0301", "le caf\u00e9.", True),
        ("中国", "我爱中国人", True),
        ("か", "がく", False),
        ("が", "かがく", True),
        ("한국", "한국은", False),
        ("हिन्द", "हिन्दी", False),
        ("กิน", "ฉันกินข้าว", True),
    ],
)
def test_where_a_phrase_stands(phrase: str, text: str, found: bool) -> None:
    assert (occurrences([plain(phrase)], plain(text)) > 0) == found
    automaton = Automaton([plain(phrase)])
    assert automaton.total(automaton.run(text)) == found


def test_places_are_counted_without_overlap() -> None:
    assert occurrences(["a a"], "a a a a") == 2
    assert occurrences(["a a"], "a a a") == 1
    assert occurrences(["a", "a b"], "a b a") == 2
    assert occurrences(["b c", "a b"], "a b c") == 1


letters = st.text("ab ,\u00a0é\u0301中", max_size=12)
phrases = letters.map(plain).filter(lambda text: text and not unicodedata.combining(text[0]))
# A mark stands on a letter, and a space between words: of the rest a regular expression knows nothing.
spaced = st.lists(st.sampled_from(["a", "b", "é", "a\u0301", "b\u0301", " ", "\u00a0", ","]), max_size=10).map("".join)


@settings(max_examples=300)
@given(phrase=spaced.map(plain).filter(bool), text=spaced)
def test_the_definition_is_that_of_a_regular_expression(phrase: str, text: str) -> None:
    assert (occurrences([phrase], plain(text)) > 0) == stands(phrase, text)


@settings(max_examples=300)
@given(alternatives=st.lists(phrases, min_size=1, max_size=3), text=letters, times=st.integers(1, 3))
def test_the_automaton_counts_what_the_definition_counts(alternatives: list[str], text: str, times: int) -> None:
    automaton = Automaton(alternatives, times)
    counted = automaton.total(automaton.run(text))
    assert counted == min(times, occurrences(alternatives, plain(text)))


def test_of_phrases_what_lacks_and_what_is_held() -> None:
    wanted = Phrases(must=(("a",), ("a",), ("b", "c")), must_not=("d e", "f"))
    assert lacking(wanted, "a, d e") == [("a",), ("b", "c")]
    assert held(wanted, "a, d e") == ["d e"]
    assert lacking(wanted, "a c a") == held(wanted, "a c a") == []


TOY = Toy("a", "b", " a", "ab", " ", "  ", ", ", "é", "e", "\u0301", "中", " b,", "")


@settings(max_examples=200)
@given(
    tokens=st.lists(st.integers(2, TOY.size - 1), max_size=7),
    alternatives=st.lists(phrases, min_size=1, max_size=2),
    times=st.integers(1, 2),
)
def test_tokens_read_as_the_text_that_they_write(tokens: list[int], alternatives: list[str], times: int) -> None:
    reader, state, begun = SpellingReader(Automaton(alternatives, times), TOY.spelling), 0, 0
    for token in tokens:
        state, begun = int(reader.after(state, begun)[token]), int(TOY.spelling.letters(begun).begun_V[token])
    counted = reader.automaton.total(reader.at_end(state, begun))
    assert counted == min(times, occurrences(alternatives, plain(TOY.decode(tokens))))


class Bytes(Toy):
    """Tokens that are bytes, some of them parts of characters."""

    def __init__(self) -> None:
        super().__init__()
        parts = [b"a", b" ", b"e", "é".encode()[:1], "é".encode()[1:], "中".encode()[:1], "中".encode()[1:2]]
        self.pieces = [b"", b"", *parts, "中".encode()[2:], "中".encode()[1:], b"\xff"]
        self.spelling = type(TOY.spelling)(self.pieces)


BYTES = Bytes()


@settings(max_examples=300)
@given(
    tokens=st.lists(st.integers(2, BYTES.size - 1), max_size=8),
    phrase=st.sampled_from(["a", "é", "中", "a é", "e", "aé"]).map(plain),
)
def test_parts_of_characters_read_as_the_text_that_they_write(tokens: list[int], phrase: str) -> None:
    reader, state, begun = SpellingReader(Automaton([phrase]), BYTES.spelling), 0, 0
    for token in tokens:
        state, begun = int(reader.after(state, begun)[token]), int(BYTES.spelling.letters(begun).begun_V[token])
    counted = reader.automaton.total(reader.at_end(state, begun))
    assert counted == min(1, occurrences([phrase], plain(BYTES.decode(tokens))))


@given(st.text(st.sampled_from("ab é\u0301\u0327.中"), max_size=10))
def test_words_end_where_their_neighbours_say(text: str) -> None:
    """As looking back from each place for what its marks stand on does, and so once for all places."""
    for place, found in enumerate(ends(text)):
        base = place - 1
        while base > 0 and kind(text[base]) == "mark":
            base -= 1
        at_an_edge = place in (0, len(text))
        assert found == (at_an_edge or not goes_on(kind(text[base]), kind(text[place])))
