"""Split a text into sentences, join their outputs, and tell whether training pairs were single sentences.

A line break always ends a sentence; within a line, `sentencex` finds sentences by the rules of the language. Marks of
Khmer and Tibetan are added, and a quotation stays with the words that tell who said it. The white space between two
sentences is kept as it is.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from transduce.core.errors import InputError
from transduce.inference.sentence_marks import SENTENCE_ENDS, SHADS, WITHOUT_SPACES

Split = Literal["auto", "sentences", "none"]
"""auto: a text is cut into its sentences if the model's training pairs were single sentences."""

LINES = re.compile(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]+")
SPACE = re.compile(r"\s|[\ud800-\udfff]")  # what sentencex is shown as a space
HANGUL = re.compile(r"[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]")
NO_SENTENCE = re.compile(r"\W*(?:\d+|[^\W\d_])\W*")  # "1.", "M.": the next words belong to it
CLOSING = r"[\"'”’»)\]」』）]*"
ENDED = re.compile(rf"[.!?…{SENTENCE_ENDS}{SHADS}]{CLOSING}$")
UNMARKED = re.compile(rf"[{WITHOUT_SPACES}]{CLOSING}$")  # in Thai and Lao no sentence has a mark at its end
GOES_ON = {"fr": re.compile(r"(?:^|\W)M\.$")}  # Monsieur, which sentencex does not know
ALSO_WORDS = {  # which sentencex takes for abbreviations alone (Maine, number); a capital behind them begins a sentence
    "cs": re.compile(r"(?<![\w.])kol\.[\"'”’»)]* +(?=[\"'“‘«(]*[A-ZÁČĎÉĚÍŇÓŘŠŤÚŮÝŽ])"),
    "en": re.compile(r"(?<![\w.])(?:me|no|ok|OK|ill|op)\.[\"'”’)]* +(?=[\"'“‘(]*[A-Z])"),
    "fr": re.compile(r"(?<![\w.])(?:vol|sec|etc)\.[\"'”’»)]* +(?=[\"'“‘«(]*[A-ZÀ-Ý])"),
}
FURTHER_MARKS = re.compile(  # which sentencex does not know; between two of them Khmer writes "and so on"
    rf"(?<=[^\s\u0f01-\u0f0a{SHADS}])[{SHADS}]{CLOSING}[{SHADS}\s]*|[\u17d4\u17d5](?!\s*\u179b\s*\u17d4){CLOSING}\s*"
)
QUOTE_ENDS = '」』”’"'
QUOTED = re.compile("“[^“”]*”|「[^「」]*」|『[^『』]*』")  # nothing but a quotation
JAPANESE_SAID = re.compile("と(?!ても|ころ[がで]|にかく|りあえず|きどき|うとう|つぜん|ある)|って")
CHINESE_SAID = re.compile("[\u3400-\u9fff]{1,8}?(?:[说說问問答喊叫嚷]|(?<!知)道)[。！]")  # 他问。 But not 我知道。
WINDOW = 2000  # characters that sentencex is shown at once

MANY = 0.1  # of the training sources, that hold several sentences: pairs are no single sentences then
OFTEN = 0.25  # of the pairs, that end as sentences do: else a full stop means something else in this task
LOOKED_AT = 10_000  # training pairs


class Segment(NamedTuple):
    """A span of a text, characters [start, end), that the model reads by itself."""

    start: int
    end: int


Span = tuple[int, int]


def segments(text: str, fits: Callable[[str], bool], lines: bool = True, language: str = "") -> list[Segment]:
    """The parts of `text` to translate, in order; none is empty or has white space at its ends.

    Args:
        fits: whether a line may stay in one piece.
        lines: white space that holds a line's end separates; not so in HTML, where it is a space.
        language: code of the text's language.
    """
    found: list[Segment] = []
    for line in _between(LINES, text) if lines else [(0, len(text))]:
        start, end = _stripped(text, *line)
        if start < end:
            found += [Segment(start, end)] if fits(text[start:end]) else _sentences(text, start, end, language)
    return found


def has_letters(text: str) -> bool:
    """Whether there is a letter in it, of any script. Numbers, times and signs are the same in every language."""
    return any(map(str.isalpha, text))


def has_letters_or_digits(text: str) -> bool:
    """Whether there is more in it than punctuation and symbols. A line of some notations is digits alone."""
    return any(map(str.isalnum, text))


def sentences(text: str, language: str = "") -> list[Segment]:
    """Every sentence of every line of `text`."""
    return segments(text, lambda line: False, language=language)


def rejoined(text: str, cut: Sequence[Segment], outputs: Sequence[str]) -> str:
    """`text` with each segment replaced and everything between them unchanged.

    Where nothing stands between two, as in Chinese, a space is put between outputs in a script that has spaces; and the
    one space that other scripts have there is left out between outputs in Chinese or Japanese.
    """
    parts: list[str] = []
    done = 0
    for segment, output in zip(cut, outputs, strict=True):
        between = text[done : segment.start]
        if parts and between in ("", " "):
            read, written = (text[done - 1], text[segment.start]), (parts[-1][-1:], output[:1])
            if not between and _runs_on(*read) and not _runs_on(*written):
                between = " "
            elif between and not _runs_on(*read) and all(map(_wide, written)):
                between = ""
        parts += [between, output]
        done = segment.end
    return "".join([*parts, text[done:]])


