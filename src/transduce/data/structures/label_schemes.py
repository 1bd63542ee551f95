"""Spans of words as a label for each word: BIO, BIOES, BMES; and which labels may follow each other.

    words    Mark  Watney  of  NASA  waits
    bio      B-PER I-PER   O   B-ORG O        first word, further ones, outside (Ramshaw & Marcus 1995, as IOB2)
    bioes    B-PER E-PER   O   S-ORG O        with the last word, and spans of one word
    bmes     the same with M for I; without kinds, B M E S divide characters into words

A label is one of these letters, or one with a kind behind a hyphen. `spans_of` reads any row of them, `labels_of`
writes the row of a scheme.
"""

import re
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple, get_args

Scheme = Literal["bio", "bioes", "bmes", "none"]
SCHEMES: tuple[str, ...] = get_args(Scheme)
OUTSIDE = "O"
LABEL = re.compile(r"([BIOEMSLU])(?:-(.+))?\Z", re.DOTALL)
LETTERS: dict[Scheme, set[str]] = {"bio": set("BI"), "bioes": set("BIES"), "bmes": set("BMES")}
BILOU = str.maketrans("LU", "ES")
OTHER_LETTERS = str.maketrans("MLU", "IES")  # of BMES, and of BILOU, as those of BIOES
BEGINS, ENDS = "BS", "ES"
MOST_OF_SCHEME, MOST_WITHOUT = 1_000, 5_000  # labels


class LabelSpan(NamedTuple):
    """The words [start, end) of one kind; "" = it has no kind."""

    start: int
    end: int
    kind: str


class LabelParts(NamedTuple):
    """A label: its letter as of BIOES, and its kind."""

    letter: str
    kind: str


def parts_of(label: str) -> LabelParts:
    """The letter and the kind of a label. What is no label of a scheme is outside."""
    found = LABEL.match(label)
    if found is None or (found[1] == OUTSIDE and found[2]):
        return LabelParts(OUTSIDE, "")
    return LabelParts(found[1].translate(OTHER_LETTERS), found[2] or "")


def scheme_of(labels: Collection[str]) -> Scheme:
    """The scheme of a set of labels, BILOU counting as BIOES; "none" where they are of no scheme."""
    found = [LABEL.match(label) for label in labels]
    spans = [each for each in found if each and each[1] != OUTSIDE]
    if not spans or None in found or any(each and each[1] == OUTSIDE and each[2] for each in found):
        return "none"
    letters = {each[1].translate(BILOU) for each in spans}
    return next((name for name, known in LETTERS.items() if letters <= known), "none")


def spans_of(labels: Sequence[str]) -> list[LabelSpan]:
    """The spans of a row of labels, in their order, also where the row keeps to no scheme.

    As the script conlleval of CoNLL-2000 reads it: a span begins at B or S, behind E or S, and wherever a label inside
    follows O or another kind; it ends before the next one, before O, and behind E or S.
    """
    found, start = list[LabelSpan](), 0
    before = LabelParts(OUTSIDE, "")
    for place, label in enumerate([*labels, OUTSIDE]):
        now = parts_of(label)
        if before.letter != OUTSIDE and _ends(before, now):
            found.append(LabelSpan(start, place, before.kind))
        if now.letter != OUTSIDE and _begins(before, now):
            start = place
        before = now
    return found


def _ends(before: LabelParts, now: LabelParts) -> bool:
    return before.letter in ENDS or now.letter in BEGINS or now.letter == OUTSIDE or now.kind != before.kind


def _begins(before: LabelParts, now: LabelParts) -> bool:
    return now.letter in BEGINS or before.letter == OUTSIDE or before.letter in ENDS or now.kind != before.kind


def labels_of(spans: Sequence[LabelSpan], words: int, scheme: str) -> list[str]:
    """The labels of this many words with these spans, which do not overlap, in a scheme that is not "none"."""
    labels = [OUTSIDE] * words
    inside = "M" if scheme == "bmes" else "I"
    for start, end, kind in spans:
        letters = ["B", *inside * (end - start - 1)]
        if scheme != "bio":
            letters = ["S"] if end == start + 1 else [*letters[:-1], "E"]
        labels[start:end] = [f"{letter}-{kind}" if kind else letter for letter in letters]
    return labels


def allowed_transitions(labels: Sequence[str], scheme: str) -> tuple[tuple[bool, ...], ...]:
    """(C + 1, C + 1): which of C labels may stand behind which; () = any may.

    The last row says which labels may begin a text, the last column which may end one.
    """
    if scheme == "none":
        return ()
    parts, closed = [parts_of(each) for each in labels], scheme != "bio"  # a span's last word has a label of its own
    rows = dict[tuple[str, bool], tuple[bool, ...]]()
    for before in (found := [_open_span(each, closed) for each in [*parts, LabelParts(OUTSIDE, "")]]):
        if before not in rows:
            rows[before] = (*(_may_stand_behind(before, each) for each in parts), not before[1])
    return tuple(rows[before] for before in found)


def _open_span(before: LabelParts, closed: bool) -> tuple[str, bool]:
    """The kind of the span that may go on behind a label, "O" where none may; whether it must."""
    goes_on = before.letter in "BI"
    return (f"-{before.kind}" if goes_on else OUTSIDE), goes_on and closed


def _may_stand_behind(before: tuple[str, bool], after: LabelParts) -> bool:
    kind, must_go_on = before
    return kind == f"-{after.kind}" if after.letter in "IE" else not must_go_on


def most_labels(scheme: str) -> int:
    """How many labels there may be: a row of scores is computed for each pair of them where labels follow a scheme."""
    return MOST_WITHOUT if scheme == "none" else MOST_OF_SCHEME
