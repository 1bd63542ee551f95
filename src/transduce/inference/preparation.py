"""What a model reads in place of a text, and how its output becomes one for people.

    prepared = preparation.prepared("MEET ME AT 12:30.")
    prepared.read                                     # "Meet me at ⟦1⟧."
    prepared.restored("Triff mich um ⟦1⟧.").text      # "TRIFF MICH UM 12:30."
    prepared.lacking("TRIFF MICH.")                   # ["12:30"]

A text without letters and digits stays as it is. Numbers, addresses, codes and what the model has no characters for
become placeholders where it has learnt to copy these (`transduce.data.placeholders`); otherwise they are looked for in
the output. Terms of a glossary are annotated where the model has learnt to use these, and required otherwise. Nothing
here imports torch.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, Self

from transduce.data.character_profile import CharacterProfile
from transduce.data.placeholders import AS, COUNT, NAME, NAMES, TERM, TERM_END, has_placeholders, has_terms
from transduce.data.protected import KINDS, Protected, lacking, protected
from transduce.data.tokenizers.text_ids import Tokenizer
from transduce.inference.glossary import Glossary, Term
from transduce.inference.sentences import has_letters, has_letters_or_digits
from transduce.inference.typography import WORD, Typography, cased_words, share_in_capitals

WITHOUT_LETTERS = "without letters"  # the kind of a text that has none
DIGIT = "digit"  # a number of one digit, which languages often write as a word
UNSEEN = "unseen"  # the kind of what no training text has a character of
STAND_IN = 0xE000  # the first character that stands for a protected part while the text around it is changed
MOST_PARTS = 6000  # that are looked after in a text
LEAST_SEEN, KEPT = 20, 0.5  # parts of training sources, from which it is known whether they are kept; their share
COPIED = 0.25  # the share from which a model with placeholders copies them: that is right where a word may be, too


class Edit(NamedTuple):
    """What is written in place of characters [start, end)."""

    start: int
    end: int
    written: str


class Restored(NamedTuple):
    """An output for people. edits: what became of each part of the model's output, in order, without gaps."""

    text: str
    edits: Sequence[Edit]


@dataclass(frozen=True)
class Prepared:
    """A text, and what the model reads in its place.

    edits: what is read in place of each part of the text, in order, without gaps.
    values: what stands in the output in place of ⟦1⟧, ⟦2⟧, ..
    parts: what the output has to hold as it stands, as (text, kind).
    terms: translations of a glossary's terms, which the text may be annotated with.
    only_told: whether what an output lacks is told, and not searched for.
    """

    text: str
    edits: Sequence[Edit]
    values: tuple[str, ...] = ()
    parts: tuple[tuple[str, str], ...] = ()
    capitals: bool = False
    stays: bool = False
    terms: tuple[str, ...] = ()
    only_told: bool = False

    @classmethod
    def as_it_is(cls, text: str) -> Self:
        """A text that the model reads as it stands."""
        return cls(text, (Edit(0, len(text), text),))

    @property
    def plain(self) -> bool:
        """Whether the model reads the text as it stands, and writes its output."""
        return not (self.stays or self.capitals or self.values) and self.read == self.text

    def edits_behind(self, tags: str) -> list[Edit]:
        """Its edits, where tags stand before the text."""
        moved = [Edit(start + len(tags), end + len(tags), written) for start, end, written in self.edits]
        return [Edit(0, len(tags), tags), *moved] if tags else moved

    @property
    def read(self) -> str:
        """What the model reads; nothing of a text that stays as it is."""
        return "" if self.stays else "".join(edit.written for edit in self.edits)

    def restored(self, output: str) -> Restored:
        """The output with the values of its placeholders, in capitals where the text is."""
        if self.stays:
            return Restored(self.text, (Edit(0, len(output), self.text),))
        edits, done = list[Edit](), 0
        for match in NAME.finditer(output) if self.values else ():
            place = int(match[1]) - 1
            if place < len(self.values):
                edits += self._cased(output, done, match.start())
                edits.append(Edit(*match.span(), apart(edits, self.values[place])))
                done = match.end()
        edits += self._cased(output, done, len(output))
        return Restored("".join(edit.written for edit in edits), edits)

    def lacking(self, output: str) -> list[str]:
        """Which parts are not in an output for people, nor any form of the terms."""
        missing = lacking(self.parts, output)
        return missing + [term for term in dict.fromkeys(self.terms) if not holds_form(output, term)]

    def must(self, missing: Iterable[str]) -> list[str]:
        """What a search has to put into the output so that it holds what is missing."""
        places = [(place, part) for part in missing for place, value in enumerate(self.values) if value == part]
        names = dict.fromkeys(NAMES[place] for place, _ in places)  # of equal values all, as none says which is missing
        return [*names, *(part for part in missing if part not in self.values)]

    def _cased(self, output: str, start: int, end: int) -> list[Edit]:
        if not self.capitals:
            return [Edit(start, end, output[start:end])] if end > start else []
        return [Edit(place, place + 1, output[place].upper()) for place in range(start, end)]


