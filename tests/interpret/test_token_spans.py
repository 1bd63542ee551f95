"""Tokens beside the characters that they are, whatever the tokenizer and the script."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.data.tokenizers.tokenizer import Tokenizer, TokenizerConfig, train_tokenizer
from transduce.interpret.token_spans import Side, Token, end_token, read_tokens, shown_tokens, side, written_tokens
from words_of import WORDS_OF

TEXTS = ["Zwei Hunde laufen schnell, oder?", "Übung macht den Meister.", "两只狗在跑。", "naïve café «x»", "a b  c\n"]
KINDS = ["bpe", "unigram", "byte", "character", "whitespace"]
MADE = {
    kind: train_tokenizer(TokenizerConfig(kind=kind, vocabulary=300, min_frequency=1), TEXTS * 3)  # type: ignore[arg-type]
    for kind in KINDS
}


def both(tokenizer: Tokenizer, text: str) -> tuple[Side, Side]:
    """The sides of a text that is read, and of what its tokens write."""
    ids = tokenizer.encode([text])[0]
    written = tokenizer.decode(ids)
    read = side(text, [*read_tokens(tokenizer, text), end_token(tokenizer, text)])
    return read, side(written, [*written_tokens(tokenizer, ids, written), end_token(tokenizer, written)])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", TEXTS)
def test_known_tokens_are_the_characters_that_they_name(kind: str, text: str) -> None:
    for found in both(MADE[kind], text):
        for token in found.tokens[:-1]:
            here = found.text[token.start : token.end]
            if not token.text.startswith("<") and here.strip():
                assert here.strip() in (token.text, "") or kind == "byte", (token, here)
        solid = "".join(found.text[a:b] for a, b in sorted({(t.start, t.end) for t in found.tokens}))
        assert solid.split() == found.text.split() or "".join(solid.split()) == "".join(found.text.split())


@given(text=st.text(alphabet=st.sampled_from("ab ,.é«两😀́\n "), max_size=12), kind=st.sampled_from(KINDS))
def test_tokens_go_forward_and_words_part_them(text: str, kind: str) -> None:
    for found in both(MADE[kind], text):
        starts = [token.start for token in found.tokens]
        assert starts == sorted(starts)
        assert all(0 <= token.start <= token.end <= len(found.text) for token in found.tokens)
        assert [place for word in found.words for place in word.tokens] == list(range(len(found.tokens)))
        for word in found.words:
            assert word.text
            assert word.text == found.text[word.start : word.end] or word.start == word.end


def test_words_are_those_of_the_text() -> None:
    read, written = both(MADE["bpe"], "Zwei Hunde laufen schnell, oder?")
    for found in (read, written):
        assert [word.text for word in found.words] == ["Zwei", "Hunde", "laufen", "schnell", ",", "oder", "?", "</s>"]
    characters = both(MADE["character"], "Zwei Hunde")[0]
    assert [word.text for word in characters.words] == ["Zwei", "Hunde", "</s>"]
    assert characters.words[1].tokens == tuple(range(4, 10))  # the space belongs to the word behind it
    assert (characters.words[1].start, characters.words[1].end) == (5, 10)


@pytest.mark.parametrize("text", WORDS_OF)
@pytest.mark.parametrize("kind", ["byte", "character"])
def test_every_tokenizers_words_are_those_of_the_text(kind: str, text: str) -> None:
    """Where no token of several characters reaches over the end of a word."""
    settings = TokenizerConfig(kind=kind, vocabulary=1000, min_frequency=1)  # type: ignore[arg-type]
    tokenizer = train_tokenizer(settings, [*WORDS_OF, *TEXTS])
    found = side(text, [*read_tokens(tokenizer, text), end_token(tokenizer, text)])
    assert [word.text for word in found.words if word.text.strip()] == [*WORDS_OF[text], "</s>"]


def test_bytes_of_one_character_share_it() -> None:
    read, written = both(MADE["byte"], "aé")
    for found in (read, written):
        assert [token[:3] for token in found.tokens] == [("a", 0, 1), ("<C3>", 1, 2), ("<A9>", 1, 2), ("</s>", 2, 2)]
        assert [word.tokens for word in found.words] == [(0, 1, 2), (3,)]


def test_what_the_vocabulary_lacks_is_still_placed() -> None:
    read, _ = both(MADE["whitespace"], "Zwei Katzen")
    assert read.tokens[1] == Token("<unk>", 5, 11, "<unk>")
    assert read.words[1].text == "Katzen"


def test_a_token_of_nothing_but_its_mark_is_shown() -> None:
    [number] = MADE["bpe"].ids(["▁"])
    assert shown_tokens(MADE["bpe"], [number]) == ["▁"]


def test_to_dict_is_what_the_page_reads() -> None:
    read, _ = both(MADE["whitespace"], "Zwei Hunde")
    assert read.to_dict() == {
        "text": "Zwei Hunde",
        "tokens": [
            {"text": "Zwei", "start": 0, "end": 4},
            {"text": "Hunde", "start": 5, "end": 10},
            {"text": "</s>", "start": 10, "end": 10},
        ],
        "words": [
            {"text": "Zwei", "start": 0, "end": 4, "tokens": [0]},
            {"text": "Hunde", "start": 5, "end": 10, "tokens": [1]},
            {"text": "</s>", "start": 10, "end": 10, "tokens": [2]},
        ],
    }
