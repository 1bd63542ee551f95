"""Text with inline codes inside, cut into pieces to translate, and put together from their outputs.

A run is text between two blocks of a file, such as a paragraph. Inline tags (<b>, <a>, ..) at a segment's ends stay
there. Those inside, and their partners, go where the words that they enclose went, by the model's attention; without
it, opening tags go to the segment's beginning and closing ones to its end. Tags never change their order, so what was
well nested still is. A segment whose output is its text keeps its bytes.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal, NamedTuple, Protocol

from transduce.inference.sentences import Segment, Span, has_letters, segments

Kind = Literal["open", "close", "alone"]
Fits = Callable[[str], bool]  # whether a text is read in one piece


class Tag(NamedTuple):
    """An inline code inside a run of text, such as an HTML tag or a comment; it stands before the character `at`.

    apart: it stands between spaces, as a word does. attached: it ends a word, as the mark of a note does.
    """

    at: int
    raw: str
    kind: Kind
    name: str
    apart: bool = False
    attached: bool = False


class Link(NamedTuple):
    """A source word and an output word that belong together, as spans of characters."""

    source: Span
    output: Span


class Piece(NamedTuple):
    """One segment of a run, in single spaces, and the tags that are its own."""

    text: str
    tags: list[Tag]


class Kept(NamedTuple):
    """What stays of a run: its characters [start, end), and its tags [first, last)."""

    start: int
    end: int
    first: int
    last: int


Token = str | Tag | Kept
Write = Callable[["Run", Sequence[Token]], str]  # what writes tokens in the place of a run
Output = tuple[str, Sequence[Link]]  # of a piece; the links say where its tags go


class Translatable(Protocol):
    """A text as pieces to translate, and what stands between them."""

    @property
    def pieces(self) -> Sequence[Piece]: ...

    def rejoined(self, outputs: Sequence[Output]) -> str:
        """The text with each piece replaced by its output."""
        ...


Parse = Callable[[str, Fits, str], Translatable]  # a text, and as `Document` takes them


@dataclass(frozen=True)
class Run:
    """Text without a block inside, as people read it; `raw` is what stood there.

    starts, tag_starts: where each character and each tag begins in `raw`.
    exact: whether every character has its own place in `raw`.
    write: what writes tokens in the place of `raw`.
    lines: whether a line's end ends a sentence; else it is a space, as in HTML.
    """

    text: str
    tags: list[Tag]
    raw: str
    starts: Sequence[int]
    tag_starts: Sequence[int]
    write: Write
    exact: bool = True
    lines: bool = False

    def offset(self, characters: int, tags: int) -> int:
        """Where in `raw` so many characters and tags are behind."""
        following = self.starts[characters : characters + 1], self.tag_starts[tags : tags + 1]
        return min((each[0] for each in following if each), default=len(self.raw))

    def items(self, kept: Kept) -> Iterator[str | Tag]:
        """Text and tags of a part, in their order."""
        done = kept.start
        for tag in self.tags[kept.first : kept.last]:
            if done < tag.at:
                yield self.text[done : tag.at]
            yield tag
            done = max(done, tag.at)
        if done < kept.end:
            yield self.text[done : kept.end]


class RunBuilder:
    """Collects a run from its beginning to its end."""

    def __init__(self) -> None:
        self._texts, self._raws, self._tags = list[str](), list[str](), list[Tag]()
        self._starts, self._tag_starts = list[int](), list[int]()
        self._size, self._exact = 0, True

    def __bool__(self) -> bool:
        return self._size > 0 or bool(self._tags)

    @property
    def ends_in_word(self) -> bool:
        """Whether the text so far ends without a space."""
        last = next((each for each in reversed(self._texts) if each), " ")
        return not last[-1].isspace()

    def add_text(self, text: str, raw: str | None = None) -> None:
        """Text. raw: how it is written; None = as it is."""
        raw = text if raw is None else raw
        if len(text) == len(raw):
            self._starts += range(self._size, self._size + len(text))
        else:
            self._starts += [self._size] * len(text)
            self._exact = self._exact and len(text) <= 1
        self._texts.append(text)
        self.add_raw(raw)

    def add_tag(self, raw: str, kind: Kind = "alone", name: str = "", written: str | None = None) -> None:
        """An inline code at the end of the text so far. written: as it stands in a translation; None = as it is."""
        self._tags.append(Tag(len(self._starts), raw if written is None else written, kind, name))
        self._tag_starts.append(self._size)
        self.add_raw(raw)

    def add_raw(self, raw: str) -> None:
        """What is neither, such as a break of a long string."""
        self._raws.append(raw)
        self._size += len(raw)

    def run(self, write: Write, lines: bool = False) -> Run:
        """The run. write, lines: see there."""
        text, raw = "".join(self._texts), "".join(self._raws)
        return Run(text, self._tags, raw, self._starts, self._tag_starts, write, self._exact, lines)


def writes_escaped(escape: Callable[[str], str]) -> Write:
    """Writes outputs as `escape` gives them, with tags as they were; what is kept is kept byte for byte."""

    def written(run: Run, tokens: Sequence[Token]) -> str:
        return "".join(part for token in tokens for part in _written(run, token, escape))

    return written


def _written(run: Run, token: Token, escape: Callable[[str], str]) -> Iterator[str]:
    if isinstance(token, Kept) and run.exact:
        yield run.raw[run.offset(token.start, token.first) : run.offset(token.end, token.last)]
    else:
        for each in run.items(token) if isinstance(token, Kept) else [token]:
            yield each.raw if isinstance(each, Tag) else escape(each)


class Cut(NamedTuple):
    """A segment of a run, and which of the run's tags are its own: run.tags[first:last]."""

    segment: Segment
    first: int
    last: int

    @property
    def kept(self) -> Kept:
        """All of it, as it is."""
        return Kept(*self.segment, self.first, self.last)


