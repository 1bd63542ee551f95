"""Split a text into what the model reads at once: all of it, its sentences, or pieces of one that is too long.

A piece ends at a sentence's end, else at a comma, else at a space, else anywhere.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from transduce.core.errors import InputError
from transduce.data.tags import leading_tags
from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.inference.batches import by_length
from transduce.inference.prediction import Prediction, SpokenSegment, SpokenWord
from transduce.inference.preparation import Prepared
from transduce.inference.repetition import repetition
from transduce.inference.sentences import Segment, joined_lines, rejoined, sentences

if TYPE_CHECKING:
    from transduce.data.speech.cutting import HeardPart
    from transduce.inference.constraints import Constraints

LongText = Literal["split", "truncate", "refuse"]
FAR = 1000  # characters for each token that a model reads, beyond which a text that is cut off is not looked at
BREAKS = (re.compile(r"(?<=[,;:])\s+|(?<=[，；：、])"), re.compile(r"\s+"))


@dataclass
class Pieces:
    """The pieces of several texts.

    cuts: for each text, the spans that are read by themselves; one span for a text in one piece.
    ids: or frames, of each piece, in the order of `read`.
    long: for each text with a part that is too long, which part that is. done: what was done about it.
    tags: what stands before a text, and is read before each of its pieces; see `transduce.data.tags`.
    first: the number of the first text in its file, from 0, for messages.
    times: of recordings, from when to when each piece goes, in seconds; [] = these are texts.
    prepared: what the model reads in place of each piece; [] = the pieces themselves.
    """

    texts: Sequence[str]
    cuts: list[list[Segment]] = field(default_factory=list)
    ids: list[Any] = field(default_factory=list)
    long: dict[int, str] = field(default_factory=dict)
    done: dict[int, str] = field(default_factory=dict)
    tags: dict[int, str] = field(default_factory=dict)
    first: int = 0
    times: list[list[tuple[float, float]]] = field(default_factory=list)
    prepared: list[Prepared] = field(default_factory=list)

    @classmethod
    def of_recordings(cls, texts: Sequence[str], parts: "Sequence[Sequence[HeardPart]]", first: int = 0) -> "Pieces":
        """Each recording in its parts; what is read of each is its name."""
        cuts = [[Segment(0, len(text))] * len(each) for text, each in zip(texts, parts, strict=True)]
        features = [part.features for each in parts for part in each]
        return cls(texts, cuts, features, first=first, times=[[part[1:] for part in each] for each in parts])

    @classmethod
    def whole(cls, texts: Sequence[str], ids: Sequence[Any], first: int = 0) -> "Pieces":
        """Each text in one piece, of which these are the ids."""
        return cls(texts, [[Segment(0, len(text))] for text in texts], [*ids], first=first)

    @property
    def given(self) -> list[str]:
        """All pieces of all texts, each behind the tags of its text."""
        return [
            self.tags.get(place, "") + text[start:end]
            for place, (text, cut) in enumerate(zip(self.texts, self.cuts, strict=True))
            for start, end in cut
        ]

    @property
    def read(self) -> list[str]:
        """What the model reads in place of each."""
        if not self.prepared:
            return self.given
        owners = zip(self.owners, self.prepared, strict=True)
        return [self.tags.get(place, "") + each.read if each.read else "" for place, each in owners]

    @property
    def owners(self) -> list[int]:
        """The place of the text that each is part of."""
        return [place for place, cut in enumerate(self.cuts) for _ in cut]

    def chosen(self, places: Sequence[int]) -> "Pieces":
        """What the model reads of the pieces at these places, each as a text of its own."""
        read = self.read
        return Pieces.whole([read[place] for place in places], [self.ids[place] for place in places])

    def batches(self, size: int) -> list[list[int]]:
        """The places of pieces with tokens: those of like lengths together, the longest first."""
        texts = self.read
        places = [place for place, text in enumerate(texts) if len(self.ids[place]) and text.strip()]
        found = by_length((len(self.ids[place]) for place in places), size, longest_first=True)
        return [[places[row] for row in batch] for batch in found]

    def advancing(self, advance: Callable[[int], None] | None) -> Callable[[int], None] | None:
        """Told how many more pieces are done, it tells `advance` how many more texts that is, about."""
        read, told, pieces = 0, 0, sum(map(len, self.cuts))
        if advance is None or pieces == len(self.texts):
            return advance

        def more(count: int) -> None:
            nonlocal read, told
            read += count
            texts = read * len(self.texts) // pieces
            advance(texts - told)
            told = texts

        return more

    def joined(self, found: Sequence[Prediction]) -> list[Prediction]:
        """One prediction a text, of one for each piece."""
        each = iter(found)
        parts = [[next(each) for _ in cut] for cut in self.cuts]
        if self.times:
            return [_spoken(*both) for both in zip(parts, self.times, strict=True)]
        return [_joined(*three) for three in zip(self.texts, self.cuts, parts, strict=True)]


def pieces_of(
    texts: Sequence[str],
    split: Sequence[bool],
    tokenizer: Tokenizer,
    limit: int,
    long_text: LongText,
    prompts: bool = False,
    language: str = "",
    first: int = 0,
    prepare: Callable[[str], Prepared] | None = None,
) -> Pieces:
    """How texts are read by a model that reads at most `limit` tokens at once.

    Args:
        prepare: what the model reads in place of a piece, unless that is too long; None = the piece itself.
        split: whether each is cut into its sentences.
        long_text: what becomes of a text, or a sentence, that is longer: see `shorten`.
        prompts: they are to be continued: the end of a long one is kept, or where that is, its beginning.
        first: the number of the first text in its file, from 0, for messages.

    Raises:
        InputError: some are longer, and long_text="refuse"; all are named.
    """
    marks = ["" if prompts else leading_tags(tokenizer, text) for text in texts]
    found = Pieces(texts, tags={place: mark for place, mark in enumerate(marks) if mark}, first=first)
    cuts = [_cut(text, cut, language, len(mark)) for text, cut, mark in zip(texts, split, marks, strict=True)]
    whole = cuts
    if long_text != "split" or prompts:
        cuts = [_in_sight(*each, tokenizer, limit, prompts) for each in zip(texts, whole, strict=True)]
    ready = prepare or Prepared.as_it_is
    uncut = Pieces(texts, cuts, tags=found.tags)
    uncut.prepared = [ready(text[start:end]) for text, cut in zip(texts, cuts, strict=True) for start, end in cut]
    each = zip(uncut.prepared, tokenizer.encode(uncut.read), strict=True)
    for place, (text, cut) in enumerate(zip(texts, cuts, strict=True)):
        fitting = []
        for segment in cut:
            prepared, own = next(each)
            parts, ids, read = [segment], [own], [prepared]
            if (length := len(ids[0])) > limit:
                room = limit - length_of(tokenizer, marks[place])
                inner, done = shorten(text[segment.start : segment.end], tokenizer, room, long_text, prompts, language)
                parts = [Segment(segment.start + start, segment.start + end) for start, end in inner]
                sentence = "a sentence of " if len(cut) > 1 else ""
                least = "" if segment in whole[place] else "over "
                found.long[place] = (
                    f"line {first + place + 1}: {sentence}{least}{length} tokens, the model reads {limit} at most"
                )
                found.done[place] = done
                read = [ready(text[start:end]) for start, end in parts]
                ids = _encoded(tokenizer, marks[place], read)
                read = [
                    Prepared.as_it_is(one.text) if len(own) > limit else one for one, own in zip(read, ids, strict=True)
                ]
                ids = _encoded(tokenizer, marks[place], read)
            fitting += parts
            found.prepared += read if prepare else []
            found.ids += ids
        found.cuts.append(fitting)
        if place in found.done and len(fitting) > 1:
            found.done[place] = f"translated in {len(fitting)} pieces"
    if found.long and long_text == "refuse":
        raise InputError(f'{known}; shorten it, or choose "split" or "truncate".' for known in found.long.values())
    return found


def _encoded(tokenizer: Tokenizer, tags: str, read: Sequence[Prepared]) -> list[list[int]]:
    """The ids of what is read of each, behind the tags of its text."""
    return tokenizer.encode([tags + each.read if each.read else "" for each in read])


def utterances(
    texts: Sequence[str], parts: "Sequence[Sequence[HeardPart]]", limit: int, long_text: LongText, first: int = 0
) -> Pieces:
    """How speech is read: in the parts that its column makes, each as a whole, however `limit` frames compare with it.

    Args:
        parts: of each recording; see `transduce.data.columns.Column.encode_audio`.
        limit: the frames of the longest utterance that training heard.
        long_text: "truncate" keeps the first part, and its first `limit` frames; "split" reads all of it.
        first: the number of the first text in its file, from 0, for messages.

    Raises:
        InputError: some are longer, and long_text="refuse"; all are named.
    """
    kept = [each[:1] for each in parts] if long_text == "truncate" else parts
    found = Pieces.of_recordings(texts, kept, first)
    if long_text == "truncate":
        found.ids = [features_SF[:limit] for features_SF in found.ids]
    for place, each in enumerate(parts):
        line, longest = f"line {first + place + 1}", max(len(part.features) for part in each)
        if len(each) > 1:
            found.long[place] = f"{line}: {each[-1].end:.0f} s, the model hears {each[0].end:.0f} s at once here"
            found.done[place] = f"heard in {len(each)} parts" if long_text == "split" else "the rest is left out"
        elif longest > limit:
            found.long[place] = f"{line}: {longest} frames, the model was trained on {limit} at most"
            found.done[place] = f"cut off after {limit}" if long_text == "truncate" else "read as a whole all the same"
    if found.long and long_text == "refuse":
        raise InputError(f'{known}; cut the recording, or choose "truncate".' for known in found.long.values())
    return found


def refuse_wants_of_pieces(constraints: "Sequence[Constraints]", pieces: Pieces) -> None:
    """Raises InputError for constraints on a text that is read in several pieces."""
    problems = [
        f"line {pieces.first + place + 1}: constraints cannot apply to a text that is translated in {len(cut)} pieces; "
        'shorten it, choose long = "truncate", or read its sentences as one with split = "none".'
        for place, (wanted, cut) in enumerate(zip(constraints, pieces.cuts, strict=True))
        if wanted and len(cut) > 1
    ]
    if problems:
        raise InputError(problems)


def _cut(text: str, split: bool, language: str, first: int = 0) -> list[Segment]:
    """first: where the text begins, behind its tags."""
    found = [Segment(first + a, first + b) for a, b in sentences(text[first:], language)] if split else []
    return found if len(found) > 1 else [Segment(first, len(text))]


def _in_sight(text: str, cut: list[Segment], tokenizer: Tokenizer, limit: int, prompts: bool) -> list[Segment]:
    """The segments, of which only the beginning, or the end of a prompt, is kept where no token behind it is read."""
    size = limit * FAR
    from_end = prompts and not tokenizer.right_to_left

    def seen(segment: Segment) -> Segment:
        if segment.end - segment.start <= size:
            return segment
        start = segment.end - size if from_end else segment.start
        part = text[start : start + size]
        only_spaces = len(tokenizer.encode([part])[0]) <= limit
        return segment if only_spaces else Segment(start, start + size)

    return [seen(each) for each in cut]


def length_of(tokenizer: Tokenizer, tags: str) -> int:
    """How many tokens the tags of a text are."""
    return len(tokenizer.encode([tags])[0]) if tags else 0


def shorten(
    text: str, tokenizer: Tokenizer, limit: int, long_text: LongText, prompt: bool, language: str = ""
) -> tuple[list[Segment], str]:
    """Parts of `text` of at most `limit` tokens, and what was done in words.

    Args:
        long_text: "truncate" keeps the beginning, anything else all of it, in pieces.
        prompt: the text is to be continued: its end is kept, whatever `long_text`.
    """

    def length(part: str) -> int:
        return len(tokenizer.encode([part])[0])

    if prompt and tokenizer.right_to_left:
        return [
            Segment(0, _beginning(text, tokenizer.left_to_right, length, limit))
        ], f"only its first {limit} are seen"
    if prompt:
        return [Segment(_end(text, tokenizer, length, limit), len(text))], f"only its last {limit} are seen"
    if long_text == "truncate":
        return [Segment(0, _beginning(text, tokenizer, length, limit))], f"cut off after {limit}"
    pieces = split_to_fit(text, length, limit, language)
    return pieces, f"translated in {len(pieces)} pieces"


def split_to_fit(text: str, length: Callable[[str], int], limit: int, language: str = "") -> list[Segment]:
    """`text` in as few pieces as its best breaks allow, each of at most `limit` tokens.

    Args:
        length: how many tokens a text has; must not shrink when text is added.
    """
    return _fitting(text, Segment(0, len(text)), length, limit, language)


def _fitting(text: str, span: Segment, length: Callable[[str], int], limit: int, language: str) -> list[Segment]:
    part = text[span.start : span.end]
    if length(part) <= limit:
        return [span]
    for parts in (sentences(part, language), *(_parts(part, breaks) for breaks in BREAKS)):
        if len(parts) > 1:
            here = [Segment(span.start + start, span.start + end) for start, end in parts]
            joined = _join(text, here, length, limit)
            return [piece for each in joined for piece in _fitting(text, each, length, limit, language)]
    half = span.start + len(part) // 2
    if half == span.start:
        return [span]
    halves = Segment(span.start, half), Segment(half, span.end)
    return [piece for each in halves for piece in _fitting(text, each, length, limit, language)]


def _parts(text: str, breaks: re.Pattern[str]) -> list[Segment]:
    ends = [0, *(place for found in breaks.finditer(text) for place in found.span()), len(text)]
    return [Segment(start, end) for start, end in zip(ends[::2], ends[1::2], strict=True) if start < end]


def _join(text: str, parts: list[Segment], length: Callable[[str], int], limit: int) -> list[Segment]:
    """Neighbours put together while they fit; never all of them, since the whole did not fit."""
    joined, first = list[Segment](), 0

    def fits(last: int) -> bool:
        return length(text[parts[first].start : parts[last].end]) <= limit

    while first < len(parts):
        last = _last(first, len(parts), fits)
        joined.append(Segment(parts[first].start, parts[last].end))
        first = last + 1
    return joined if len(joined) > 1 else parts


def _last(first: int, end: int, fits: Callable[[int], bool]) -> int:
    """The last place before `end` up to which all fit, by steps that double and then halve; `first` at least."""
    last, step = first, 1
    while last + step < end and fits(last + step):
        last, step = last + step, 2 * step
    beyond = min(last + step, end)
    while beyond - last > 1:
        middle = (last + beyond) // 2
        last, beyond = (middle, beyond) if fits(middle) else (last, middle)
    return last


def _beginning(text: str, tokenizer: Tokenizer, length: Callable[[str], int], limit: int) -> int:
    """Where the longest beginning of whole characters and at most `limit` tokens ends."""
    end = tokenizer.offsets(text)[limit - 1][1]
    while length(text[:end]) > limit:  # a token may end within a character, or be another one at the end
        end -= 1
    return end


def _end(text: str, tokenizer: Tokenizer, length: Callable[[str], int], limit: int) -> int:
    """Where the longest end of whole characters and at most `limit` tokens starts."""
    start = tokenizer.offsets(text)[-limit][0]
    while length(text[start:]) > limit:
        start += 1
    return start


def _joined(text: str, cut: Sequence[Segment], parts: Sequence[Prediction]) -> Prediction:
    """One prediction for a text that was read in parts: with the white space of the text, probabilities multiplied.

    Of its n-best list the k-th joins the k-th of each part, or its last.
    """
    if len(parts) == 1:
        return parts[0]
    listed = [part.alternatives or (part,) for part in parts]
    ranks = range(max(map(len, listed)))
    whole = [_side_by_side(text, cut, [each[min(rank, len(each) - 1)] for each in listed]) for rank in ranks]
    return whole[0] if len(whole) == 1 else replace(whole[0], alternatives=tuple(whole))


def _spoken(parts: Sequence[Prediction], times: Sequence[tuple[float, float]]) -> Prediction:
    """One prediction for a recording, whose parts are told with their times."""
    segments = tuple(_segment(*each) for each in zip(parts, times, strict=True))
    words = tuple(
        SpokenWord(word, round(start + begins, 3), round(end + begins, 3))
        for part, (begins, _) in zip(parts, times, strict=True)
        for word, start, end in part.spoken_words
    )
    if len(parts) == 1:
        return replace(parts[0], segments=segments, spoken_words=words)
    listed = [part.alternatives or (part,) for part in parts]
    ranks = range(max(map(len, listed)))
    whole = [_one_after_another([each[min(rank, len(each) - 1)] for each in listed]) for rank in ranks]
    return replace(whole[0], segments=segments, spoken_words=words, alternatives=tuple(whole) if len(whole) > 1 else ())


def _segment(part: Prediction, time: tuple[float, float]) -> SpokenSegment:
    return SpokenSegment(*time, part.text, part.ended, repetition(part.text))


def _one_after_another(parts: Sequence[Prediction]) -> Prediction:
    return _summed(parts[0].source, joined_lines([part.text for part in parts]), parts)


def _side_by_side(text: str, cut: Sequence[Segment], parts: Sequence[Prediction]) -> Prediction:
    inner = [Segment(start - cut[0].start, end - cut[0].start) for start, end in cut]
    return _summed(text, rejoined(text[cut[0].start : cut[-1].end], inner, [part.text for part in parts]), parts)


def _summed(source: str, text: str, parts: Sequence[Prediction]) -> Prediction:
    """One prediction with the tokens and the probabilities of all parts."""
    return Prediction(
        source=source,
        text=text,
        score=sum(part.score for part in parts),
        log_probability=sum(part.log_probability for part in parts),
        tokens=tuple(token for part in parts for token in part.tokens),
        token_log_probabilities=tuple(each for part in parts for each in part.token_log_probabilities),
        ended=all(part.ended for part in parts),
        missing=tuple(each for part in parts for each in part.missing),
        forced=tuple(each for part in parts for each in part.forced),
        repeated=next((part.repeated for part in parts if part.repeated), None),
        origins=tuple(each for part in parts for each in part.origins),
    )


def tell_of_pieces(
    pieces: Pieces,
    constraints: "Sequence[Constraints]",
    unconstrained: Callable[[], Pieces],
    tell: Callable[[str], None],
) -> None:
    """Tell which texts were too long, and which are read as one because of constraints.

    Args:
        unconstrained: how the texts were read if nothing were wanted of their outputs.
    """
    tell_of_long(pieces, tell)
    cuts = unconstrained().cuts if any(constraints) else pieces.cuts
    for place, (cut, other) in enumerate(zip(pieces.cuts, cuts, strict=True)):
        if constraints[place] and len(cut) < len(other):
            number = pieces.first + place + 1
            tell(f"line {number}: its {len(other)} sentences are read as one, because constraints apply to it.")


def tell_of_long(pieces: Pieces, tell: Callable[[str], None]) -> None:
    """Tell which texts were too long, and what became of them."""
    for place, known in pieces.long.items():
        tell(f"{known}; {pieces.done[place]}")


def tell_unmet(predictions: Sequence[Prediction], tell: Callable[[str], None], first: int = 0) -> None:
    """Tell which required phrases are missing from an output. first: see `Pieces`."""
    for number, prediction in enumerate(predictions, first + 1):
        if prediction.unmet:
            names = ", ".join(f'"{phrase}"' for phrase in prediction.unmet)
            why = "it has no tokens" if not prediction.source.strip() else "the output reached its length limit"
            tell(f"line {number}: {names} must appear but does not: {why}.")


def refuse_attention_of_pieces(prediction: Prediction) -> Any:
    """Stands in for the attention of a text that was read in several pieces."""
    raise InputError("this text was read in several pieces, each with its own attention: predict a shorter one.")