@dataclass(frozen=True)
class Preparation:
    """How texts become what a model reads.

    copies: it has placeholders. annotates: it takes terms. checked: kinds of protected parts whose loss is told.
    changes: whether a text is translated; any other stays as it is.
    searches_text: whether it reads a text and searches for another.
    only_tells: whether, without a glossary, a text is read as it stands and its output stays as it is, and what it
        lacks is told: where the model's file says nothing of its training texts, as of an imported model.
    """

    typography: Typography = field(default_factory=Typography)
    copies: bool = False
    annotates: bool = False
    checked: frozenset[str] = frozenset()
    changes: Callable[[str], bool] = bool
    searches_text: bool = False
    only_tells: bool = False

    @classmethod
    def of(
        cls, provenance: Mapping[str, Any], source: Tokenizer | None, target: Tokenizer | None, sentences: bool
    ) -> Self:
        """As a model's file says.

        Args:
            source, target: what it reads and writes with; without a source nothing is prepared.
            sentences: whether it translates sentences of words, so that numbers and addresses are kept.
        """
        copies = has_placeholders(source) and has_placeholders(target)
        if source is None or not (sentences or copies or has_terms(source)):
            return cls()
        noted = provenance.get("protected")
        if not isinstance(noted, Mapping):  # a file of an earlier version, or of another program
            return cls(copies=copies, annotates=has_terms(source), searches_text=True, only_tells=not copies)
        noted = {DIGIT: noted.get("number"), **noted}  # earlier files count all numbers as one kind
        share = COPIED if copies else KEPT
        checked = frozenset(kind for kind in (*KINDS, DIGIT, UNSEEN) if _is_kept(noted.get(kind), share))
        letters = has_letters if "number" in checked else has_letters_or_digits
        changes = letters if _is_kept(noted.get(WITHOUT_LETTERS)) else bool
        return cls(typography_of(provenance), copies, has_terms(source), checked, changes, True)

    def of_texts(self, protect: bool, glossary: Glossary) -> Callable[[str], Prepared] | None:
        """What prepares each text; None = nothing is done to them.

        Args:
            protect: whether more is done than a glossary asks for.
        """
        if not self.searches_text or not (glossary or protect):
            return None
        if self.only_tells and not glossary:
            return self._looked_at
        own = self if protect else Preparation(annotates=self.annotates, searches_text=True)
        return partial(own.prepared, glossary=glossary)

    def _looked_at(self, text: str) -> Prepared:
        """A text that is read as it stands, and what its output has to hold."""
        found = [part for part in protected(text) if _noted_kind(text, part) != DIGIT][:MOST_PARTS]
        parts = tuple((text[part.start : part.end], part.kind) for part in found)
        return replace(Prepared.as_it_is(text), parts=parts, only_told=True)

    def prepared(self, text: str, glossary: Glossary = Glossary()) -> Prepared:  # noqa: B008
        """What the model reads in place of a text without tags."""
        if text.strip() and not self.changes(text):
            return Prepared(text, (Edit(0, len(text), text),), stays=True)
        terms = glossary.found(text)
        found = [part for part in self._protected(text) if not any(part.overlaps(*term[:2]) for term in terms)]
        rest = _Shown.of(text, found).text
        if found and not terms and not has_letters(rest):
            return Prepared(text, (Edit(0, len(text), text),), stays=True)
        usual = text == self.typography.written(text) and not self.typography.in_capitals(text)
        if usual and not found and not terms:
            return Prepared.as_it_is(text)
        masked = _masked(found) if self.copies else []
        shown = _Shown.of(text, found)
        capitals = self.typography.in_capitals(shown.text)
        edits = shown.written(self.typography, capitals).edits(text, found, masked)
        targets = tuple(term.target for term in terms)
        return Prepared(
            text,
            _annotated(edits, terms) if self.annotates else edits,
            tuple(text[part.start : part.end] for part in masked),
            tuple((text[part.start : part.end], part.kind) for part in found),
            capitals,
            terms=targets,
        )

    def _protected(self, text: str) -> list[Protected]:
        found = [part for part in protected(text) if _noted_kind(text, part) in self.checked][:MOST_PARTS]
        if self.typography.characters is None or UNSEEN not in self.checked:
            return found
        known = self.typography.characters.characters
        if known.issuperset(text.replace(" ", "")):
            return found
        taken = [range(part.start, part.end) for part in found]
        unseen = [
            Protected(*match.span(), UNSEEN)
            for match in WORD.finditer(text)
            if not all(_is_known(character, known) for character in self.typography.written(match[0]))
            and not any(match.start() in each or match.end() - 1 in each for each in taken)
        ]
        return sorted([*found, *unseen])


