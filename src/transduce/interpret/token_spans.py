"""Tokens for display: which characters of a text each token covers, and which tokens form a word."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from typing import Any, NamedTuple

from transduce.core.errors import InputError
from transduce.data.columns import Column
from transduce.data.columns.node_labels import NodeLabels
from transduce.data.columns.tokens import Tokens
from transduce.data.columns.word_labels import WordLabels
from transduce.data.columns.words import Words
from transduce.data.structures.labelled_trees import parse_labelled_tree
from transduce.data.tokenizers.tokenizer import Tokenizer
from transduce.interpret.words import WORD_START, Span, words_in


class Token(NamedTuple):
    """A token.

    text: how it is shown.
    start, end: its characters [start, end) of the text; empty for a special token.
    piece: its entry in the vocabulary.
    """

    text: str
    start: int
    end: int
    piece: str


class Word(NamedTuple):
    """A word: its characters, and the places of its tokens."""

    text: str
    start: int
    end: int
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Side:
    """One text with its tokens and words. Every token belongs to one word."""

    text: str
    tokens: tuple[Token, ...]
    words: tuple[Word, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "text": self.text,
            "tokens": [{"text": token.text, "start": token.start, "end": token.end} for token in self.tokens],
            "words": [{**word._asdict(), "tokens": list(word.tokens)} for word in self.words],
        }


def side(text: str, tokens: Sequence[Token]) -> Side:
    """The side of a text with these tokens, in their order."""
    return Side(text, tuple(tokens), tuple(_words(text, tokens)))


def read_tokens(tokenizer: Tokenizer, text: str) -> list[Token]:
    """The tokens of an input text."""
    return tokens_at(tokenizer, tokenizer.encode([text])[0], tokenizer.offsets(text), text)


def written_tokens(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> list[Token]:
    """The tokens `ids` of an output whose text is `text`."""
    return tokens_at(tokenizer, ids, written_spans(tokenizer, ids, text), text)


def end_token(tokenizer: Tokenizer, text: str) -> Token:
    """The end token of a text, after its last character."""
    (name,) = tokenizer.tokens([tokenizer.end])
    return Token(name, len(text), len(text), name)


def read_whole(column: Tokens, text: str, first: bool = True, last: bool = True) -> list[Token]:
    """The tokens of a source text with what stands before and behind it.

    first, last: whether it is the first and the last of several that are read as one.
    """
    before = [Token(name, 0, 0, name) for name in column.before if first]
    behind = [Token(name, len(text), len(text), name) for name in (column.after if last else column.between)]
    ends = not behind and (column.ends or column.stream or not last)
    behind = [end_token(column.tokenizer, text)] if ends else behind
    return [*before, *tokens_at(column.tokenizer, *column.pieces(text), text), *behind]


def word_side(column: Words, text: str) -> Side:
    """A text by the words that have labels: every token belongs to one of them, those around the text to themselves."""
    tokens, bounds = read_whole(column, text), column.bounds(text)
    places = [list[int]() for _ in bounds]
    number = -1
    first, last = len(column.opening), len(tokens) - len(column.after)
    for place, each in enumerate(column.encode([text])[0], first):
        number += each >= column.tokenizer.size
        places[number].append(place)
    around = [Word(tokens[place].text, 0, 0, (place,)) for place in range(first)]
    behind = [Word(tokens[place].text, len(text), len(text), (place,)) for place in range(last, len(tokens))]
    words = [Word(text[slice(*span)], *span, tuple(each)) for span, each in zip(bounds, places, strict=True)]
    return Side(text, tuple(tokens), (*around, *words, *behind))


def tokens_at(tokenizer: Tokenizer, ids: Sequence[int], spans: Sequence[Span], text: str) -> list[Token]:
    """Each id as a token that has these characters of a text, without the white space around them."""
    named = zip(shown_tokens(tokenizer, ids), spans, tokenizer.tokens(ids), strict=True)
    return [Token(shown, *_trimmed(text, *span), piece) for shown, span, piece in named]


def column_tokens(column: Column, ids: Sequence[int]) -> list[str]:
    """Each id of an output as people read it."""
    return shown_tokens(column.tokenizer, ids) if isinstance(column, Tokens) else column.tokens(ids)


def written_side(column: Column, ids: Sequence[int], text: str, ends: bool) -> Side:
    """An output, with its end token where it `ends` with one; a label is one token and one word."""
    if isinstance(column, NodeLabels):
        return labelled_side(column.tokens(ids))
    if isinstance(column, WordLabels):
        return labels_side(column.tokens(ids))
    if isinstance(column, Tokens):
        tokens = written_tokens(column.tokenizer, ids, text)
        return side(text, [*tokens, *([end_token(column.tokenizer, text)] if ends else [])])
    return side(text, [Token(name, 0, len(text), name) for name in column.tokens(ids)])


def labelled_side(labels: Sequence[str]) -> Side:
    """The labels of a tree's nodes, every node behind its parts: a token and a word each. The text is the root's."""
    last = len(labels) - 1
    tokens = tuple(Token(each, 0, len(each) if place == last else 0, each) for place, each in enumerate(labels))
    words = tuple(Word(each.text, 0, each.end, (place,)) for place, each in enumerate(tokens))
    return Side(labels[last] if labels else "", tokens, words)


def labels_side(labels: Sequence[str]) -> Side:
    """The labels of a text's words with a space between: a token and a word each."""
    tokens, at = list[Token](), 0
    for label in labels:
        tokens.append(Token(label, at, at + len(label), label))
        at += len(label) + 1
    words = tuple(Word(each.text, each.start, each.end, (place,)) for place, each in enumerate(tokens))
    return Side(" ".join(labels), tuple(tokens), words)