def joined_lines(lines: Sequence[str]) -> str:
    """Outputs one after the other, with a space between two unless both are in Chinese or Japanese."""
    text = ""
    for line in filter(None, lines):
        between = " " if text and not (_wide(text[-1]) and _wide(line[0])) else ""
        text += between + line
    return text


def examined(pairs: Iterable[tuple[str, str]], language: str) -> dict[str, Any]:
    """Facts about the sentences in training pairs, for the model file.

    several: the share of sources with more than one sentence. ended: of pairs both sides of which end as sentences do,
    which those of words, dates or queries do not; a target in a script such as Thai needs no mark at its end.
    single: a text is best cut into its sentences.
    """
    looked_at = several = ended = 0
    for source, target in pairs:
        if source.strip() and target.strip():
            looked_at += 1
            several += len(sentences(source, language)) > 1
            ended += _is_ended(source.rstrip()) and _is_ended(target.rstrip(), UNMARKED)
    shares = {"several": several / max(1, looked_at), "ended": ended / max(1, looked_at)}
    single = looked_at > 0 and shares["several"] <= MANY and shares["ended"] >= OFTEN
    return {"pairs": looked_at, **{name: round(share, 4) for name, share in shares.items()}, "single": single}


def by_sentences(split: Split, single: bool) -> bool:
    """Whether a text is cut into its sentences. Raises InputError for what is no `Split`.

    Args:
        single: whether the model's training pairs were single sentences.
    """
    if split not in ("auto", "sentences", "none"):
        raise InputError(f'split: expected "auto", "sentences" or "none"; got {split!r}.')
    return single if split == "auto" else split == "sentences"


def trained_on_single(provenance: Mapping[str, Any], usual: bool, tokenizer: Any) -> bool:
    """Whether a model's training pairs were single sentences, as its file says.

    Args:
        usual: of a file that does not say: whether models of this task, which read words, are taken to.
        tokenizer: the section of its recipe.
    """
    found = provenance.get("sentences")
    if isinstance(found, Mapping) and "single" in found:
        return found["single"] is True
    return usual and tokenizer.kind != "character"


def _is_ended(text: str, *others: re.Pattern[str]) -> bool:
    return any(pattern.search(text) for pattern in (ENDED, *others))


def _sentences(text: str, start: int, end: int, language: str) -> Iterator[Segment]:
    """Those that sentencex finds; what is none by itself stays with what follows."""
    code = re.split("[-_]", language)[0].lower() or "en"
    goes_on, begun = GOES_ON.get(code), start
    for last in _ends(text, start, end, code):
        if _is_said(text, begun, last, end):
            continue
        inner = _stripped(text, begun, last)
        if inner[0] == inner[1]:
            continue
        if last < end and (_is_none(text[slice(*inner)]) or (goes_on and goes_on.search(text, *inner))):
            continue
        yield Segment(*inner)
        begun = last


def _is_none(part: str) -> bool:
    return NO_SENTENCE.fullmatch(part) is not None and not _runs_on(*part)


def _is_said(text: str, start: int, last: int, end: int) -> bool:
    """Whether `last` is before the end of a quotation, or before the words that tell who said it: 「..」と彼は.."""
    if last < end and text[last] in "」』":
        return True
    if text[last - 1] not in QUOTE_ENDS:
        return False
    if JAPANESE_SAID.match(text, last, end):
        return True
    return bool(CHINESE_SAID.match(text, last, end) and QUOTED.fullmatch(text, start, last))


def _ends(text: str, start: int, end: int, code: str) -> Iterator[int]:
    """Behind each sentence and the white space that follows it, the last at `end`."""
    for mark in FURTHER_MARKS.finditer(text, start, end):
        yield from _ends_by_sentencex(text, start, mark.end(), code)
        start = mark.end()
    yield from _ends_by_sentencex(text, start, end, code)


def _ends_by_sentencex(text: str, start: int, end: int, code: str) -> Iterator[int]:
    """Behind each sentence and the white space that follows it, the last at `end`.

    sentencex sees spaces alone, as it panics at white space of several bytes, and a part of a long text at a time, as
    its time grows with the square of a text that opens quotation marks and never closes them.
    """
    from sentencex import segment

    also = ALSO_WORDS.get(code)
    while start < end:
        shown = SPACE.sub(" ", text[start : min(end, start + WINDOW)])
        parts = segment(code, shown)
        assert "".join(parts) == shown
        unfinished = start + len(shown) < end
        if unfinished and len(parts) > 1:
            parts.pop()  # the last goes on behind the window
            unfinished = False
        for part in parts:
            yield from (start + match.end() for match in also.finditer(part)) if also else ()
            start += len(part)
            if not unfinished:
                yield start


def _runs_on(*chars: str) -> bool:
    """Whether one of the characters is of a script that writes no spaces between words."""
    return any(_wide(char) or re.match(f"[{WITHOUT_SPACES}]", char) for char in chars if char)


def _wide(char: str) -> bool:
    """Whether it is of Chinese or Japanese, whose sentences stand side by side; those of Korean do not."""
    return char != "" and unicodedata.east_asian_width(char) in "WF" and not HANGUL.match(char)


def _between(breaks: re.Pattern[str], text: str) -> Iterator[Span]:
    start = 0
    for match in breaks.finditer(text):
        yield start, match.start()
        start = match.end()
    yield start, len(text)


def _stripped(text: str, start: int, end: int) -> Span:
    part = text[start:end]
    if not part.strip():
        return start, start
    return start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())