def preparation_of(provenance: Mapping[str, Any], task: Any, tokenizer: Any) -> Preparation:
    """Of a model, as its file says.

    Args:
        task: with its `tokenizers`, and whether it is `of_sentences`.
        tokenizer: the section of its recipe; a model of single characters writes words, dates or pronunciations.
    """
    sentences = task.of_sentences and tokenizer.kind != "character"
    return Preparation.of(provenance, task.tokenizers.get("source"), task.tokenizers.get("target"), sentences)


def typography_of(provenance: Mapping[str, Any]) -> Typography:
    """How the training texts were written, as a model's file says."""
    noted = provenance.get("typography")
    noted = noted if isinstance(noted, Mapping) else {}
    characters = provenance.get("characters")
    profile = CharacterProfile.from_dict(characters.get("source")) if isinstance(characters, Mapping) else None
    words, share = noted.get("cased"), noted.get("capitals")
    cased = {word.lower(): word for word in words.split()} if isinstance(words, str) else {}
    return Typography(profile, cased, float(share) if isinstance(share, int | float) else None)


def noted_of(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """What a model file says of its training pairs: how they are written, and which parts of the sources are kept."""
    sources = [source for source, _ in pairs]
    counts: dict[str, list[int]] = {}

    def count(kind: str, kept: bool) -> None:
        seen = counts.setdefault(kind, [0, 0])
        seen[0] += 1
        seen[1] += kept

    for source, target in pairs:
        if source.strip() and not has_letters(source):
            count(WITHOUT_LETTERS, source.strip() == target.strip())
        for part in protected(source):
            text = source[part.start : part.end]
            count(_noted_kind(source, part), not lacking([(text, part.kind)], target))
    typography = {"cased": cased_words(sources), "capitals": round(share_in_capitals(sources), 4)}
    return {"typography": typography, "protected": counts}


def apart(edits: Sequence[Edit], value: str) -> str:
    """A value with a space before it where it would run into the one before."""
    before = edits[-1].written if edits else ""
    return f" {value}" if before[-1:].isalnum() and value[:1].isalnum() else value


def holds_form(text: str, term: str) -> bool:
    """Whether a text has a term, or another form of it: its words begin alike, but for their last letters."""
    words = [word.lower() for word in WORD.findall(text)]
    return term.lower() in text.lower() or all(
        any(word.startswith(stem) for word in words) for stem in map(_stem, WORD.findall(term.lower()))
    )


def _stem(word: str) -> str:
    return word[: max(4, len(word) - 3)]


def _is_kept(noted: Any, share: float = KEPT) -> bool:
    """Whether parts of a kind are kept, from how many there are and how many are kept; a few are taken to be."""
    if not isinstance(noted, list) or len(noted) != 2 or not all(isinstance(each, int) for each in noted):
        return True
    return noted[0] < LEAST_SEEN or noted[1] >= share * noted[0]


def _noted_kind(text: str, part: Protected) -> str:
    """As what it is counted."""
    return DIGIT if part.kind == "number" and part.end - part.start == 1 else part.kind


def _masked(found: Sequence[Protected]) -> list[Protected]:
    """Those that become placeholders, in their order: of too many first what looks like a placeholder itself."""
    first = sorted(found, key=lambda part: (part.kind != "reserved", part.start))[:COUNT]
    return sorted(first)


class _Shown(NamedTuple):
    """A text with one character in place of each protected part.

    text: of these. spans: for each character, the characters [start, end) of the whole text that it stands for.
    """

    text: str
    spans: Sequence[tuple[int, int]]

    @classmethod
    def of(cls, text: str, found: Sequence[Protected]) -> Self:
        characters, spans, done = list[str](), list[tuple[int, int]](), 0
        for number, part in enumerate(found):
            characters += text[done : part.start]
            spans += [(place, place + 1) for place in range(done, part.start)]
            characters.append(chr(STAND_IN + number))
            spans.append((part.start, part.end))
            done = part.end
        characters += text[done:]
        spans += [(place, place + 1) for place in range(done, len(text))]
        return cls("".join(characters), spans)

    def written(self, typography: Typography, capitals: bool) -> Self:
        """As the training texts are written, in lower case if it is in capitals."""
        kept, spans = list[str](), list[tuple[int, int]]()
        for character, span in zip(self.text, self.spans, strict=True):
            for each in character if _stands_in(character) else typography.written(character):
                kept.append(each)
                spans.append(span)
        text = "".join(kept)
        lowered = typography.lowered(text) if capitals else text
        return type(self)(lowered if len(lowered) == len(text) else text, spans)

    def edits(self, text: str, found: Sequence[Protected], masked: Sequence[Protected]) -> list[Edit]:
        """What is read in place of each part of the text."""
        kept = {part.start: text[part.start : part.end] for part in found}
        kept |= {part.start: NAMES[number] for number, part in enumerate(masked)}
        edits, done = list[Edit](), 0
        for character, (start, end) in zip(self.text, self.spans, strict=True):
            written = kept.get(start, character) if _stands_in(character) else character
            if start < done:  # a further character for the same one
                edits[-1] = edits[-1]._replace(written=edits[-1].written + written)
                continue
            edits += [Edit(done, start, "")] if start > done else []
            edits.append(Edit(start, end, written))
            done = end
        return [*edits, Edit(done, len(text), "")] if done < len(text) else edits


def _is_known(character: str, known: frozenset[str]) -> bool:
    """Whether training texts have it, in capitals or not."""
    return not known.isdisjoint((character, character.lower(), character.upper()))


def _stands_in(character: str) -> bool:
    return STAND_IN <= ord(character) < STAND_IN + MOST_PARTS


def _annotated(edits: Sequence[Edit], terms: Sequence[Term]) -> list[Edit]:
    """With the translation of each term behind it."""
    found = list(edits)
    first = {edit.start: place for place, edit in reversed([*enumerate(edits)])}
    last = {edit.end: place for place, edit in enumerate(edits)}
    for term in terms:
        if term.start not in first or term.end not in last:  # it begins or ends with what is left out
            continue
        begin, end = first[term.start], last[term.end]
        found[begin] = found[begin]._replace(written=f"{TERM} {found[begin].written}")
        found[end] = found[end]._replace(written=f"{found[end].written} {AS} {term.target} {TERM_END}")
    return found


def mapped(edits: Sequence[Edit], start: int, end: int, back: bool) -> tuple[int, int]:
    """Where characters [start, end) of the text before the edits are after them; back: the other way round.

    A part of what is changed as a whole is all of it; what is left out is nowhere, (0, 0).
    """
    at, found = 0, list[tuple[int, int]]()
    for edit in edits:
        after, before = (at, at + len(edit.written)), (edit.start, edit.end)
        own, other = (after, before) if back else (before, after)
        at = after[1]
        if max(start, own[0]) < min(end, own[1]):
            plain = own[1] - own[0] == other[1] - other[0]
            first, last = max(start, own[0]) - own[0], min(end, own[1]) - own[0]
            found.append((other[0] + first, other[0] + last) if plain else other)
    return (found[0][0], found[-1][1]) if found else (0, 0)