Part = str | Run


class Document:
    """Runs of text, and what stands between them, as pieces to translate.

    Args:
        parts: the document, in its order.
        fits, language: see `transduce.inference.sentences.segments`.
        islands: of runs within runs: parts that take the place of `island(number)` in what is written.
    """

    def __init__(
        self, parts: Iterable[Part], fits: Fits, language: str = "", islands: Sequence[Sequence[Part]] = ()
    ) -> None:
        self._all = [_CutParts(each, fits, language) for each in ([*parts], *islands)]
        self.pieces = [piece for each in self._all for pieces in each.pieces for piece in pieces]

    def rejoined(self, outputs: Sequence[Output]) -> str:
        """The document with each of `pieces` replaced by its output; the links say where inner tags go."""
        assert len(outputs) == len(self.pieces)
        waiting = iter(outputs)
        text, *inner = [each.rejoined(waiting) for each in self._all]
        return ISLAND.sub(lambda found: _filled(found, inner), text) if inner else text


ISLAND = re.compile("\0([0-9]+)\0")  # XML has no such character


def island(number: int) -> str:
    """What stands in a run for what `Document` finds in its islands at this number."""
    return f"\0{number}\0"


def _filled(found: re.Match[str], inner: Sequence[str]) -> str:
    return ISLAND.sub(lambda deeper: _filled(deeper, inner), inner[int(found[1])])


class _CutParts:
    """Parts, the segments of each, and these as pieces."""

    def __init__(self, parts: Sequence[Part], fits: Fits, language: str) -> None:
        self._parts = parts
        self._cuts = [_cuts(part, fits, language) if isinstance(part, Run) else [] for part in parts]
        cut_parts = zip(parts, self._cuts, strict=True)
        self.pieces = [[_piece(part, cut) for cut in cuts] if isinstance(part, Run) else [] for part, cuts in cut_parts]

    def rejoined(self, outputs: Iterator[Output]) -> str:
        done = list[str]()
        for part, cuts, pieces in zip(self._parts, self._cuts, self.pieces, strict=True):
            if isinstance(part, Run):
                done.append(_rebuilt(part, cuts, [(piece, next(outputs)) for piece in pieces]))
            else:
                done.append(part)
        return "".join(done)


def _rebuilt(run: Run, cuts: Sequence[Cut], outputs: Sequence[tuple[Piece, Output]]) -> str:
    """A run with its segments replaced; tags between segments stay between them."""
    if all(output == piece.text for piece, (output, _) in outputs):
        return run.raw
    tokens, done, number = list[Token](), 0, 0
    for cut, (piece, (output, links)) in zip(cuts, outputs, strict=True):
        tokens.append(Kept(done, cut.segment.start, number, cut.first))
        tokens += [cut.kept] if output == piece.text else _placed(piece, output, links)
        done, number = cut.segment.end, cut.last
    return run.write(run, [*tokens, Kept(done, len(run.text), number, len(run.tags))])