def node_side(text: str) -> Side:
    """A tree in brackets, by its words: a token and a word for each node, every node behind its parts."""
    tree = parse_labelled_tree(text) if text.strip() else None
    if tree is None:
        return Side("", (), ())
    words = " ".join(word for word in tree.words if word is not None)
    starts, done = [0] * len(tree), 0
    found, texts = [], tree.texts()
    for place, first in enumerate(tree.first_nodes()):
        word = tree.words[place]
        starts[place] = done if word is not None else starts[first]
        done += 0 if word is None else len(word) + 1
        found.append(Token(texts[place], starts[place], done - 1, texts[place]))
    each = tuple(Word(token.text, token.start, token.end, (place,)) for place, token in enumerate(found))
    return Side(words, tuple(found), each)


def timed_side(text: str, times: Sequence[str], places: int) -> Side:
    """Speech: one token and word for each of the `places` that its frames became, called by the time it begins at."""
    tokens = tuple(Token(time, 0, 0, time) for time in times[:: frames_a_place(len(times), places)])
    return Side(text, tokens, tuple(Word(token.text, 0, 0, (place,)) for place, token in enumerate(tokens)))


def frames_a_place(frames: int, places: int) -> int:
    """How many frames became one of the encoder's places: a power of 2."""
    step = 1
    while -(-frames // step) > places:
        step *= 2
    return step


def shown_tokens(tokenizer: Tokenizer, ids: Sequence[int]) -> list[str]:
    """Each token without the mark of a word's beginning; a byte that is no character alone as <C3>."""
    names = tokenizer.tokens(ids)
    try:
        spelled = tokenizer.spelled(ids)
    except InputError:  # a foreign decoder: its own names are the best there is
        return [name.replace(WORD_START, " ").strip() or name for name in names]
    return [_shown(*both) for both in zip(spelled, names, strict=True)]


def _shown(spelling: bytes, name: str) -> str:
    try:
        return spelling.decode().strip() or name
    except UnicodeDecodeError:
        return "".join(f"<{byte:02X}>" for byte in spelling)


def written_spans(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> list[Span]:
    """For each of `ids` the characters of `text` that it wrote; those that share a character all have it."""
    if tokenizer.right_to_left:
        return written_spans(tokenizer.left_to_right, ids[::-1], text)[::-1]
    try:
        spelled = tokenizer.spelled(ids)
        data = b"".join(spelled).decode()
    except (InputError, UnicodeDecodeError):  # a foreign decoder, or bytes that are no text
        return _spans_by_decoding(tokenizer, ids, text)
    if data.removeprefix(" ") != text.removeprefix(" "):
        return _spans_by_decoding(tokenizer, ids, text)
    dropped = len(data) - len(text)  # a space in front
    starts = [0, *accumulate(len(character.encode()) for character in data)]
    ends = [0, *accumulate(map(len, spelled))]
    spans = ((bisect_right(starts, first) - 1, bisect_left(starts, last)) for first, last in pairwise(ends))
    return [(max(0, first - dropped), max(0, last - dropped)) for first, last in spans]


def _spans_by_decoding(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> list[Span]:
    lengths = [min(len(text), len(tokenizer.decode(ids[:count]))) for count in range(len(ids) + 1)]
    return list(pairwise(accumulate(lengths, max)))


def _trimmed(text: str, start: int, end: int) -> Span:
    """Without the white space at both ends, unless there is nothing else."""
    part = text[start:end]
    if not part.strip():
        return start, end
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())


def _words(text: str, tokens: Sequence[Token]) -> list[Word]:
    """Neighbours that begin in the same word of the text; what is in none, as a space, goes to the word behind it."""
    spans = words_in(text)
    lasts = [last for _, last in spans]
    belongs = [_belonging(token, lasts, place, len(text)) for place, token in enumerate(tokens)]
    words = []
    for _, group in groupby(range(len(tokens)), key=belongs.__getitem__):
        places = tuple(group)
        first, last = _trimmed(text, *_extent([tokens[place] for place in places]))
        name = text[first:last] or "".join(tokens[place].text for place in places)
        words.append(Word(name, first, last, places))
    return words


def _belonging(token: Token, ends: Sequence[int], place: int, length: int) -> int:
    """The number of the token's word; a special token is a word of its own, numbered below 0."""
    named = token.text[:1] + token.text[-1:] in ("<>", "[]")
    special = token.start == token.end and (token.start == length or named)
    return -1 - place if special else bisect_right(ends, token.start)


def _extent(tokens: Sequence[Token]) -> Span:
    solid = [token for token in tokens if token.end > token.start]
    return (solid[0].start, solid[-1].end) if solid else (tokens[0].start, tokens[-1].end)
