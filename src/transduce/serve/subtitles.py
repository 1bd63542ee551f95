"""Subtitles as SubRip and WebVTT have them, cut at words where their times are known.

A subtitle has at most two lines of 42 characters, and lasts at most 7 s (Netflix, Timed Text Style Guide: general
requirements). A character of Chinese, Japanese or Korean is as wide as two. One that ends early stays for a second, or
until the next begins. A pause of a second begins a new one.
"""

from collections.abc import Iterator, Sequence

from transduce.documents.subtitles import LINES, WIDTH, width
from transduce.inference.prediction import SpokenSegment, SpokenWord

LONGEST, SHORTEST, PAUSE = 7.0, 1.0, 1.0  # seconds: of a subtitle, and between two words


def subtitles(segments: Sequence[SpokenSegment], form: str, words: Sequence[SpokenWord] = ()) -> str:
    """What is said, as SubRip ("srt") or WebVTT ("vtt"); words: of all segments; () = a segment is a subtitle."""
    comma = "," if form == "srt" else "."
    blocks = ["WEBVTT"] if form == "vtt" else []
    shown = cues(words, " ".join(each.text for each in segments)) if words else segments
    for number, each in enumerate((each for each in shown if each.text), 1):
        count = [f"{number}"] if form == "srt" else []
        time = f"{_clock(each.start, comma)} --> {_clock(each.end, comma)}"
        blocks.append("\n".join([*count, time, each.text]))
    return "\n\n".join(blocks) + "\n"


def cues(words: Sequence[SpokenWord], text: str) -> list[SpokenSegment]:
    """Words as subtitles. text: what they are the words of, which says where spaces stand."""
    spaced = [*_spaced(words, text)]
    groups = list[list[SpokenWord]]()
    for word in spaced:
        if groups and _fits(groups[-1], word):
            groups[-1].append(word)
        else:
            groups.append([word])
    begins = [group[0].start for group in groups]
    following = [*begins[1:], float("inf")]
    ends = [group[-1].end for group in groups]
    last = ends[-1] if ends else 0.0
    stays = [
        max(end, min(begin + SHORTEST, after, max(last, begin)))
        for begin, end, after in zip(begins, ends, following, strict=True)
    ]
    return [
        SpokenSegment(begin, end, "\n".join(_lines([each.word for each in group])))
        for begin, end, group in zip(begins, stays, groups, strict=True)
    ]


def _spaced(words: Sequence[SpokenWord], text: str) -> Iterator[SpokenWord]:
    """Each word with the space in front of it, if one stands there in the text."""
    at = 0
    for each in words:
        found = text.find(each.word, at)
        space = " " if found > at and text[at:found].isspace() else ""
        at = max(at, found + len(each.word))
        yield each._replace(word=f"{space}{each.word}")


def _fits(group: Sequence[SpokenWord], word: SpokenWord) -> bool:
    """Whether a subtitle has room for one more word, in lines and time."""
    short = word.end - group[0].start <= LONGEST and word.start - group[-1].end < PAUSE
    lines = _filled([*(each.word for each in group), word.word])
    return short and len(lines) <= LINES and max(map(width, lines)) <= WIDTH


def _lines(words: Sequence[str]) -> list[str]:
    """One line where the words fit, else two that are as equal as they can be."""
    whole = "".join(words).strip()
    if width(whole) <= WIDTH or len(words) < 2:
        return [whole]
    halves = [("".join(words[:cut]).strip(), "".join(words[cut:]).strip()) for cut in range(1, len(words))]
    return list(min(halves, key=lambda two: max(map(width, two))))


def _filled(words: Sequence[str]) -> list[str]:
    """The words in lines, each as full as it can be."""
    lines = [words[0]]
    for word in words[1:]:
        if width(f"{lines[-1]}{word}".strip()) <= WIDTH:
            lines[-1] += word
        else:
            lines.append(word)
    return [line.strip() for line in lines]


def _clock(seconds: float, comma: str) -> str:
    """Such as 00:01:02,500."""
    minutes, milliseconds = divmod(round(seconds * 1000), 60_000)
    return f"{minutes // 60:02}:{minutes % 60:02}:{milliseconds // 1000:02}{comma}{milliseconds % 1000:03}"