def _cuts(run: Run, fits: Fits, language: str) -> list[Cut]:
    """Segments with a letter; a number, a time or a dash stays as it is, as a model would make a sentence of it."""
    partners = _partners(run.tags)
    cuts: list[Cut] = []
    for segment in segments(run.text, fits, lines=run.lines, language=language):
        if has_letters(run.text[segment.start : segment.end]):
            cuts.append(_own_tags(run, segment, partners, cuts[-1].last if cuts else 0))
    return cuts


def _own_tags(run: Run, segment: Segment, partners: list[int | None], tags_before: int) -> Cut:
    """The tags inside a segment, and those at its ends whose partners are inside.

    tags_before: so many of the run's tags belong to segments before.
    """
    edges = [bisect(run.tags, at, key=_at) for at in segment for bisect in (bisect_left, bisect_right)]
    before, first, last, behind = (max(edge, tags_before) for edge in edges)

    def inside(number: int) -> bool:
        partner = partners[number]
        return partner is not None and first <= partner < last

    begins = next(filter(inside, range(before, first)), first)
    ends = next(filter(inside, reversed(range(last, behind))), last - 1) + 1
    return Cut(segment, begins, ends)


def _at(tag: Tag) -> int:
    return tag.at


def _piece(run: Run, cut: Cut) -> Piece:
    (start, end), first, last = cut
    text = run.text[start:end]
    kept = [not (one.isspace() and other.isspace()) for one, other in pairwise("." + text)]
    places = [0, *accumulate(kept)]
    tags = [_placed_tag(tag, text, tag.at - start, places[tag.at - start]) for tag in run.tags[first:last]]
    return Piece(re.sub(r"\s+", " ", text), tags)


def _placed_tag(tag: Tag, text: str, at: int, place: int) -> Tag:
    """A tag of a segment, before its character `at`, which is `place` in single spaces."""
    before, behind = (each.strip() for each in (text[at - 1 : at] if at else "", text[at : at + 1]))
    inside = tag.kind == "alone" and 0 < at < len(text)
    return tag._replace(
        at=place, apart=inside and not (before or behind), attached=inside and bool(before) and not behind
    )


def _placed(piece: Piece, output: str, links: Sequence[Link]) -> list[Token]:
    """`output` with the piece's tags in it: in their order, each at the word that it belongs to."""
    out, done = list[Token](), 0
    enclosed = _enclosed(piece)
    wanted = [_place(tag, span, len(output), links) for tag, span in zip(piece.tags, enclosed, strict=True)]
    for tag, at in zip(piece.tags, accumulate(wanted, max), strict=True):
        before, behind = output[max(0, at - 1) : at].strip(), output[at : at + 1].strip()
        apart = tag.apart and not (before and behind)  # which would part a word
        out += [output[done:at], *([" "] if apart and before else []), tag, *([" "] if apart and behind else [])]
        done = at
    return [*out, output[done:]]


def _place(tag: Tag, enclosed: Span, length: int, links: Sequence[Link]) -> int:
    """The character of the output that a tag wants to stand before; what encloses no word goes before the next one."""
    first, last = enclosed
    spans = [link.output for link in links if first < last and link.source[0] < last and link.source[1] > first]
    if tag.kind == "alone" and tag.attached and (ends := [each.output[1] for each in links if each.source[1] == first]):
        return max(ends)
    if tag.kind == "alone" or first == last or (links and not spans):
        following = min((link.source for link in links if link.source[0] >= first), default=None)
        return min((link.output[0] for link in links if link.source == following), default=length)
    if tag.kind == "open":
        return min((start for start, _ in spans), default=0)
    return max((end for _, end in spans), default=length)


def _enclosed(piece: Piece) -> list[Span]:
    """For each tag the characters between it and its partner; up to the piece's end where the partner is elsewhere.

    White space alone is nothing.
    """
    spans = []
    for tag, partner in zip(piece.tags, _partners(piece.tags), strict=True):
        other = None if partner is None else piece.tags[partner].at
        if tag.kind == "close":
            spans.append((other or 0, tag.at))
        else:
            spans.append((tag.at, len(piece.text) if other is None else other))
    return [(first, last if piece.text[first:last].strip() else first) for first, last in spans]


def _partners(tags: Sequence[Tag]) -> list[int | None]:
    """For each tag the place of the one that closes or opened it."""
    waiting: dict[str, list[int]] = defaultdict(list)
    partners: list[int | None] = [None] * len(tags)
    for number, tag in enumerate(tags):
        if tag.kind == "open":
            waiting[tag.name].append(number)
        elif tag.kind == "close" and waiting[tag.name]:
            opened = waiting[tag.name].pop()
            partners[opened], partners[number] = number, opened
    return partners
